"""Configs are found, own ones first, and a broken one is one sentence with the remedy."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import harness
from harness import config
from harness.errors import BenchError, UsageError
from suites.spec import Mode

PACKAGED = Path(harness.__file__).parent.parent / "configs"

SUITE = """
about = "a suite"
module = "suites.toy"

[tolerance]
inference = 1e-3
training = 1e-2

[tier.quick]
models = ["one"]

[[model]]
name = "one"

[[model]]
name = "two"
"""


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    """An empty working directory, and no folder named by the environment."""
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path / "empty")
    monkeypatch.delenv(config.ENVIRONMENT_VARIABLE, raising=False)


@pytest.fixture
def own(tmp_path, monkeypatch):
    """A folder named by the environment; returns a function that writes a file into it."""
    monkeypatch.setenv(config.ENVIRONMENT_VARIABLE, str(tmp_path))

    def write(text, name="suites/mine.toml"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write


def test_packaged_configs():
    """From any directory the packaged suites and devices are there, each of them in order."""
    assert {"timm", "toy"} <= {*config.suites()}
    assert "cpu" in config.devices()
    for name in config.suites():
        assert name == config.suite(name).name
    for name in config.devices():
        assert name == config.device(name).name


def test_what_a_suite_file_says():
    """Tables become models and tiers, in the order of the file."""
    suite = config.suite("timm")

    assert "lcnet_050" == suite.models[0].name
    assert {Mode.INFERENCE: 128, Mode.TRAINING: 128} == suite.models[0].batch
    assert (3, 224, 224) == suite.models[0].input_size
    assert ("lcnet_050", "regnety_002", "mobilenetv2_100") == suite.tiers["quick"].models
    assert ("lcnet_050",) == suite.tiers["quick"].reduced_precision


def test_first_folder_wins(own):
    """The environment's folder comes before `./configs`, and that before the packaged one, file by file."""
    shutil.copytree(PACKAGED, "configs")
    local = Path("configs/suites/toy.toml")
    local.write_text(local.read_text().replace("Three tiny", "Local"))
    Path("configs/devices/laptop.toml").write_text('kind = "cpu"\n')

    assert config.suite("toy").about.startswith("Local")

    own(SUITE, "suites/toy.toml")

    assert "a suite" == config.suite("toy").about
    assert "Image networks of timm" == config.suite("timm").about
    assert {"cpu", "laptop"} <= {*config.devices()}


def test_unknown_names():
    """An unknown suite or device is answered with what is close."""
    with pytest.raises(UsageError, match=r"no suite 'tim'\. Close: timm\. See `bench list suites`"):
        config.suite("tim")
    with pytest.raises(UsageError, match=r"no device 'cpux'\. Close: cpu\. See `bench list devices`"):
        config.device("cpux")


def test_folder_that_is_not_there(monkeypatch):
    """A folder named by the environment must exist."""
    monkeypatch.setenv(config.ENVIRONMENT_VARIABLE, "/nowhere/at/all")

    with pytest.raises(UsageError, match="BENCH_CONFIGS=/nowhere/at/all: there is no such folder"):
        config.suites()


BROKEN = {
    "toml": (SUITE + "x = = 1\n", r": not valid TOML: .*line 17"),
    "encoding": (SUITE.replace("a suite", "caf\xe9").encode("latin-1"), r": byte \d+ is not UTF-8"),
    "unknown field": (SUITE.replace("module =", "modul ="), r': unknown field "modul"\. Close: module, '),
    "plural": (SUITE.replace("[[model]]", "[[models]]"), r': unknown field "models"\. Close: model, '),
    "own name": ('name = "x"\n' + SUITE, r': unknown field "name"'),
    "missing field": (SUITE.replace('module = "suites.toy"\n', ""), r': field "module" is missing\. Add it\.'),
    "no models": (SUITE[: SUITE.index("[[model]]")], r': field "model" is missing'),
    "model's unknown field": (
        SUITE + "bach = { training = 3 }\n",
        r', model "two": unknown field "bach"\. Close: batch\. Correct or remove it\.$',
    ),
    "model without name": (SUITE + "[[model]]\n", r', \[\[model\]\] number 3: field "name" is missing'),
    "model of another type": (SUITE.replace('"two"', "2"), r', model "2": field "name" is 2: .*string'),
    "batch": (SUITE + "batch = { training = 0 }\n", r', model "two": field "batch.training" is 0: .*greater than 0'),
    "mode": (SUITE + "batch = { trainig = 1 }\n", r', model "two": field "batch.trainig'),
    "skip without why": (SUITE + 'skip = [{ device = "cpu" }]\n', r', model "two": field "skip.0.why" is missing'),
    "two faults": (SUITE + "bach = 1\nloss_scale = -1\n", r"\(1 more faults?\.\)$"),
    "model twice": (SUITE.replace("two", "one"), r', model "one": there are 2 such entries\. Keep one\.'),
    "tier's model": (
        SUITE.replace('["one"]', '["oen"]'),
        r', tier "quick": field "models" names "oen", which is no model of the suite\. Close: one\.',
    ),
    "tier's reduced": (
        SUITE.replace('["one"]', '["one"]\nreduced_precision = ["two"]'),
        r', tier "quick": field "reduced_precision" names "two", which is no model of the tier',
    ),
    "tier's field": (
        SUITE.replace('["one"]', '["one"]\nmods = []'),
        r', tier "quick": unknown field "mods"\. Close: modes',
    ),
    "tolerance's key": (
        SUITE.replace("inference =", "amb = 1\ninference ="),
        r': field "tolerance" has "amb", which is no mode or precision\. Close: amp\.',
    ),
    "model's tolerance": (SUITE + "tolerance = { fp23 = 1 }\n", r', model "two": field "tolerance" has "fp23"'),
    "tolerance's value": (SUITE.replace("1e-3", "0"), r': field "tolerance.inference" is 0: .*greater than 0'),
    "missing tolerance": (SUITE.replace("training = 1e-2\n", ""), r': field "tolerance.training" is missing'),
}


@pytest.mark.parametrize(("text", "message"), BROKEN.values(), ids=BROKEN)
def test_broken_suite(own, text, message):
    """A broken file is named with the entry, the field and what to do, in one line."""
    path = own(text)

    with pytest.raises(BenchError, match=message) as caught:
        config.suite("mine")

    assert str(caught.value).startswith(str(path))
    assert "\n" not in str(caught.value)


def test_broken_device(own):
    """Device files are held to the same."""
    path = own('kind = "cpu"\nthread = 4\n', "devices/mine.toml")

    with pytest.raises(BenchError, match=rf'{path}: unknown field "thread"\. Close: threads'):
        config.device("mine")

    own('kind = "gpu"\n', "devices/mine.toml")
    with pytest.raises(BenchError, match=r'field "kind" is \'gpu\''):
        config.device("mine")


def test_unreadable_file(own):
    """What cannot be read says why; here a folder in the place of a file."""
    path = own("", "suites/other.toml").parent / "mine.toml"
    path.mkdir()

    with pytest.raises(BenchError, match=r"mine\.toml: cannot be read"):
        config.suite("mine")
