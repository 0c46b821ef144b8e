"""How long cases took -> the `case_s` of each model in a suite's file, everything else of the file kept as it is.

    python -m benchmarks.durations [--write configs/suites/timm.toml ...] JOURNAL ...

Without --write it prints what it would write, and the means that `harness.budget` holds as defaults. Journals of
two CPU cores are meant, and only cases that were checked and timed in full size count.
"""

from __future__ import annotations

import argparse
import re
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from statistics import fmean

from harness.budget import default_s
from harness.journal import History, replay
from harness.lines import positions
from harness.record import Measure, Outcome, Record
from suites.spec import Mode, Precision, Preset

WHOLE = (Outcome.PASS, Outcome.FAIL_ACCURACY)
"""Cases that went through all of their stages."""

_FIELD = re.compile(r"^(\s*case_s\s*=\s*)[^\s#]+")


def took_s(record: Record) -> float:
    """Return the wall seconds of a case."""
    return (record.finished_at - record.started_at).total_seconds()


def declared(histories: Iterable[History]) -> dict[tuple[str, str], int]:
    """Return seconds by suite and model: the mean of its FP32 cases with inductor, as `ModelSpec.case_s` is meant.

    A model that was only trained counts with its training scaled to inference, as the planner scales it back.
    """
    found: dict[tuple[str, str], dict[Mode, list[float]]] = {}
    for history in histories:
        for record in history.records.values():
            if _counts(history, record):
                case = record.case
                found.setdefault((case.suite, case.model), {}).setdefault(case.mode, []).append(_in_inference(record))
    return {
        name: max(1, round(fmean(modes.get(Mode.INFERENCE) or modes[Mode.TRAINING]))) for name, modes in found.items()
    }


def means(histories: Iterable[History]) -> dict[tuple[str, str, str], tuple[float, int]]:
    """Return mean seconds and count by preset, backend and mode, over the cases that went through."""
    found: dict[tuple[str, str, str], list[float]] = {}
    for history in histories:
        for record in history.records.values():
            if record.outcome in WHOLE and history.run.protocol.measure == Measure.ALL:
                case = record.case
                found.setdefault((case.preset, case.backend, case.mode), []).append(took_s(record))
    return {key: (fmean(seconds), len(seconds)) for key, seconds in found.items()}


def rewritten(text: str, seconds: Mapping[str, int]) -> str:
    """Return a suite's file with `case_s` of the models named, in place of what stood there or after `parameters`.

    Raises:
        ValueError: the file is written in a way that this does not understand, and would change otherwise.
    """
    where = positions(text)
    lines = text.splitlines(keepends=True)
    wanted = tomllib.loads(text)
    for index, entry in reversed([*enumerate(wanted["model"])]):  # from below, so that the lines above keep their place
        if entry["name"] not in seconds:
            continue
        entry["case_s"] = value = seconds[entry["name"]]
        if (at := where.get(("model", index, "case_s"))) is not None:
            lines[at - 1] = _FIELD.sub(rf"\g<1>{value}", lines[at - 1])
        else:
            after = where.get(("model", index, "parameters")) or where[("model", index, "name")]
            lines.insert(after, f"case_s = {value}\n")
    new = "".join(lines)
    if tomllib.loads(new) != wanted:
        raise ValueError("an entry is written in a way that this does not understand. Write one field a line.")
    return new


def _counts(history: History, record: Record) -> bool:
    case = record.case
    return (
        record.outcome in WHOLE
        and history.run.protocol.measure == Measure.ALL
        and (case.backend, case.compile_mode) == ("inductor", "default")
        and (case.preset, case.precision) == (Preset.FULL, Precision.FP32)
    )


def _in_inference(record: Record) -> float:
    inference = record.case.model_copy(update={"mode": Mode.INFERENCE})
    return took_s(record) * default_s(inference) / default_s(record.case)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("journals", nargs="+", type=Path)
    parser.add_argument("--write", type=Path, action="append", default=[], metavar="SUITE.toml")
    options = parser.parse_args()
    histories = [replay(path) for path in options.journals]
    known = declared(histories)
    for path in options.write:
        seconds = {model: value for (suite, model), value in known.items() if suite == path.stem}
        path.write_text(rewritten(path.read_text(encoding="utf-8"), seconds), encoding="utf-8")
        print(f"{path}: {len(seconds)} models")
    if not options.write:
        for (suite, model), value in known.items():
            print(f"{suite}/{model} {value}")
        for key, (mean_s, count) in means(histories).items():
            print(f"mean of {count} cases, {' '.join(key)}: {mean_s:.1f} s")


if __name__ == "__main__":
    main()
