"""`bench import`: journals and the result files of others into the database, each upload wholly or not at all."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bench import output
from bench.options import DATABASE, Database, Json
from harness import report, rules
from harness.commits import normalised
from harness.errors import BenchError, UsageError
from harness.formats import detect, names
from harness.formats.facts import ABOUT, Format, Parsed, Where, refuse, told
from harness.formats.join import Imported, join
from harness.formats.text import File, when
from harness.journal import read
from harness.record import JournalLine, Run
from suites.spec import MODES, PRECISIONS, Mode, Precision

if TYPE_CHECKING:
    from server.store import Store

app = typer.Typer(add_completion=False)

Files = Annotated[
    list[Path], typer.Argument(metavar="FILE...", help="Journals, or results of others; any may be gzipped.")
]
Lenient = Annotated[bool, typer.Option("--lenient", help="Take the good rows of a file that has bad ones.")]
Rule = Annotated[
    str | None, typer.Option("--rule", metavar="NAME", help="Print the figures by this rule: upstream-2022.")
]


def _option(name: str, metavar: str, about: str) -> Any:
    return typer.Option(f"--{name}", metavar=metavar, help=about)


@app.command()
def main(
    files: Files,
    suite: Annotated[str | None, _option("suite", "NAME", "Of files from elsewhere, as the next ones.")] = None,
    mode: Annotated[str | None, _option("mode", "MODE", "inference or training.")] = None,
    precision: Annotated[str | None, _option("precision", "WORD", "fp32, amp, bf16, fp16, or amp_fp16.")] = None,
    device: Annotated[str | None, _option("device", "KIND", "cuda, cpu, rocm, xpu, mps or hpu; cuda-a100.")] = None,
    backend: Annotated[str | None, _option("backend", "NAME", "As torch lists it.")] = None,
    variant: Annotated[str | None, _option("variant", "TEXT", "What the other runner calls its way.")] = None,
    commit: Annotated[str | None, _option("commit", "SHA", "Of the code under test.")] = None,
    branch: Annotated[str | None, _option("branch", "NAME", "Of the code under test.")] = None,
    trigger: Annotated[str | None, _option("trigger", "WORD", "manual, nightly, pull_request, ...")] = None,
    time: Annotated[str | None, _option("time", "ISO", "When it was measured; UTC without a zone.")] = None,
    lenient: Lenient = False,
    rule: Rule = None,
    database: Database = DATABASE,
    as_json: Json = False,
) -> None:
    """Load journals, or the result files of others, into the database. What is there already stays as it is.

    What a file is, is seen by looking. Options say what files do not, and win over what they say.
    """
    from server.store import Store  # here, so that --help needs no database library

    given = _given(suite, mode, precision, device, backend, variant, commit, branch, trigger, time)
    asked = rules.rule(rule) if rule is not None else None
    store = Store.connect(database)
    refused: dict[Path, str] = {}
    parsed: list[Parsed] = []
    for path in files:
        try:
            found = _looked_at(File(path))
            if isinstance(found, Parsed):
                parsed.append(found)
            else:
                _tell(_journal(store, path), as_json)
        except BenchError as error:
            refused[path] = _named(path, error)
    taken = parsed if lenient else _whole(parsed, refused)
    for each in taken:
        _mention(each)
    for run in join(taken, given, f"bench import {' '.join(map(str, files))}"):
        try:
            _tell(_stored(store, run, taken), as_json)
        except BenchError as error:
            refused |= {Path(name): _named(Path(name), error) for name in run.files}
            continue
        if asked is not None:
            newest = {record.case.id: record for record in run.records}
            for line in report.rule_lines(rules.by_rule(run.run, newest, asked), asked):
                print(line, file=sys.stderr if as_json else sys.stdout)
    for text in refused.values():
        print(f"bench: {text} Nothing of this file was stored.", file=sys.stderr)
    store.dispose()
    if refused:
        others = " What the others hold is stored." if len(refused) < len(files) else ""
        raise BenchError(f"{len(refused)} of {len(files)} files could not be imported, see above.{others}")


def _looked_at(file: File) -> Parsed | None:
    """Return what a file of others says; None of a journal, which is read line by line.

    Raises:
        BenchError: it cannot be read, or is nothing that bench knows.
    """
    format = detect.detect(file)
    return None if format == Format.JOURNAL else detect.read(file, format)


def _whole(parsed: Iterable[Parsed], refused: dict[Path, str]) -> list[Parsed]:
    """Return the files of uploads without a bad line; the others join the refused, with the reason."""
    found = list(parsed)
    bad: dict[tuple[Path, str], Path] = {}
    for each in found:
        try:
            refuse(each)
        except BenchError as error:
            refused[each.file.path] = str(error)
            bad.setdefault(_upload(each), each.file.path)
    for each in found:
        if _upload(each) in bad and each.file.path not in refused:
            refused[each.file.path] = f"{each.file.path}: is of the same upload as {bad[_upload(each)]}."
    return [each for each in found if each.file.path not in refused]


def _upload(parsed: Parsed) -> tuple[Path, str]:
    return parsed.file.path.absolute().parent, parsed.key


@dataclass(frozen=True)
class _Told:
    """What is to be said of one run that was stored."""

    files: tuple[str, ...]
    format: Format
    runs: tuple[str, ...]
    counts: dict[str, int]
    bad: str = ""
    notes: tuple[str, ...] = ()


def _tell(told: _Told, as_json: bool) -> None:
    if as_json:
        values = {"file": told.files[0], "files": told.files, "format": told.format, "runs": told.runs}
        output.json_line("import", values | told.counts | {"bad": told.bad or None, "notes": told.notes})
        return
    runs = ", ".join(run[:8] for run in told.runs)
    counts = {name: count for name, count in told.counts.items() if name != "replaced"}
    parts = [f"{count} {name.replace('_', ' ')}" for name, count in counts.items() if count or name == "new"]
    if replaced := told.counts.get("replaced"):
        parts.append(f"{replaced} row{'s' * (replaced != 1)} replaced by later ones")
    what = "journal" if told.format == Format.JOURNAL else ABOUT[told.format] + ","
    of = "of run" if told.format == Format.JOURNAL else "run"
    print(f"{', '.join(told.files)}: {what} {of} {runs}, {sum(counts.values())} records: {', '.join(parts)}")
    for note in told.notes:
        print(f"  {note}")


def _journal(store: Store, path: Path) -> _Told:
    replayed = store.replay(_lines(path))
    counts = {"new": replayed.new, "already_there": replayed.known, "superseded": replayed.late}
    return _Told((str(path),), Format.JOURNAL, replayed.runs, counts)


def _stored(store: Store, run: Imported, parsed: Iterable[Parsed]) -> _Told:
    replayed = store.replay(run.lines())
    counts = {"new": replayed.new, "already_there": replayed.known, "superseded": replayed.late}
    counts["replaced"] = run.replaced
    bad = "; ".join(
        f"{each.file.path}, {told(each.bad)}" for each in parsed if each.bad and str(each.file.path) in run.files
    )
    return _Told(run.files, Format(run.run.source or Format.NOTHING), replayed.runs, counts, bad, run.notes)


def _mention(parsed: Parsed) -> None:
    """Say on stderr what of a file is not taken."""
    if parsed.bad:
        print(f"bench: {parsed.file.path}, left out: {told(parsed.bad)}", file=sys.stderr)
    if parsed.skipped:
        print(f"bench: {parsed.file.path}, no results: {told(parsed.skipped)}", file=sys.stderr)
    if not parsed.facts:
        print(f"bench: {parsed.file.path}: holds no results", file=sys.stderr)


def _given(
    suite: str | None,
    mode: str | None,
    precision: str | None,
    device: str | None,
    backend: str | None,
    variant: str | None,
    commit: str | None,
    branch: str | None,
    trigger: str | None,
    time: str | None,
) -> Where:
    """Return what the options say.

    Raises:
        UsageError: a word is none of those that can be.
    """
    number, amp_dtype = _precision(precision)
    kind, _, product = (device or "").partition("-")
    return Where(
        suite=names.SUITES.get(suite, suite) if suite else None,
        mode=Mode(_one_of("--mode", mode, MODES)) if mode else None,
        precision=number,
        amp_dtype=amp_dtype,
        device=_one_of("--device", kind, names.DEVICES) if kind else None,
        product=product or None,
        backend=backend,
        variant=variant,
        commit=normalised(commit),
        branch=branch,
        trigger=trigger,
        time=_time(time),
    )


def _precision(word: str | None) -> tuple[Precision | None, str | None]:
    if word is None:
        return None, None
    known = {each.value: (each, None) for each in PRECISIONS} | {
        name: found for name, found in names.DTYPES.items() if found[0] != Precision.UNKNOWN
    }
    return known[_one_of("--precision", word, known)]


def _one_of(option: str, word: str, known: Iterable[str]) -> str:
    if word not in known:
        raise UsageError(f"{option} {word}: unknown. Known: {', '.join(known)}.")
    return word


def _time(text: str | None) -> Any:
    try:
        return when(text) if text else None
    except ValueError:
        raise UsageError(f"--time {text}: no moment. Write it as 2026-08-01T12:00:00Z.") from None


def _lines(path: Path) -> Iterator[JournalLine]:
    """Yield the lines of a journal, which begins with its run.

    Raises:
        BenchError: it does not, or it cannot be read.
    """
    lines = read(path)
    first = next(lines, None)
    if not isinstance(first, Run):
        raise BenchError(f"{path}: does not begin with a run. It is no journal of bench, or its first line was lost.")
    yield first
    yield from lines


def _named(path: Path, error: BenchError) -> str:
    """Return the error's sentence with the file in front, where it is not there already."""
    text = str(error)
    return text if text.startswith(str(path)) else f"{path}: {text}"
