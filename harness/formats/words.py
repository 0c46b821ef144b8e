"""The upstream runner's status words and our outcomes: one table, both ways. `docs/glossary.md` shows it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from harness.record import Outcome, Side, Stage


@dataclass(frozen=True, slots=True)
class Meaning:
    """What a status word says in our terms."""

    outcome: Outcome
    stage: Stage | None = None
    side: Side | None = None


MEANINGS: Mapping[str, Meaning] = {
    "pass": Meaning(Outcome.PASS),
    "pass_due_to_skip": Meaning(Outcome.SKIPPED),
    "fail_accuracy": Meaning(Outcome.FAIL_ACCURACY, Stage.CHECK, Side.COMPILED),
    "not_bitwise_equivalent": Meaning(Outcome.FAIL_ACCURACY, Stage.CHECK, Side.COMPILED),
    "fail_to_run": Meaning(Outcome.FAIL_TO_RUN, Stage.COMPILE, Side.COMPILED),
    "OOM": Meaning(Outcome.OOM, Stage.COMPILE, Side.COMPILED),
    "eager_1st_run_fail": Meaning(Outcome.EAGER_FAIL_TO_RUN, Stage.EAGER, Side.EAGER),
    "eager_2nd_run_fail": Meaning(Outcome.EAGER_FAIL_TO_RUN, Stage.EAGER_TWICE, Side.EAGER),
    "eager_fail_to_run": Meaning(Outcome.EAGER_FAIL_TO_RUN, Stage.EAGER, Side.EAGER),
    "eager_1st_run_OOM": Meaning(Outcome.OOM, Stage.EAGER, Side.EAGER),
    "eager_2nd_run_OOM": Meaning(Outcome.OOM, Stage.EAGER_TWICE, Side.EAGER),
    "eager_two_runs_differ": Meaning(Outcome.EAGER_TWO_RUNS_DIFFER, Stage.EAGER_TWICE, Side.EAGER),
    "eager_variation": Meaning(Outcome.EAGER_TWO_RUNS_DIFFER, Stage.EAGER_TWICE, Side.EAGER),
    "model_fail_to_load": Meaning(Outcome.MODEL_FAIL_TO_LOAD, Stage.LOAD),
    "timeout": Meaning(Outcome.TIMEOUT),
    "infra_error": Meaning(Outcome.CRASH),
    "worker_fail": Meaning(Outcome.CRASH),
}

PREFIXES: Mapping[str, Meaning] = {
    "fail_to_run_at_batch_": MEANINGS["fail_to_run"],
    "fail_batch_invariance_at_": MEANINGS["fail_accuracy"],
}
"""Words that end in a number."""

_WRITTEN: Mapping[tuple[Outcome, Side | None], str] = {
    (Outcome.OOM, Side.EAGER): "eager_1st_run_OOM",
    (Outcome.OOM, Side.COMPILED): "OOM",
}
_PLAIN: Mapping[Outcome, str] = {
    Outcome.PASS: "pass",
    Outcome.FAIL_ACCURACY: "fail_accuracy",
    Outcome.FAIL_TO_RUN: "fail_to_run",
    Outcome.EAGER_FAIL_TO_RUN: "eager_fail_to_run",
    Outcome.EAGER_TWO_RUNS_DIFFER: "eager_two_runs_differ",
    Outcome.MODEL_FAIL_TO_LOAD: "model_fail_to_load",
    Outcome.OOM: "OOM",
    Outcome.TIMEOUT: "timeout",
    Outcome.CRASH: "fail_to_run",
    Outcome.SKIPPED: "pass_due_to_skip",
}


def meaning(word: str) -> Meaning | None:
    """Return what a word says; None: nobody knows it, or it is a number."""
    if word in MEANINGS:
        return MEANINGS[word]
    return next((found for start, found in PREFIXES.items() if _numbered(word, start)), None)


def written(outcome: Outcome, side: Side | None = None) -> str | None:
    """Return upstream's word for an outcome; None where it has none (missing, unknown)."""
    return _WRITTEN.get((outcome, side), _PLAIN.get(outcome))


def said_by(outcome: Outcome) -> set[str]:
    """Return every word that means an outcome."""
    return {word for word, found in MEANINGS.items() if found.outcome == outcome}


def _numbered(word: str, start: str) -> bool:
    return word.startswith(start) and word[len(start) :].isdigit()
