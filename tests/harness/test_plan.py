"""A plan follows from what is asked for, and nothing that is asked for is passed over."""

from __future__ import annotations

from dataclasses import replace
from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness import config
from harness.errors import UsageError
from harness.plan import BOTH, Matrix, matches, parse_shard, plan, tolerance
from harness.record import CompileScope, DeviceProfile, OptimizerKind
from suites import user
from suites.spec import PRECISIONS, Attention, Mode, ModelSpec, Precision, Preset, Skip, Small, SuiteSpec, Tier

CPU = DeviceProfile(name="cpu", kind="cpu", batch_divisor=32, timeout_s=100.0)
TODAY = date(2026, 12, 1)
NAMES = ("resnet18", "wide_resnet18", "resnet18.a1_in1k", "resnet180", "alexnet")


def entry(name, **fields):
    return ModelSpec(name=name, **{"batch": {"inference": 128, "training": 64}, **fields})


def suite(*models, name="nets", **fields):
    values = {"tolerance": {"inference": 1e-3, "training": 1e-2}, "tiers": {}, **fields}
    return SuiteSpec(name=name, about="", module=f"suites.{name}", models=models, **values)


NETS = suite(
    *(entry(name, parameters=100 - place, small=Small()) for place, name in enumerate(NAMES)),
    outside={"lenet": "too old", "rcnn_*": "needs pictures"},
    tiers={"quick": Tier(models=NAMES[:3], modes=(Mode.INFERENCE,), reduced_precision=NAMES[:1])},
)


def planned(suites=NETS, profile=CPU, today=TODAY, **asked):
    suites = [suites] if isinstance(suites, SuiteSpec) else suites
    return plan(Matrix(suites=tuple(each.name for each in suites), **asked), suites, profile, today)


def names(*args, **asked):
    return [each.case.model for each in planned(*args, **{"modes": (Mode.INFERENCE,), **asked})]


def test_plain_plan():
    """Without options every model runs in both modes, in FP32, compiled by inductor."""
    cases = [each.case for each in planned()]

    assert 2 * len(NAMES) == len(cases)
    assert {*BOTH} == {each.mode for each in cases}
    assert {(Precision.FP32, "inductor", "default")} == {(c.precision, c.backend, c.compile_mode) for c in cases}
    assert len(cases) == len({each.id for each in cases})


def test_order():
    """The smallest model first; all of FP32 before anything else; unknown sizes last, as in the file."""
    nets = suite(entry("unknown_b"), entry("big", parameters=9), entry("small", parameters=1), entry("unknown_a"))

    cases = [each.case for each in planned(nets, precisions=(Precision.AMP, Precision.FP32))]

    order = ["small", "small", "big", "big", "unknown_b", "unknown_b", "unknown_a", "unknown_a"]
    assert order * 2 == [each.model for each in cases]
    assert [Precision.FP32] * 8 + [Precision.AMP] * 8 == [each.precision for each in cases]
    assert [*BOTH] * 8 == [each.mode for each in cases]


def test_suites_keep_their_order():
    """Suites run one after the other, as they were named."""
    other = suite(entry("tiny", parameters=1), name="other")

    assert ["nets"] * 5 + ["other"] == [p.case.suite for p in planned([NETS, other], modes=(Mode.INFERENCE,))]


@pytest.mark.parametrize(
    ("patterns", "chosen"),
    [
        (("resnet18",), {"resnet18"}),
        (("*resnet18*",), {"resnet18", "wide_resnet18", "resnet18.a1_in1k", "resnet180"}),
        (("resnet18?",), {"resnet180"}),
        (("resnet18", "alex*"), {"resnet18", "alexnet"}),
        (("nets/alexnet",), {"alexnet"}),
        (("nets/*18",), {"resnet18", "wide_resnet18"}),
    ],
)
def test_choice_of_models(patterns, chosen):
    """A plain name is the whole name; parts are written as globs; the suite may stand in front."""
    assert chosen == {*names(models=patterns)}
    assert {*NAMES} - chosen == {*names(excludes=patterns)}


def test_globs_tell_case():
    """Capitals count, on every system."""
    assert not matches("Res*", "nets", "resnet18")


def test_names_with_brackets():
    """A name that looks like a glob is found by its exact spelling."""
    assert matches("a[1]", "nets", "a[1]")


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"models": ("resnet81",)}, r"--model resnet81: no such model in nets\. Close: .*resnet18"),
        ({"models": ("resnet",)}, r"'\*resnet\*' finds 4\. See `bench list models --suite nets`"),
        ({"models": ("resnet18", "nothing*")}, r"--model nothing\*: no such model"),
        ({"excludes": ("alexnt",)}, r"--exclude alexnt: no such model in nets\. Close: alexnet"),
        ({"models": ("net/alexnet",)}, r"Close: nets/alexnet"),
        ({"tier": "quik"}, r"Suite nets has no tier 'quik'\. Close: quick\. It has: quick, full\."),
        ({"models": ("lenet",)}, r"--model lenet: lenet is none of nets's models: too old\.$"),
        ({"models": ("nets/rcnn_50",)}, r"--model nets/rcnn_50: rcnn_\* is none of nets's models: needs pictures\.$"),
        ({"models": ("rcnn*",)}, r"--model rcnn\*: rcnn_\* is none of nets's models: needs pictures\.$"),
        ({"excludes": ("lenet",)}, r"--exclude lenet: lenet is none of nets's models: too old\.$"),
        ({"tier": "quick", "models": ("alexnet",)}, r"--model alexnet: not in tier quick"),
        ({"models": ("alexnet",), "excludes": ("alex*",)}, r"--exclude alex\* removes every model"),
        ({"excludes": ("*",)}, r"--exclude \* removes every model"),
        (
            {"tier": "quick", "models": ("resnet18.a1_in1k",), "precisions": (Precision.AMP,)},
            r"--amp: tier quick runs none of these models in it",
        ),
        (
            {"tier": "quick", "excludes": ("resnet18",), "precisions": (Precision.FP32, Precision.BF16)},
            r"--bf16: tier quick runs none",
        ),
        ({"tf32": True}, r"--tf32 needs an NVIDIA GPU with TF32 units, and device cpu has none"),
        ({"tf32": True, "precisions": (Precision.BF16, Precision.FP16)}, r"--tf32 changes only FP32, which is not"),
        ({"optimizer": OptimizerKind.SGD, "modes": (Mode.INFERENCE,)}, r"--optimizer changes only training"),
        ({"optimizer": OptimizerKind.SGD, "tier": "quick"}, r"--optimizer changes only training"),
        (
            {"compile_mode": "max-autotune", "backend": "eager"},
            r"--compile-mode .* only the inductor backend, not eager",
        ),
        ({"dynamic": True, "backend": "none"}, r"--dynamic .* --backend none compiles nothing"),
        ({"compile_scope": CompileScope.STEP, "backend": "none"}, r"--compile-scope step .* compiles nothing"),
        ({"limit": 0}, r"--limit 0: must be above 0"),
        ({"batch_size": -1}, r"--batch-size -1: must be above 0"),
        ({"timeout_s": 0.0}, r"--timeout 0.0: must be above 0"),
        ({"timeout_s": float("nan")}, r"--timeout nan: must be above 0"),
        ({"timeout_s": float("inf")}, r"--timeout inf: must be above 0, and finite"),
        ({"precisions": ()}, r"No precision is named"),
        ({"shard": (11, 11)}, r"--shard 11/11: nothing is left, as the whole plan holds 10 cases"),
        ({"shard": (0, 2)}, r"numbered 1 to 2"),
    ],
)
def test_refusals(asked, message):
    """What is unknown, contradicts itself or leaves nothing is refused with the way out."""
    with pytest.raises(UsageError, match=message):
        planned(**asked)


def test_suite_without_models():
    """An empty suite is no plan."""
    with pytest.raises(UsageError, match="suite empty holds no model"):
        planned(suite(name="empty"))


def test_tier():
    """A tier names its models, its modes, and those of its models that run in reduced precision."""
    cases = [each.case for each in planned(tier="quick", precisions=(Precision.FP32, Precision.AMP))]

    assert [*reversed(NAMES[:3]), NAMES[0]] == [each.model for each in cases]
    assert [Precision.FP32] * 3 + [Precision.AMP] == [each.precision for each in cases]
    assert {Mode.INFERENCE} == {each.mode for each in cases}


def test_mode_wins_over_tier():
    """A mode that is asked for takes the place of the tier's."""
    assert {Mode.TRAINING} == {p.case.mode for p in planned(tier="quick", modes=(Mode.TRAINING,))}


def test_tier_of_every_model():
    """Every suite has a tier of all of its models, in both modes and all in reduced precision, without saying so."""
    both = (Precision.FP32, Precision.AMP)

    assert planned(precisions=both) == planned(tier="full", precisions=both)
    assert planned(suite(entry("net"), tiers={}), tier="full")


@pytest.mark.parametrize("name", ["timm", "torchbench", "huggingface"])
def test_quick_tiers_are_the_smallest(name):
    """The quick tier of a published suite is its three smallest models, in inference."""
    published = config.suite(name)
    smallest = sorted(published.models, key=lambda model: model.parameters)[:3]

    assert [model.name for model in smallest] == [*published.tiers["quick"].models]
    assert (Mode.INFERENCE,) == published.tiers["quick"].modes


def test_small_preset():
    """A small case is built of its entry's small preset, not divided by the device, and is another case."""
    small = Small(input_size=(3, 8, 8), length=16, repeats=1, arguments={"depth": 1})
    nets = suite(
        entry(
            "net",
            input_size=(3, 64, 64),
            parameters=9,
            accuracy_batch=64,
            arguments={"depth": 9, "width": 4},
            small=small,
        )
    )

    (full, _), (cut, training) = planned(nets), planned(nets, preset=Preset.SMALL)

    assert (2, 2, None) == (cut.case.batch_size, training.case.batch_size, cut.accuracy_batch)
    assert ((3, 8, 8), 16, 1) == (cut.spec.eval_input_size, cut.spec.length[Mode.INFERENCE], cut.spec.repeats)
    assert {"depth": 1, "width": 4} == cut.spec.arguments
    assert (9, (3, 64, 64), None) == (full.spec.parameters, full.spec.input_size, full.spec.small)
    assert full.case.id != cut.case.id
    assert "small inference fp32" == cut.case.label


def test_no_small_preset():
    """A model without a small preset is refused where one is asked for, unless it is left out."""
    nets = suite(entry("net", small=Small()), entry("other"))

    with pytest.raises(
        UsageError, match=r"--preset small: nets/other has no small preset\. Leave it out with --exclude"
    ):
        planned(nets, preset=Preset.SMALL)
    assert ["net"] == names(nets, preset=Preset.SMALL, excludes=("other",))


def test_quick_tier_of_the_published_models():
    """The first look is four cases: three models in FP32, the smallest also in AMP."""
    cases = [
        each.case
        for each in plan(
            Matrix(suites=("timm",), tier="quick", precisions=(Precision.FP32, Precision.AMP)),
            [config.suite("timm")],
            config.device("cpu"),
            TODAY,
        )
    ]

    assert ["lcnet_050", "regnety_002", "mobilenetv2_100", "lcnet_050"] == [each.model for each in cases]
    assert [None, None, None, "bfloat16"] == [each.amp_dtype for each in cases]


@pytest.mark.parametrize(
    ("fields", "mode", "asked", "expected"),
    [
        ({}, Mode.INFERENCE, None, 4),
        ({}, Mode.TRAINING, None, 2),
        ({"batch": {"inference": 100}}, Mode.INFERENCE, None, 3),
        ({"batch": {"inference": 8}}, Mode.INFERENCE, None, 1),
        ({"batch": {"inference": 8}}, Mode.TRAINING, None, None),
        ({"batch": {}}, Mode.INFERENCE, None, None),
        ({"batch": {}}, Mode.INFERENCE, 5, 5),
        ({}, Mode.INFERENCE, 7, 7),
    ],
)
def test_batch_size(fields, mode, asked, expected):
    """A list's batch is divided by the device's divisor, rounded down, at least 1; what is asked for is not divided."""
    cases = planned(suite(entry("net", **fields)), batch_size=asked, modes=(mode,))

    assert expected == cases[0].case.batch_size


@pytest.mark.parametrize(
    ("accuracy_batch", "asked", "expected"),
    [(None, None, None), (2, None, 2), (4, None, None), (8, None, None), (8, 16, 8)],
)
def test_accuracy_batch(accuracy_batch, asked, expected):
    """A smaller batch for the check is planned only where it is smaller."""
    nets = suite(entry("net", accuracy_batch=accuracy_batch))

    assert expected == planned(nets, batch_size=asked, modes=(Mode.INFERENCE,))[0].accuracy_batch


@pytest.mark.parametrize(
    ("of_model", "of_suite", "expected"),
    [
        ({}, {}, 1e-3),
        ({}, {"amp": 0.3}, 0.3),
        ({}, {"bf16": 0.3}, 1e-3),
        ({"inference": 0.1}, {"amp": 0.3}, 0.1),
        ({"amp": 0.2, "inference": 0.1}, {"amp": 0.3}, 0.2),
        ({"training": 0.1}, {}, 1e-3),
    ],
)
def test_tolerance(of_model, of_suite, expected):
    """The model's before the suite's; in each, the precision's before the mode's."""
    nets = suite(entry("net", tolerance=of_model), tolerance={"inference": 1e-3, "training": 1e-2, **of_suite})

    assert expected == tolerance(nets, nets.models[0], Mode.INFERENCE, Precision.AMP)


def test_tolerance_of_nothing():
    """A suite that says nothing about a mode is refused."""
    with pytest.raises(UsageError, match="Suite nets gives no tolerance for training"):
        planned(suite(entry("net"), tolerance={"inference": 1e-3}))


@pytest.mark.parametrize(
    ("condition", "skipped"),
    [
        ({}, 4),
        ({"device": "cpu"}, 4),
        ({"device": "gpu"}, 0),
        ({"mode": "training"}, 2),
        ({"precision": "amp"}, 2),
        ({"precision": "amp", "mode": "training"}, 1),
    ],
)
def test_skips_keep_their_place(condition, skipped):
    """Skipped cases stay in the plan with the reason; a condition that is not given holds for all."""
    nets = suite(entry("net", skip=(Skip(why="too slow", **condition),)))

    cases = planned(nets, precisions=(Precision.FP32, Precision.AMP))

    assert 4 == len(cases)
    assert ["too slow"] * skipped == [each.skip for each in cases if each.skip]


def test_skip_by_kind_of_device():
    """A skip's device may be a profile or a kind of device."""
    nets = suite(entry("net", skip=(Skip(why="no", device="cpu"),)))

    assert all(each.skip for each in planned(nets, profile=CPU.model_copy(update={"name": "graviton"})))


@pytest.mark.parametrize(
    ("until", "skip", "expired"),
    [
        (date(2026, 12, 2), "crashes", None),
        (date(2026, 12, 1), "crashes", None),
        (date(2026, 11, 30), None, "crashes (until 2026-11-30)"),
    ],
)
def test_skip_with_a_last_day(until, skip, expired):
    """A skip holds up to and including its last day; afterwards the case runs, and says which skip is over."""
    nets = suite(entry("net", skip=(Skip(why="crashes", until=until, mode="training"),)))

    inference, training = planned(nets)

    assert (None, None) == (inference.skip, inference.expired)
    assert (skip, expired) == (training.skip, training.expired)


def test_another_skip_still_holds():
    """Where one skip has expired and another holds, the case is skipped and nothing more is said."""
    over = Skip(why="crashes", until=date(2026, 1, 1))
    nets = suite(entry("net", skip=(over, Skip(why="too slow", device="cpu"), Skip(why="too large", device="cuda"))))

    assert {("too slow", None)} == {(each.skip, each.expired) for each in planned(nets)}
    assert {("crashes (until 2026-01-01)",)} == {
        (each.expired,) for each in planned(nets, profile=CPU.model_copy(update={"name": "m", "kind": "mps"}))
    }


def test_attention_of_a_file(tmp_path):
    """A model file chooses its own attention: asking for another is refused before anything runs."""
    files = user.suite([tmp_path / "mine.py"])

    assert planned([NETS, files])
    with pytest.raises(UsageError, match=r"--attention eager: a model file chooses its own attention \(mine\)"):
        planned([NETS, files], attention=Attention.EAGER)


GPU = DeviceProfile(name="rtx3090", kind="cuda", tf32=True, amp_dtype="float16", timeout_s=600.0)
SERVER = DeviceProfile(name="a100", kind="cuda", tf32=True)
QUARTER = CPU.model_copy(update={"name": "quarter", "batch_divisor": 4})
BOXES = {each.name: each for each in (CPU, QUARTER, GPU, SERVER)}

PUBLISHED = suite(
    entry("plain", parameters=1),
    entry("odd", batch={"inference": 23 // 4, "training": 23 // 4}, tolerance={"amp": 0.04}),
    entry("vit", accuracy_batch=4, tolerance={"training": 0.02}),
    entry("huge", accuracy_batch=64, skip=(Skip(why="needs 40 GiB", device="rtx3090"),)),
    entry("flaky", skip=(Skip(why="crashes", until=date(2026, 11, 30), mode="training", precision="amp"),)),
    entry("wrong", skip=(Skip(why="nan", until=TODAY, device="cuda", precision="amp"),)),
    name="published",
    accuracy_batch=8,
)

OVER = "crashes (until 2026-11-30)"


def case(row):
    """Resolve one row of the table below: profile, entry, mode, precision and whatever else is asked for."""
    device, model, mode, precision, *options = row.split()
    asked = {"attention": Attention.EAGER} if "eager" in options else {}
    asked |= {"tf32": True} if "tf32" in options else {}
    asked |= {"batch_size": int(each)} if (each := next((o for o in options if o.isdigit()), None)) else {}
    (found,) = planned(
        PUBLISHED,
        profile=BOXES[device],
        models=(model,),
        modes=(Mode(mode),),
        precisions=(Precision(precision),),
        **asked,
    )
    return found


# fmt: off
ROWS = [
    # profile entry mode precision asked     batch check tol.   autocast    limit  skipped         expired
    ("a100    plain inference fp32",          128,   8, 1e-3, None,       1800.0, None,           None),
    ("a100    plain training  fp32",           64,   8, 1e-2, None,       1800.0, None,           None),
    ("a100    plain training  amp",            64,   8, 1e-2, "bfloat16", 1800.0, None,           None),
    ("a100    plain inference fp32 tf32",     128,   8, 1e-3, None,       1800.0, None,           None),
    ("a100    plain inference fp32 eager",    128,   8, 1e-3, None,       1800.0, None,           None),
    ("a100    plain inference fp32 4",          4, None, 1e-3, None,      1800.0, None,           None),
    ("a100    plain inference fp32 9",          9,   8, 1e-3, None,       1800.0, None,           None),
    ("rtx3090 plain inference amp",           128,   8, 1e-3, "float16",   600.0, None,           None),
    ("cpu     plain inference fp32",            4, None, 1e-3, None,       100.0, None,           None),
    ("quarter plain training  bf16",           16,   8, 1e-2, None,        100.0, None,           None),
    ("a100    odd   inference fp32",            5, None, 1e-3, None,      1800.0, None,           None),
    ("a100    odd   training  amp",             5, None, 0.04, "bfloat16", 1800.0, None,          None),
    ("quarter odd   inference fp32",            1, None, 1e-3, None,       100.0, None,           None),
    ("cpu     odd   training  fp32",            1, None, 1e-2, None,       100.0, None,           None),
    ("a100    vit   inference fp32",          128,   4, 1e-3, None,       1800.0, None,           None),
    ("a100    vit   training  fp32",           64,   4, 0.02, None,       1800.0, None,           None),
    ("cpu     vit   inference fp32",            4, None, 1e-3, None,       100.0, None,           None),
    ("cpu     vit   inference fp32 8",          8,   4, 1e-3, None,        100.0, None,           None),
    ("a100    huge  inference fp32",          128,  64, 1e-3, None,       1800.0, None,           None),
    ("a100    huge  training  fp32",           64, None, 1e-2, None,      1800.0, None,           None),
    ("rtx3090 huge  training  fp32",           64, None, 1e-2, None,       600.0, "needs 40 GiB", None),
    ("a100    flaky training  amp",            64,   8, 1e-2, "bfloat16", 1800.0, None,           OVER),
    ("a100    flaky inference amp",           128,   8, 1e-3, "bfloat16", 1800.0, None,           None),
    ("cpu     wrong inference amp",             4, None, 1e-3, "bfloat16", 100.0, None,           None),
    ("rtx3090 wrong inference amp",           128,   8, 1e-3, "float16",   600.0, "nan",          None),
    ("a100    wrong training  fp32",           64,   8, 1e-2, None,       1800.0, None,           None),
]
# fmt: on


@pytest.mark.parametrize(("row", "batch", "check", "tolerance", "amp", "timeout_s", "skip", "expired"), ROWS)
def test_table(row, batch, check, tolerance, amp, timeout_s, skip, expired):
    """Profile x entry x mode x precision x what is asked for: batch, batch of the check, tolerance, limit, skips."""
    found = case(row)

    assert (batch, check) == (found.case.batch_size, found.accuracy_batch)
    assert (tolerance, timeout_s) == (found.tolerance, found.timeout_s)
    assert (skip, expired) == (found.skip, found.expired)
    assert amp == found.case.amp_dtype
    assert ("tf32" in row) == found.case.tf32
    assert ("eager" in row) == (found.case.attention == Attention.EAGER)


def test_amp_format_is_the_devices():
    """Autocast's format comes from the profile, and stands only where there is autocast."""
    cases = planned(profile=CPU.model_copy(update={"amp_dtype": "float16"}), precisions=PRECISIONS)

    assert {("amp", "float16"), ("fp32", None), ("bf16", None), ("fp16", None)} == {
        (each.case.precision.value, each.case.amp_dtype) for each in cases
    }


def test_tf32_belongs_to_fp32():
    """In a plan of several precisions TF32 stands in the FP32 cases alone."""
    profile = CPU.model_copy(update={"name": "gpu", "kind": "cuda", "tf32": True})

    cases = [each.case for each in planned(profile=profile, tf32=True, precisions=PRECISIONS)]

    assert {("fp32", True), ("amp", False), ("bf16", False), ("fp16", False)} == {(c.precision, c.tf32) for c in cases}


def test_optimizer_belongs_to_training():
    """In a plan of both modes, the optimizer stands in the training cases alone."""
    cases = [each.case for each in planned(optimizer=OptimizerKind.ADAM)]

    assert {(Mode.INFERENCE, OptimizerKind.NONE), (Mode.TRAINING, OptimizerKind.ADAM)} == {
        (each.mode, each.optimizer) for each in cases
    }


OTHER = {
    "suites": ("other",),
    "models": ("alexnet",),
    "excludes": ("alexnet",),
    "tier": "quick",
    "limit": 1,
    "modes": (Mode.TRAINING,),
    "precisions": (Precision.FP16,),
    "tf32": True,
    "backend": "eager",
    "compile_mode": "reduce-overhead",
    "compile_scope": CompileScope.STEP,
    "optimizer": OptimizerKind.SGD,
    "dynamic": True,
    "deterministic": True,
    "attention": Attention.EAGER,
    "preset": Preset.SMALL,
    "batch_size": 3,
    "timeout_s": 5.0,
    "shard": (1, 2),
}


@pytest.mark.parametrize("name", Matrix.__dataclass_fields__)
def test_no_option_is_ignored(name):
    """Each option by itself changes the plan, or is refused."""
    other = suite(entry("tiny"), name="other")
    asked = replace(Matrix(suites=("nets",)), **{name: OTHER[name]})
    try:
        changed = plan(asked, [other if name == "suites" else NETS], CPU, TODAY)
    except UsageError:
        assert "tf32" == name
        return

    assert planned() != changed


@given(count=st.integers(1, 10))
def test_shards_are_disjoint_and_complete(count):
    """The parts of a plan together are the plan, each case once, in the order of the plan."""
    whole = planned()

    parts = [planned(shard=(index, count)) for index in range(1, count + 1)]

    assert sorted(each.case.id for each in whole) == sorted(each.case.id for part in parts for each in part)
    assert all(list(part) == [each for each in whole if each in part] for part in parts)
    assert max(map(len, parts)) - min(map(len, parts)) <= 1


@pytest.mark.parametrize(("text", "shard"), [("1/1", (1, 1)), ("2/4", (2, 4)), ("04/10", (4, 10))])
def test_parse_shard(text, shard):
    """The first of n parts is 1/n."""
    assert shard == parse_shard(text)


@pytest.mark.parametrize(
    "text", ["", "2", "2/", "/4", "a/b", "2/4/6", "-1/4", "1.5/4", " 1/2", "0/4", "5/4", "0/0", "²/4"]
)
def test_parse_shard_refuses(text):
    """Anything else is refused with the way to write it."""
    with pytest.raises(UsageError, match="--shard"):
        parse_shard(text)


def test_plan_is_pure():
    """The same question has the same answer, down to the ids."""
    assert planned() == planned()
    assert [each.case.id for each in planned()] == [each.case.id for each in planned()]
