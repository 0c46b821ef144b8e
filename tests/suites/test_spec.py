"""An entry of a suite's file in its two presets, and the tiers that a suite has."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from suites.spec import Mode, ModelSpec, Preset, Small, SuiteSpec, Tier

ENTRY = ModelSpec(
    name="net",
    family="nets",
    parameters=9,
    batch={"inference": 64, "training": 32},
    accuracy_batch=8,
    input_size=(3, 64, 64),
    eval_input_size=(3, 72, 72),
    length={"inference": 128},
    arguments={"depth": 9, "width": 4},
    repeats=3,
    case_s=40.0,
    tolerance={"amp": 0.1},
    small=Small(
        input_size=(3, 8, 8), length=16, repeats=1, arguments={"depth": 2, "heads": 1}, tolerance={"training": 0.2}
    ),
)


def test_full():
    """In full an entry is as it is written, without its small preset."""
    assert ENTRY.model_copy(update={"small": None}) == ENTRY.at(Preset.FULL)


def test_small():
    """In small each value takes the place of the entry's in both modes; what is known of the full size is dropped."""
    small = ENTRY.at(Preset.SMALL)

    assert {Mode.INFERENCE: 2, Mode.TRAINING: 2} == small.batch
    assert ((3, 8, 8), (3, 8, 8)) == (small.input_size, small.eval_input_size)
    assert {Mode.INFERENCE: 16, Mode.TRAINING: 16} == small.length
    assert ({"depth": 2, "width": 4, "heads": 1}, 1) == (small.arguments, small.repeats)
    assert (None, None, None, None) == (small.small, small.parameters, small.case_s, small.accuracy_batch)
    assert ("net", "nets", {"amp": 0.1, "training": 0.2}) == (small.name, small.family, small.tolerance)


def test_small_says_only_what_differs():
    """What a small preset does not say is as in the entry, but for the batch."""
    small = ENTRY.model_copy(update={"small": Small(batch=1)}).at(Preset.SMALL)

    same = ("input_size", "eval_input_size", "length", "arguments", "repeats")
    assert [getattr(ENTRY, name) for name in same] == [getattr(small, name) for name in same]
    assert {Mode.INFERENCE: 1, Mode.TRAINING: 1} == small.batch


def test_no_small():
    """A model without a small preset has none to be built in."""
    with pytest.raises(ValueError, match='model "net" has no small preset'):
        ENTRY.at(Preset.FULL).at(Preset.SMALL)


@pytest.mark.parametrize("fields", [{"batch": 0}, {"repeats": 0}, {"length": 0}, {"input_size": ()}, {"batches": 2}])
def test_small_is_no_nothing(fields):
    """A small preset holds one of everything at least, and no unknown field."""
    with pytest.raises(ValidationError):
        Small(**fields)


def test_tiers():
    """A suite has the tiers of its file, and one of every model."""
    quick = Tier(models=("net",))
    models = (ENTRY, ModelSpec(name="other"))
    suite = SuiteSpec(name="nets", about="", module="nets", tolerance={}, tiers={"quick": quick}, models=models)

    assert {"quick": quick, "full": Tier(models=("net", "other"))} == suite.every_tier


@pytest.mark.parametrize(
    "entry",
    [
        {"batch": {"unknown": 4}},
        {"length": {"unknown": 4}},
        {"skip": [{"why": "slow", "mode": "unknown"}]},
        {"skip": [{"why": "slow", "precision": "unknown"}]},
    ],
)
def test_unknown_cannot_be_asked_for(entry) -> None:
    """What a file from elsewhere may leave open, a suite may not ask for."""
    with pytest.raises(ValidationError, match="cannot be asked for"):
        ModelSpec.model_validate({"name": "net", **entry})
