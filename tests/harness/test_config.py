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
    with pytest.raises(UsageError, match=r"no device 'cpux'\. Close: cpu, .*\. See `bench list devices`"):
        config.device("cpux")


def test_folder_that_is_not_there(monkeypatch):
    """A folder named by the environment must exist."""
    monkeypatch.setenv(config.ENVIRONMENT_VARIABLE, "/nowhere/at/all")

    with pytest.raises(UsageError, match="BENCH_CONFIGS=/nowhere/at/all: there is no such folder"):
        config.suites()


BROKEN = {
    "toml": (SUITE + "x = = 1\n", r":17: not valid TOML: .*line 17"),
    "end of the file": (SUITE + 'x = "', r":17: not valid TOML: "),
    "encoding": (SUITE.replace("a suite", "caf\xe9").encode("latin-1"), r":2: byte \d+ is not UTF-8"),
    "unknown field": (SUITE.replace("module =", "modul ="), r':3: unknown field "modul"\. Close: module, '),
    "plural": (SUITE.replace("[[model]]", "[[models]]"), r':12: unknown field "models"\. Close: model, '),
    "own name": ('name = "x"\n' + SUITE, r':1: unknown field "name"'),
    "missing field": (SUITE.replace('module = "suites.toy"\n', ""), r':1: field "module" is missing\. Add it\.'),
    "no models": (SUITE[: SUITE.index("[[model]]")], r':1: field "model" is missing'),
    "model's unknown field": (
        SUITE + "bach = { training = 3 }\n",
        r':17, model "two": unknown field "bach"\. Close: batch\. Correct or remove it\.$',
    ),
    "model without name": (SUITE + "[[model]]\n", r':17, \[\[model\]\] number 3: field "name" is missing'),
    "model of another type": (SUITE.replace('"two"', "2"), r':16, model "2": field "name" is 2: .*string'),
    "model as a plain table": (SUITE.replace("[[model]]", "[model]", 1).rsplit("[[", 1)[0], r':12: field "model" is'),
    "batch": (SUITE + "batch = { training = 0 }\n", r':17, model "two": field "batch.training" is 0: .*greater than 0'),
    "mode": (SUITE + "batch = { trainig = 1 }\n", r':17, model "two": field "batch.trainig'),
    "no size": (SUITE + "input_size = []\n", r':17, model "two": field "input_size" is \[\]: .*at least 1'),
    "size": (SUITE + "input_size = [3, 0, 9]\n", r':17, model "two": field "input_size.1" is 0: .*greater than 0'),
    "skip without why": (SUITE + 'skip = [{ device = "cpu" }]\n', r':17, model "two": field "skip.0.why" is missing'),
    "two faults": (SUITE + "bach = 1\nloss_scale = -1\n", r":1[78], .*\(1 more faults?\.\)$"),
    "model twice": (SUITE.replace("two", "one"), r':16, model "one": there are 2 such entries\. Keep one\.'),
    "tier's model": (
        SUITE.replace('["one"]', '["oen"]'),
        r':10, tier "quick": field "models" names "oen", which is no model of the suite\. Close: one\.',
    ),
    "tier's model twice": (
        SUITE.replace('["one"]', '["one",\n"one"]'),
        r':11, tier "quick": .* "one" twice\. Keep one',
    ),
    "tier of nothing": (SUITE.replace('["one"]', "[]"), r':10, tier "quick": field "models" is empty'),
    "tier's reduced": (
        SUITE.replace('["one"]', '["one"]\nreduced_precision = ["two"]'),
        r':11, tier "quick": field "reduced_precision" names "two", which is no model of the tier',
    ),
    "tier's field": (
        SUITE.replace('["one"]', '["one"]\nmods = []'),
        r':11, tier "quick": unknown field "mods"\. Close: modes',
    ),
    "tier's mode": (SUITE.replace('["one"]', '["one"]\nmodes = ["train"]'), r':11, tier "quick": field "modes.0" is'),
    "tolerance's key": (
        SUITE.replace("inference =", "amb = 1\ninference ="),
        r':6: field "tolerance" has "amb", which is no mode or precision\. Close: amp\.',
    ),
    "model's tolerance": (SUITE + "tolerance = { fp23 = 1 }\n", r':17, model "two": field "tolerance" has "fp23"'),
    "tolerance's value": (SUITE.replace("1e-3", "0"), r':6: field "tolerance.inference" is 0: .*greater than 0'),
    "missing tolerance": (SUITE.replace("training = 1e-2\n", ""), r':5: field "tolerance.training" is missing'),
    "model list of nothing": (
        SUITE[: SUITE.index("[tol")] + "model = []\n" + SUITE[SUITE.index("[tol") : SUITE.index("[tier")],
        r":5: the suite names no model\. Add a \[\[model\]\]",
    ),
    "module's file": (
        SUITE.replace("suites.toy", "suites/toy.py"),
        r':3: field "module" is "suites/toy.py", which cannot',
    ),
    "empty name": (SUITE.replace('"two"', '""'), r':16, \[\[model\]\] number 2: field "name" is empty'),
    "build is name": (SUITE + 'build = "two"\n', r':17, model "two": field "build" says what "name" says'),
    "large accuracy batch": (
        SUITE + "accuracy_batch = 9\nbatch = { inference = 8, training = 4 }\n",
        r':17, model "two": field "accuracy_batch" is 9, more than any batch of the entry \(8\)',
    ),
    "test size alone": (
        SUITE + "eval_input_size = [3, 9, 9]\n",
        r':17, model "two": field "eval_input_size" stands without "input_size"',
    ),
    "small channels": (
        SUITE + "input_size = [3, 8, 8]\nsmall = { input_size = [1, 8, 8] }\n",
        r':18, model "two": field "small.input_size" is \[1, 8, 8\], and "input_size" \[3, 8, 8\]: .* not in channels',
    ),
    "small dimensions": (
        SUITE + "input_size = [8]\nsmall = { input_size = [8, 8] }\n",
        r':18, model "two": field "small.input_size" is \[8, 8\]',
    ),
    "small tolerance of nothing": (
        SUITE + "small = { tolerance = { trainng = 0.1 } }\n",
        r':17, model "two": field "tolerance" has "trainng", which is no mode or precision\. Close: training\.',
    ),
    "small size alone": (
        SUITE + "small = { input_size = [8] }\n",
        r':17, model "two": field "small.input_size" stands without "input_size"',
    ),
    "a small length that is none": (
        SUITE + "length = { inference = 9, training = 12 }\nsmall = { length = 10 }\n",
        r':18, model "two": field "small.length" is 10, more than "length" \(9\)\. Lower it',
    ),
    "small repeats that are none": (
        SUITE + "repeats = 2\nsmall = { repeats = 3 }\n",
        r':18, model "two": field "small.repeats" is 3, more than "repeats" \(2\)',
    ),
    "small field": (SUITE + "small = { batches = 1 }\n", r':17, model "two": unknown field "small.batches"'),
    "outside and inside": (
        SUITE + '[outside]\nthree = "no"\n"tw*" = "no"\n',
        r':19: field "outside" names "tw\*", which is a model of the suite \("two"\)\. Keep one',
    ),
    "outside without why": (SUITE + '[outside]\nthree = ""\n', r':18: field "outside" gives no reason for "three"'),
    "tier of every model": (
        SUITE.replace("tier.quick", "tier.full"),
        r':9: each suite has a tier "full", that of every model\. Rename this one',
    ),
    "channels": (
        SUITE + "input_size = [3, 8, 8]\neval_input_size = [1, 8, 8]\n",
        r':18, model "two": field "eval_input_size" is \[1, 8, 8\], and "input_size" \[3, 8, 8\]',
    ),
    "dimensions": (SUITE + "input_size = [8]\neval_input_size = [8, 8]\n", r":18, .* may differ in height and width"),
    "skip's device": (
        SUITE + 'skip = [\n{ why = "a", mode = "training" },\n{ why = "b", device = "cpux" },\n]\n',
        r':19, model "two": field "skip.1.device" is "cpux", neither a device profile nor a kind.* Close: cpu',
    ),
    "skip twice": (
        SUITE + 'skip = [{ why = "a", device = "cpu" },\n{ why = "b", device = "cpu" }]\n',
        r':18, model "two": field "skip.1" holds nowhere that "skip.0" does not\. Keep one',
    ),
    "skip within a skip": (
        SUITE + 'skip = [{ why = "a", device = "cpu", mode = "training" },\n{ why = "b", device = "cpu" }]\n',
        r':17, model "two": field "skip.0" holds nowhere that "skip.1" does not',
    ),
    "skip within a longer skip": (
        SUITE + 'skip = [{ why = "a", until = 2026-01-02 },\n{ why = "b", mode = "training", until = 2026-01-01 }]\n',
        r':18, model "two": field "skip.1" holds nowhere',
    ),
    "no day": (SUITE + 'skip = [{ why = "a", until = "soon" }]\n', r':17, .*"skip.0.until" is \'soon\': .*date'),
    "a number for a day": (
        SUITE + 'skip = [{ why = "a", until = 20261231 }]\n',
        r":17, .* a day is written as 2026-12-31",
    ),
    "a time for a day": (SUITE + 'skip = [{ why = "a", until = 2026-12-31T12:00:00 }]\n', r':17, .*"skip.0.until"'),
}


@pytest.mark.parametrize(("text", "message"), BROKEN.values(), ids=BROKEN)
def test_broken_suite(own, text, message):
    """A broken file is named with the entry, the field and what to do, in one line."""
    path = own(text)

    with pytest.raises(BenchError, match=message) as caught:
        config.suite("mine")

    assert str(caught.value).startswith(f"{path}:")
    assert "\n" not in str(caught.value)


def test_lines_of_dos_files(own):
    """A file with the line ends of another system has the same lines."""
    path = own((SUITE + "bach = 1\n").replace("\n", "\r\n"))

    with pytest.raises(BenchError, match=rf'^{path}:17, model "two": unknown field "bach"'):
        config.suite("mine")


@pytest.mark.parametrize(("name", "what"), [("user", "that of model files"), ("all", "that of `--suite all`")])
def test_names_that_mean_other_suites(own, name, what):
    """A suite cannot have the name of that of people's model files, nor of all."""
    own(SUITE, f"suites/{name}.toml")

    with pytest.raises(BenchError, match=rf'{name}\.toml:1: a suite named "{name}" would be {what}'):
        config.suite(name)


def test_published(own):
    """The published suites are those whose files say so, an own one too."""
    own("published = true\n" + SUITE)

    assert ["huggingface", "mine", "timm", "torchbench"] == [suite.name for suite in config.published()]


@pytest.mark.parametrize(
    "skips",
    [
        '[{ why = "a", mode = "training" }, { why = "b", mode = "inference" }]',
        '[{ why = "a", device = "cpu" }, { why = "b", device = "laptop", mode = "training" }]',
        '[{ why = "a", until = 2026-01-01 }, { why = "b", mode = "training" }]',
        '[{ why = "a", until = 2026-01-01 }, { why = "b", mode = "training", until = 2026-01-02 }]',
        '[{ why = "a", device = "cuda" }, { why = "b", device = "mine.devices:Chip" }]',
    ],
)
def test_skips_that_say_different_things(own, skips):
    """A skip may name a kind, a profile of one's own or a class; one may hold where or as long as another does not."""
    own('kind = "cpu"\n', "devices/laptop.toml")
    own(SUITE + f"skip = {skips}\n")

    assert 2 == len(config.suite("mine").models[1].skip)


CPU_AND = 'kind = "cpu"\n'
BROKEN_DEVICES = {
    "unknown field": (CPU_AND + "thread = 4\n", r':2: unknown field "thread"\. Close: threads'),
    "kind": ('kind = "gpu"\n', r':1: field "kind" is \'gpu\''),
    "clocks": (CPU_AND + "\nlock_clocks = true\n", r':3: field "lock_clocks" does not go with kind "cpu": no driver'),
    "clock": (CPU_AND + "clock_mhz = 900\n", r':2: field "clock_mhz" does not go with kind "cpu"'),
    "device's memory": (
        CPU_AND + "device_reserve_bytes = 1\n",
        r":2: .*memory is the host's, see memory_reserve_bytes",
    ),
    "tf32": ('kind = "mps"\ntf32 = true\n', r':2: field "tf32" does not go with kind "mps": TF32 units are NVIDIA'),
    "frequency without lock": (
        'kind = "cuda"\nclock_mhz = 900\n',
        r':2: field "clock_mhz" does nothing without "lock_clocks = true"',
    ),
    "autocast": (
        CPU_AND + 'amp_dtype = "bflot16"\n',
        r':2: field "amp_dtype" is "bflot16", which autocast does not compute in\. Close: bfloat16',
    ),
    "no float": (CPU_AND + 'amp_dtype = "int8"\n', r":2: .* Use one of bfloat16, float16"),
    "limits": (CPU_AND + "timeout_s = 50\n", r':1: field "max_seconds" is 60, more than a whole case may take .*50'),
    "reserve": (CPU_AND + "memory_reserve_bytes = -1\n", r':2: field "memory_reserve_bytes" is -1'),
    "our folder": (
        CPU_AND + '[environment]\nA = "1"\nTMPDIR = "/fast"\n',
        r':4: field "environment" sets TMPDIR, which is a folder of its own for each case\. Remove it',
    ),
    "our threads": (CPU_AND + 'environment = { OMP_NUM_THREADS = "4" }\n', r':2: .* is what "threads" is for'),
    "toml": (CPU_AND + "about = a\n", r":2: not valid TOML"),
}


@pytest.mark.parametrize(("text", "message"), BROKEN_DEVICES.values(), ids=BROKEN_DEVICES)
def test_broken_device(own, text, message):
    """Device files are held to the same: what does not go together is named with its line."""
    path = own(text, "devices/mine.toml")

    with pytest.raises(BenchError, match=message) as caught:
        config.device("mine")

    assert str(caught.value).startswith(f"{path}:")
    assert "\n" not in str(caught.value)


def test_devices_that_hold_together(own):
    """A GPU may hold its clock and keep memory for itself; a class of one's own may be anything."""
    own('kind = "cuda"\nlock_clocks = true\nclock_mhz = 900\ntf32 = true\ndevice_reserve_bytes = 5\n', "devices/a.toml")
    own('kind = "chips.torch:Chip"\nlock_clocks = true\nenvironment = { CHIP_CACHE = "1" }\n', "devices/b.toml")

    assert 900 == config.device("a").clock_mhz
    assert config.device("b").lock_clocks


def test_names_that_mean_other_devices(own):
    """A profile cannot be named as the word that chooses one, nor as a kind that it is not."""
    own('kind = "cpu"\n', "devices/auto.toml")
    own('about = ""\nkind = "cuda"\n', "devices/cpu.toml")

    with pytest.raises(BenchError, match=r'auto\.toml:1: a device named "auto"'):
        config.device("auto")
    with pytest.raises(BenchError, match=r'cpu\.toml:2: field "kind" is "cuda" in a file named "cpu"'):
        config.device("cpu")


def test_unreadable_file(own):
    """What cannot be read says why; here a folder in the place of a file."""
    path = own("", "suites/other.toml").parent / "mine.toml"
    path.mkdir()

    with pytest.raises(BenchError, match=r"mine\.toml: cannot be read"):
        config.suite("mine")
