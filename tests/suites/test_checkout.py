"""Models of a person's own checkout of TorchBench, of every interface that it has had since 2022."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from harness.journal import History, Journal
from harness.record import Case, Measure, Outcome, Planned, Protocol
from harness.runner import execute
from harness.workers import Stop, Workers
from suites import checkout
from suites.registry import LoadError
from suites.spec import Attention, Mode
from tests.harness.runs import Heard, make_run

CHECKOUT = Path(__file__).parent.parent / "data" / "torchbench_checkout"
SPECS = {spec.name: spec for spec in checkout.suite(CHECKOUT).models}
INSTALL = rf"Install what it needs: cd {CHECKOUT} && python install.py"


@pytest.fixture(autouse=True)
def as_before(monkeypatch):
    """A worker dies after its model; this process does not, and forgets what was imported."""
    monkeypatch.chdir(os.getcwd())
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    state = torch.get_rng_state()
    yield
    torch.set_rng_state(state)
    for name in [name for name in sys.modules if name.partition(".")[0] in ("torchbenchmark", "checkout_utils")]:
        del sys.modules[name]


def built(name, mode=Mode.INFERENCE, batch_size=None, device="cpu"):
    (spec,) = (each for each in checkout.suite(CHECKOUT, device).models if each.name == name)
    return checkout.build(spec, mode, batch_size, seed=7)


def test_listing():
    """All folders with a module are models, by name; one that stands in both trees is the first; no file is run."""
    folders = {name: Path(spec.build).parent.name for name, spec in SPECS.items()}

    assert sorted(folders) == list(folders)
    assert "notes" not in folders
    assert {"canary_package", "tiny_canary"} == {name for name, tree in folders.items() if tree == "canary_models"}
    assert "models" == folders["needs_jit"]


def test_listing_imports_nothing():
    """Neither torch nor a model is imported to list the models."""
    code = (
        f"import sys; from suites import checkout; checkout.suite({str(CHECKOUT)!r}); "
        "print({'torch', 'torchbenchmark'} & {*sys.modules})"
    )

    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert "set()" == said.stdout.strip()


def test_the_suite_is_not_ours():
    """It has a name of its own, so that results are not mixed, and the tolerances of our own networks."""
    suite = checkout.suite(CHECKOUT)

    assert ("torchbench-checkout", False) == (suite.name, suite.published)
    assert (1e-4, 1e-4, 1e-3) == tuple(suite.tolerance[key] for key in ("inference", "training", "amp"))


@pytest.mark.parametrize(
    ("folder", "said"),
    [
        ("nowhere", r"there is no folder .*nowhere$"),
        ("torchbenchmark", r"is inside of a checkout of TorchBench\. Give its root, .*torchbench_checkout$"),
        ("torchbenchmark/models/broken", r"Give its root, .*torchbench_checkout$"),
        ("..", r"is no checkout of TorchBench: it holds no model below torchbenchmark/models$"),
    ],
)
def test_no_checkout(folder, said):
    """A folder that is no checkout is refused, and one inside of a checkout is answered with its root."""
    with pytest.raises(ValueError, match=said):
        checkout.suite(CHECKOUT / folder)


@pytest.mark.parametrize(("mode", "test", "batch"), [(Mode.TRAINING, "train", 4), (Mode.INFERENCE, "eval", 2)])
def test_mode_decides(mode, test, batch):
    """The constructor is told the mode in its own word, and takes its own batch size."""
    workload = built("takes_jit", mode)

    assert {"test": test, "device": "cpu", "jit": False, "extra_args": []} == workload.module.asked
    assert (batch, 3) == workload.args[0].shape
    assert workload.loss is None


@pytest.mark.parametrize(
    ("name", "args", "kwargs"),
    [
        ("takes_jit", [(2, 3)], {}),
        ("needs_jit", [(2, 3), (2, 3)], {}),
        ("takes_names", [], {"weights": (3,), "states": (2, 3)}),
        ("takes_anything", [(2, 3)], {}),
        ("no_batch_size", [(2, 3)], {}),
        ("tiny_canary", [(2, 3)], {}),
    ],
)
def test_interfaces(name, args, kwargs):
    """With `jit`, required or not, and without; inputs as a tuple, a list, a dict or a tensor: the module runs."""
    workload = built(name)

    assert args == [each.shape for each in workload.args]
    assert kwargs == {key: tuple(value.shape) for key, value in workload.kwargs.items()}
    assert workload.module(*workload.args, **workload.kwargs) is not None


def test_batch_size():
    """A batch size goes to the constructor; without, that of metadata.yaml counts, by device, in eval."""
    assert 5 == len(built("takes_jit", batch_size=5).args[0])
    assert (6, 7) == tuple(len(built("listed_batch", device=device).args[0]) for device in ("cpu", "cuda"))
    assert 4 == len(built("listed_batch", Mode.TRAINING).args[0])


def test_precision_on_cuda():
    """On CUDA the model is asked for in float32, as it would be cast to half precision otherwise."""
    assert ["--precision", "fp32"] == built("takes_jit", device="cuda").module.asked["extra_args"]
    assert built("takes_anything", device="cpu").module.asked["extra_args"] is None


def test_root():
    """Files are read and modules imported from the checkout's root."""
    assert (2, 5) == tuple(built("reads_root").module(torch.zeros(2, 3)).shape)


def test_seeds_are_given_back():
    """A checkout replaces torch's function that seeds; afterwards it takes every seed again."""
    built("takes_jit")

    assert 8 == torch.manual_seed(8).initial_seed()


def test_seed():
    """Where the checkout does not seed, weights and inputs come from ours; the global generator does not move."""
    before = torch.get_rng_state()
    one, same = built("no_batch_size"), built("no_batch_size", Mode.TRAINING)
    other = checkout.build(SPECS["no_batch_size"], Mode.INFERENCE, None, seed=8)

    assert torch.equal(one.module.weight, same.module.weight)
    assert torch.equal(one.args[0], same.args[0])
    assert not torch.equal(one.module.weight, other.module.weight)
    assert torch.equal(before, torch.get_rng_state())


@pytest.mark.parametrize(
    ("name", "asked", "said"),
    [
        ("only_eval", {"mode": Mode.TRAINING}, r"does not support train on cpu like this \(no train here\)\.$"),
        ("only_cuda", {}, r"does not support eval on cpu like this \(raise NotImplementedError\)\.$"),
        ("fixed_batch", {"batch_size": 8}, r"does not support eval .* \(the batch size is fixed\)\.$"),
        ("no_batch_size", {"batch_size": 8}, r"its constructor takes no `batch_size`, so not batch size 8\.$"),
        ("no_test", {}, r"its constructor takes no `test`, so not the mode\.$"),
        ("no_module", {}, r"get_module\(\) returns no pair of a module and its inputs\.$"),
        ("odd_inputs", {}, r"inputs of kind generator, not a tuple, a list or a mapping\.$"),
    ],
)
def test_unsupported(name, asked, said):
    """What the original does not do is said to be unsupported, in one line with its own words."""
    with pytest.raises(LoadError, match=rf"^{name} is unsupported here: .*{said}"):
        built(name, **asked)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("needs_package", rf"needs 'a_package_.*_9d2', which is not installed here\. {INSTALL} needs_package$"),
        ("canary_package", rf"which is not installed here\. {INSTALL} --canary canary_package$"),
        ("needs_newer", rf"does not fit to the packages here \(cannot import name .*\)\. {INSTALL} needs_newer$"),
        ("needs_checkout", r"needs 'torchbenchmark.util.missing', which the checkout lacks: .* Check it out again\.$"),
        ("needs_data", rf"data that are missing \(no pictures: run the installer\)\. {INSTALL} needs_data$"),
        ("needs_data_silently", r"data that are missing \(assert os.path.exists\(.*pictures\"\)\)\. Install"),
        ("needs_network", rf"can read or fetch no data \(.*no route to the weights.*\)\. {INSTALL} needs_network$"),
        ("no_class", r"torchbenchmark\.models\.no_class has no class Model"),
    ],
)
def test_not_installed(name, said):
    """What is missing is named in one line, with the command that installs it."""
    with pytest.raises(LoadError, match=rf"^{name}:? .*{said}"):
        built(name)


def test_paths_are_quoted(tmp_path):
    """The command can be pasted, whatever the checkout's folder is called."""
    model = tmp_path / "my checkout" / "torchbenchmark" / "models" / "lacking"
    model.mkdir(parents=True)
    (model / "__init__.py").write_text("import a_package_that_is_not_installed_9d2")
    (spec,) = checkout.suite(tmp_path / "my checkout").models

    with pytest.raises(LoadError, match=r"cd '.*/my checkout' && python install\.py lacking$"):
        checkout.build(spec, Mode.INFERENCE, None, seed=7)


def test_other_failures_come_out():
    """A model that fails by itself is not said to lack something."""
    with pytest.raises(RuntimeError, match="^a layer of width 5 where 3 is expected$"):
        built("broken")


def test_out_of_memory_comes_out(tmp_path):
    """Memory that cannot be had is no missing file."""
    model = tmp_path / "torchbenchmark" / "models" / "large"
    model.mkdir(parents=True)
    (model / "__init__.py").write_text(f"raise OSError({errno.ENOMEM}, 'cannot allocate memory')")
    (spec,) = checkout.suite(tmp_path).models

    with pytest.raises(OSError, match="cannot allocate memory"):
        checkout.build(spec, Mode.INFERENCE, None, seed=7)


def test_attention_is_the_models_own():
    """Attention cannot be chosen."""
    with pytest.raises(LoadError, match=r"takes_jit: it chooses its own attention\. Leave out --attention eager\."):
        checkout.build(SPECS["takes_jit"], Mode.INFERENCE, None, seed=7, attention=Attention.EAGER)


def test_folder_that_is_gone():
    """A run that is resumed after its checkout was moved says so."""
    spec = SPECS["takes_jit"].model_copy(update={"build": "/nowhere/torchbenchmark/models/takes_jit"})

    with pytest.raises(LoadError, match=r"there is no such folder any more\. Correct --torchbench\.$"):
        checkout.build(spec, Mode.INFERENCE, None, seed=7)


@pytest.fixture(scope="module")
def records(tmp_path_factory):
    """Return the records of some of its models, each measured in a process of its own, by name and mode."""
    asked = [("takes_jit", Mode.TRAINING), ("only_eval", Mode.TRAINING)] + [
        (name, Mode.INFERENCE)
        for name in ("takes_names", "fixed_batch", "tiny_canary", "draws", "needs_data", "broken")
    ]
    workers = Workers(["suites.checkout"])
    workers.host(None)
    plan = [
        Planned(
            case=Case(
                suite=checkout.NAME,
                model=name,
                device="cpu",
                mode=mode,
                precision="fp32",
                backend="aot_eager",
                batch_size=None,
            ),
            spec=SPECS[name],
            module="suites.checkout",
            tolerance=1e-4,
            timeout_s=60.0,
        )
        for name, mode in asked
    ]
    protocol = Protocol(measure=Measure.ACCURACY, memory_limit_bytes=8 << 30)
    run = make_run(*plan).model_copy(update={"protocol": protocol})
    heard = Heard()
    with Journal(tmp_path_factory.mktemp("runs") / f"{run.id}.jsonl") as journal:
        journal.write(run)
        execute(History(run), workers, journal, [heard], Stop())
    found = [call for name, call in heard.calls if name == "record"]
    return {(record.case.model, record.case.mode): record for record in found}


@pytest.mark.parametrize("name", ["takes_names", "fixed_batch", "tiny_canary", "draws"])
def test_measured(records, name):
    """A worker measures what the checkout hands out."""
    record = records[name, Mode.INFERENCE]

    assert Outcome.PASS == record.outcome, record.text
    assert (3 if name == "fixed_batch" else 2) == record.observed.batch_size


def test_measured_in_training(records):
    """In training the loss is ours: the mean of the output."""
    record = records["takes_jit", Mode.TRAINING]

    assert (Outcome.PASS, True, 4) == (record.outcome, record.observed.grad, record.observed.batch_size)


def test_random_numbers_are_seen(records):
    """That a model draws random numbers is seen although its checkout fixes the seed."""
    assert records["draws", Mode.INFERENCE].observed.draws_random_numbers
    assert not records["tiny_canary", Mode.INFERENCE].observed.draws_random_numbers


@pytest.mark.parametrize(
    ("name", "mode", "said"),
    [
        ("only_eval", Mode.TRAINING, "LoadError: only_eval is unsupported here: "),
        (
            "needs_data",
            Mode.INFERENCE,
            "LoadError: needs_data asserts what does not hold, mostly data that are missing",
        ),
        ("broken", Mode.INFERENCE, "RuntimeError: a layer of width 5 where 3 is expected"),
    ],
)
def test_what_cannot_be_loaded_is_a_row(records, name, mode, said):
    """A model that cannot be loaded ends as a row with the reason and the remedy, and the others run."""
    record = records[name, mode]

    assert Outcome.MODEL_FAIL_TO_LOAD == record.outcome
    assert record.text.startswith(said)
    assert "Traceback" not in record.text
