"""A person's own file is a model, and so is a function of it or of a module."""

from __future__ import annotations

import atexit
import random
import subprocess
import sys
import time
from collections import UserDict
from pathlib import Path

import numpy
import pytest
import torch

from suites import user
from suites.registry import LoadError, builder
from suites.spec import Attention, Mode, ModelSpec

CASES = Path(__file__).parent.parent / "data" / "cases"
FAILS_TO_LOAD = "s17-load-fails-missing-package/needs.py"
FILES = sorted(path for path in CASES.glob("*/*.py") if str(path.relative_to(CASES)) != FAILS_TO_LOAD)

PLAIN = """
import torch

def build():
    return torch.nn.Linear(3, 2)

def inputs():
    return (torch.randn(4, 3),), {}
"""


@pytest.fixture(autouse=True)
def flags_come_back():
    """Files may set global flags; a worker dies afterwards, this process does not."""
    state = torch.get_rng_state()
    yield
    torch.set_rng_state(state)
    torch.set_default_dtype(torch.float32)
    torch.set_grad_enabled(True)
    torch.use_deterministic_algorithms(False)
    atexit.unregister(time.sleep)


@pytest.fixture
def write(tmp_path):
    """Write a file and return its entry."""

    def write(text, name="mine.py"):
        (tmp_path / name).write_text(text)
        return user.suite([tmp_path / name]).models[0]

    return write


def load(spec, batch_size=None, mode=Mode.INFERENCE):
    return builder("suites.user")(spec, mode, batch_size, seed=0)


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name[:3]}-{path.stem}")
def test_example_files_load(path, capfd):
    """Files like those of bug reports load, with arguments for their model."""
    workload = load(user.suite([path]).models[0])

    assert isinstance(workload.module, torch.nn.Module)
    assert isinstance(workload.args, tuple)
    assert workload.args or len(workload.kwargs)


def test_missing_package():
    """What fails while loading comes out as it is, with the package's name."""
    with pytest.raises(ModuleNotFoundError, match="a_package_that_is_not_installed"):
        load(user.suite([CASES / FAILS_TO_LOAD]).models[0])


def test_mapping_stays_a_mapping():
    """Keyword arguments may be any mapping, and the module can be called with it."""
    workload = load(user.suite([CASES / "s02-input-structure-dict-subclass-inputs" / "good.py"]).models[0])

    assert isinstance(workload.kwargs, UserDict)
    assert (3, 2) == workload.module(*workload.args, **workload.kwargs).shape


def test_batch_size():
    """A batch size goes to `inputs`; without one the file's own default holds."""
    spec = user.suite([CASES / "s19-memory-smaller-batch-is-recorded" / "batch.py"]).models[0]

    assert 8 == len(load(spec).args[0])
    assert 3 == len(load(spec, batch_size=3).args[0])


def test_batch_size_that_nobody_takes(write):
    """A batch size that the file cannot take is refused, not passed over."""
    with pytest.raises(LoadError, match=r"batch size 3 .* inputs\(\) takes no batch_size"):
        load(write(PLAIN), batch_size=3)


def test_attention_is_the_files_own(write):
    """A file chooses its own attention; another that is asked for is refused, not passed over."""
    assert builder("suites.user")(write(PLAIN), Mode.INFERENCE, None, seed=0, attention=Attention.FUSED)
    with pytest.raises(LoadError, match="chooses its own attention. Leave out --attention eager"):
        builder("suites.user")(write(PLAIN), Mode.INFERENCE, None, seed=0, attention=Attention.EAGER)


def test_loss_is_the_files_own(write):
    """A function `loss` is used; without one it is left to the worker."""
    assert load(write(PLAIN)).loss is None
    assert 7 == load(write(PLAIN + "\ndef loss(output):\n    return 7\n")).loss(None)


BOTH = """
import torch
from suites.workload import Workload

def small(batch_size=4):
    return torch.nn.Linear(3, 2), (torch.randn(batch_size, 3),), {}

def described(batch_size=4):
    return Workload(torch.nn.Linear(3, 2), (torch.randn(batch_size, 3),), {}, lambda output: 5)

def alone(batch_size=4):
    return torch.nn.Linear(3, batch_size)

def unsized():
    return torch.nn.Linear(3, 2), (torch.randn(4, 3),), {}

def inputs(batch_size=7):
    return (torch.randn(batch_size, 3),), {}

def loss(output):
    return 6
"""


@pytest.mark.parametrize(("function", "rows", "loss"), [("small", 4, 6), ("described", 4, 5), ("alone", 7, 6)])
def test_function(write, function, rows, loss):
    """A function of a file builds a model: it returns the inputs as well, or `inputs` beside it does."""
    spec = user.suite([f"{write(BOTH).build}:{function}"]).models[0]

    workload = load(spec)

    assert f"mine:{function}" == spec.name
    assert (rows, 3) == workload.args[0].shape
    assert loss == workload.loss(None)
    assert 9 == len(load(spec, batch_size=9).args[0])


def test_batch_size_is_for_who_makes_the_inputs(write):
    """A function that returns inputs must take the batch size itself: an `inputs` beside it is not asked."""
    with pytest.raises(LoadError, match=r"batch size 3 is asked for, but unsized\(\) takes no batch_size"):
        load(user.suite([f"{write(BOTH).build}:unsized"]).models[0], batch_size=3)


def test_function_of_a_module(tmp_path, monkeypatch):
    """A function may be one of a module in the working directory, named in full."""
    (tmp_path / "nets_of_mine_4a").mkdir()
    (tmp_path / "nets_of_mine_4a" / "tiny.py").write_text(BOTH)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [each for each in sys.path if each])

    specs = user.suite(
        ["nets_of_mine_4a.tiny:small", "nets_of_mine_4a.tiny:smal", "nets_of_mine_4a.tinny:small"]
    ).models

    assert "nets_of_mine_4a.tiny:small" == specs[0].name
    assert (4, 3) == load(specs[0]).args[0].shape
    with pytest.raises(LoadError, match=r"tiny: the module has no function smal\(\)\. Close: small\."):
        load(specs[1])
    with pytest.raises(LoadError, match=r"there is no module nets_of_mine_4a\.tinny, neither in .* nor installed"):
        load(specs[2])


def test_function_of_a_module_that_lacks_something(tmp_path, monkeypatch):
    """What a module fails to import comes out unchanged: it is not the module that is missing."""
    (tmp_path / "needy_4a.py").write_text("import another_missing_package_4a\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])

    with pytest.raises(ModuleNotFoundError, match="another_missing_package_4a"):
        load(user.suite(["needy_4a:build"]).models[0])


@pytest.mark.parametrize(
    ("text", "place", "function"),
    [
        ("/a/b.py", "/a/b.py", "build"),
        ("/a/b.py:c", "/a/b.py", "c"),
        ("/a:b/c.py", "/a:b/c.py", "build"),
        ("a:b", "a", "b"),
        ("a.b:c", "a.b", "c"),
    ],
)
def test_what_names_a_model(text, place, function):
    """A file, a function of a file, or a function of a module."""
    assert user.Own(place, function) == user.parse(text)
    assert user.parse(text) == user.parse(str(user.parse(text)))


@pytest.mark.parametrize(
    "text", ["mlp", "toy/mlp", "vit*", "a.b", "a:", ":b", "a:b.c", "a b:c", "1:2", "mobilenet.py*"]
)
def test_what_names_no_model(text):
    """Everything else is a name or a glob within suites."""
    assert user.parse(text) is None
    with pytest.raises(ValueError, match="neither a file"):
        user.suite([text])


def test_each_load_is_fresh(write):
    """Loading twice runs the file twice: globals of one load are not those of the other, edits are seen."""
    counting = PLAIN + "\ncount = [0]\ndef loss(output):\n    count[0] += 1\n    return count[0]\n"
    one, other = load(write(counting)), load(write(counting))

    assert [1, 2, 1] == [one.loss(None), one.loss(None), other.loss(None)]
    assert 9 == load(write(counting.replace("return count[0]", "return 9"))).loss(None)


def test_unseeded_files_are_seeded(write):
    """A file that draws random numbers without a seed gets the run's, and moves no generator outside."""
    text = PLAIN + "\nimport numpy, random\nnumbers = numpy.random.rand(), random.random()\n"
    text += "def loss(output):\n    return numbers\n"
    before = torch.get_rng_state(), random.getstate(), numpy.random.get_state()[1].tolist()
    one, other = load(write(text)), load(write(text))

    assert torch.equal(one.module.weight, other.module.weight)
    assert torch.equal(one.args[0], other.args[0])
    assert one.loss(None) == other.loss(None)
    assert torch.equal(before[0], torch.get_rng_state())
    assert before[1:] == (random.getstate(), numpy.random.get_state()[1].tolist())


def test_what_stands_beside_the_file(write, tmp_path):
    """A file may import its neighbours and define dataclasses."""
    (tmp_path / "neighbour_of_mine.py").write_text("WIDTH = 5\n")
    text = (
        "from __future__ import annotations\nfrom dataclasses import dataclass\nfrom neighbour_of_mine import WIDTH\n"
    )
    text += PLAIN.replace("(3, 2)", "(3, WIDTH)").replace(
        "import torch\n", "import torch\n@dataclass\nclass C:\n    a: int\n"
    )

    assert 5 == load(write(text)).module.out_features


BUILD = "from torch.nn import ReLU\nbuild = ReLU\n"
NEITHER = r"build\(\) must return a torch\.nn\.Module, or \(module, args, kwargs\), not "


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r"the file has no function build\(\)\.$"),
        ("def biuld(): ...", r"no function build\(\)\. Close: biuld"),
        ("build = 3", r"no function build\(\)"),
        ("def build(): ...", NEITHER + "NoneType"),
        (BUILD.replace("build = ReLU", "def build(): return ReLU(), ()"), NEITHER + "tuple of 2"),
        ("def build(): return 1, (), {}", NEITHER + "tuple of 3"),
        (BUILD, r"no function inputs\(\), and build\(\) returns the module alone"),
        (BUILD + "def inputs(): return 3", r"inputs\(\) must return \(args, kwargs\), not int"),
        (BUILD + "def inputs(): return 3, {}", "a tuple and a mapping, not int and dict"),
        (BUILD + "def inputs(): return (3,), [4]", "a tuple and a mapping, not tuple and list"),
        (
            BUILD.replace("build = ReLU", "def build(): return ReLU(), 3, {}"),
            r"build\(\) must return a tuple and a mapping, not int and dict",
        ),
    ],
)
def test_file_that_is_no_model(write, text, message):
    """A file without the two functions, or with wrong answers from them, says which."""
    with pytest.raises(LoadError, match=message):
        load(write(text))


def test_missing_file():
    """A file that is gone is named."""
    with pytest.raises(LoadError, match=r"/nowhere/gone\.py: there is no such file"):
        load(ModelSpec(name="gone", build="/nowhere/gone.py"))


def test_suite_of_files(tmp_path):
    """Models are named like their files, in the order given, and told apart by folders where need be."""
    names = ("b.py", "a.py", "one/same.py", "two/same.py", "b.py", "b.py:small", "one/p.q.py:f")
    paths = [tmp_path / name for name in names]

    suite = user.suite([*paths, "p.q:f"])

    assert "user" == suite.name
    expected = ["b", "a", "one/same", "two/same", "b:small", "one/p.q:f", "p.q:f"]
    assert expected == [model.name for model in suite.models]
    assert "mine" == user.suite(paths, "mine").name


def test_files_are_planned_without_torch():
    """Describing files imports neither them nor torch."""
    texts = "['nowhere.py', 'torch.nn:ReLU']"
    code = f"import sys; from suites import user; user.suite({texts}); assert 'torch' not in sys.modules"

    assert 0 == subprocess.run([sys.executable, "-c", code], check=False).returncode
