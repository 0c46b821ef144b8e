"""What rows say about one case -> how it ended and its figures, in our terms. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from harness.derive import derive_stated
from harness.formats import words
from harness.formats.facts import Fact
from harness.record import Accuracy, Observed, Outcome, Reference, Side, Stage, Stated

AGREE = 1e-3
"""Two statements of one figure that lie so close together, as a share, are one: a database cuts values."""


@dataclass(frozen=True, slots=True)
class Judged:
    """One case, in parts of a `Record`."""

    outcome: Outcome
    stage: Stage | None
    side: Side | None
    text: str | None
    observed: Observed
    accuracy: Accuracy | None
    stated: Stated

    def fields(self) -> dict[str, Any]:
        names = ("outcome", "stage", "side", "text", "observed", "accuracy", "stated")
        checked = self.accuracy is not None
        return {name: getattr(self, name) for name in names} | {
            "derived": derive_stated(self.outcome, self.stated, checked)
        }


def judge(facts: Sequence[Fact]) -> Judged:
    """Return how a case ended by all that is said of it, the later word over the earlier."""
    word = next((fact.word for fact in reversed(facts) if fact.word is not None), None)
    stated = _stated(facts, word)
    failed = any(fact.failed for fact in facts) and stated.speedup is None
    outcome, stage, side, text = _ending(word, failed, stated, _said(facts))
    if outcome not in (Outcome.PASS, Outcome.SKIPPED) and text is None and word != outcome.value:
        text = word
    timed, checked = _batches(facts)
    return Judged(
        outcome=outcome,
        stage=stage,
        side=side,
        text=text,
        observed=Observed(batch_size=timed),
        accuracy=_accuracy(outcome, word, timed, checked),
        stated=stated,
    )


def _said(facts: Iterable[Fact]) -> Mapping[str, str]:
    return {name: text for fact in facts for name, text in fact.said.items()}


def _ending(
    word: str | None, failed: bool, stated: Stated, said: Mapping[str, str]
) -> tuple[Outcome, Stage | None, Side | None, str | None]:
    if "outcome" in said and said["outcome"] in set(Outcome):  # our own export says more than upstream's word
        stage, side = said.get("stage"), said.get("side")
        return (
            Outcome(said["outcome"]),
            Stage(stage) if stage in set(Stage) else None,
            Side(side) if side in set(Side) else None,
            said.get("text"),
        )
    if word is not None:
        found = words.meaning(word)
        if found is None:
            return Outcome.UNKNOWN, None, None, f'"{word}" is no status that anybody knows'
        if found.outcome == Outcome.PASS and failed:
            text = "passed the accuracy check; its performance run failed, and nothing says how"
            return Outcome.FAIL_TO_RUN, Stage.TIME, None, text
        return found.outcome, found.stage, found.side, word if found.outcome == Outcome.SKIPPED else None
    if failed:
        return Outcome.FAIL_TO_RUN, None, None, "its numbers are zeros: it failed, and nothing says how"
    if _ran(stated):
        return Outcome.PASS, None, None, None
    return Outcome.UNKNOWN, None, None, "; ".join(stated.notes) or "no status and no number is stated"


def _ran(stated: Stated) -> bool:
    """Whether there is a figure that only a model that ran can have."""
    figures = (
        stated.speedup,
        stated.instructions,
        stated.graphs,
        stated.eager_samples_per_s,
        stated.compiled_samples_per_s,
    )
    alone = stated.speedup is None and not any("speedup" in note for note in stated.notes)
    lone = (stated.eager_s, stated.compiled_s, *stated.other.values())
    return any(each is not None for each in figures) or (alone and any(each is not None for each in lone))


def _accuracy(outcome: Outcome, word: str | None, timed: int | None, checked: int | None) -> Accuracy | None:
    if word is None or outcome not in (Outcome.PASS, Outcome.FAIL_ACCURACY):
        return None
    differs = checked is not None and timed is not None and checked != timed
    return Accuracy(reference=Reference.STATED, batch_size=checked if differs else None)


def _batches(facts: Sequence[Fact]) -> tuple[int | None, int | None]:
    """Return the batch size that was timed, and the one of the accuracy check."""
    timed = [fact.batch_size for fact in facts if fact.batch_size and (fact.word is None or "speedup" in fact.values)]
    checked = [fact.batch_size for fact in facts if fact.batch_size and fact.word is not None]
    return next(reversed(timed or checked), None), next(reversed(checked), None)


def _stated(facts: Sequence[Fact], word: str | None) -> Stated:
    values: dict[str, Any] = {}
    notes = [note for fact in facts for note in fact.notes]
    for fact in facts:
        for name, value in fact.values.items():
            if isinstance(value, Mapping):
                value = {**values.get(name, {}), **value}
            elif name in values and not _agree(values[name], value):
                notes.append(f"{name}: {values[name]:g} in one file, {value:g} in another")
            values[name] = value
    values = _paired(values, notes)
    if "eager_s" not in values and {"speedup", "compiled_s"} <= values.keys():
        values["eager_s"] = values["speedup"] * values["compiled_s"]
    rows = tuple(dict.fromkeys(_key(fact) for fact in facts))
    by_key = {_key(fact): fact.row for fact in facts}
    return Stated(**values, word=word, notes=tuple(dict.fromkeys(notes)), rows=tuple(by_key[key] for key in rows))


def _paired(values: dict[str, Any], notes: list[str]) -> dict[str, Any]:
    """Return the values with the speedup that samples per second give, where both sides are stated.

    Step times of different batch sizes are no pair: they are left out.
    """
    eager, compiled = values.get("eager_samples_per_s"), values.get("compiled_samples_per_s")
    if eager is None or compiled is None:
        return values
    values = {"speedup": compiled / eager, **values}
    batches = [values.get("other", {}).get(f"{side}_batch_size") for side in ("eager", "compiled")]
    if batches[0] != batches[1]:
        notes.append("the batch sizes of the two sides differ, so only their samples per second can be compared")
        return {name: value for name, value in values.items() if name not in ("eager_s", "compiled_s")}
    return values


def _agree(first: Any, second: Any) -> bool:
    if not isinstance(first, int | float) or isinstance(first, bool):
        return True
    return bool(abs(first - second) <= AGREE * max(abs(first), abs(second)))


def _key(fact: Fact) -> tuple[Any, ...]:
    return fact.row.file, fact.row.line, tuple(fact.row.cells.items())
