"""Suites of other packages join by an entry point; a broken one is named, and disturbs no other."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness import config, packages
from harness.errors import BenchError, UsageError

SUITE = """about = "theirs"
module = "suites.toy"
tolerance = { inference = 1e-3, training = 1e-2 }

[[model]]
name = "mlp"
input_size = [64]
"""
POINT = "[bench.suites]\ntheirs = "
"""An entry point, up to its value."""


def install(site: Path, points: str, files: dict[str, str], name: str = "their-models") -> None:
    """Write what an installer leaves: a `.dist-info` folder, and the files of the distribution."""
    folder = site / f"{name.replace('-', '_')}-1.0.dist-info"
    written = {f"{folder.name}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n"} if name else {}
    for path, text in {f"{folder.name}/entry_points.txt": points, **written, **files}.items():
        (site / path).parent.mkdir(parents=True, exist_ok=True)
        (site / path).write_text(text)


@pytest.fixture
def site(tmp_path, monkeypatch):
    """A folder of installed packages; the working directory is an empty one, and no other folder is named."""
    (tmp_path / "empty").mkdir()
    (tmp_path / "site").mkdir()
    monkeypatch.chdir(tmp_path / "empty")
    monkeypatch.delenv(config.ENVIRONMENT_VARIABLE, raising=False)
    monkeypatch.syspath_prepend(tmp_path / "site")
    return tmp_path / "site"


@pytest.mark.parametrize(
    ("module", "files"),
    [
        ("their_package", {"their_package/__init__.py": "", "their_package/theirs.toml": SUITE}),
        ("their_package.sub", {"their_package/sub.py": "", "their_package/theirs.toml": SUITE}),
        ("their_package.sub", {"their_package/sub/__init__.py": "", "their_package/sub/theirs.toml": SUITE}),
        ("their_space.sub", {"their_space/sub/theirs.toml": SUITE}),
        ("their_module", {"their_module.py": "", "theirs.toml": SUITE}),
    ],
    ids=["package", "module in it", "package in it", "namespace", "module"],
)
def test_joined(site, module, files):
    """A suite's file stands in the package that the entry point names, or beside the module. Nothing is imported."""
    install(
        site, POINT + module, {name: "raise RuntimeError" if name.endswith(".py") else files[name] for name in files}
    )

    assert "theirs" in config.suites()
    assert ["mlp"] == [model.name for model in config.suite("theirs").models]
    assert ([], True) == ([str(each) for each in config.every_suite()[1]], "theirs" in names(config.every_suite()[0]))


def names(suites):
    return [each.name for each in suites]


WHOLE = {"their_package/__init__.py": "", "their_package/theirs.toml": SUITE}
OWNER = r'^suite "theirs" of the installed distribution their-models 1\.0: '
SAYS = OWNER + r'its entry point says theirs = "{}", and '


@pytest.mark.parametrize(
    ("value", "files", "message"),
    [
        ("their_packag", WHOLE, SAYS + r"there is no module their_packag\."),
        ("their_package.sub", WHOLE, SAYS + r"there is no module their_package\.sub\."),
        ("their_package", {"their_package/__init__.py": ""}, SAYS + r"/.*/their_package/theirs\.toml is not there"),
        ("sys", {}, SAYS + "no file can stand beside that module"),
        ("their_package:suite", WHOLE, SAYS + r"a module is written as mypackage\.suite"),
        ("", WHOLE, SAYS + r"a module is written as mypackage\.suite"),
        (
            "their_package",
            {**WHOLE, "their_package/theirs.toml": SUITE + "bach = 1\n"},
            OWNER + r'/.*/their_package/theirs\.toml:8, model "mlp": unknown field "bach"\. Close: batch',
        ),
        (
            "their_package",
            {**WHOLE, "their_package/theirs.toml": SUITE + '[[model]]\nname = "mlp"\n'},
            OWNER + r'/.*theirs\.toml:9, model "mlp": there are 2 such entries',
        ),
        (
            "their_package",
            {**WHOLE, "their_package/theirs.toml": "x = ="},
            OWNER + r"/.*theirs\.toml:1: not valid TOML",
        ),
    ],
)
def test_broken(site, value, files, message):
    """A suite that cannot be had is named with its distribution, and leaves all others as they are."""
    install(site, POINT + value, files)
    expected = message.format(value)

    with pytest.raises(BenchError, match=expected):
        config.suite("theirs")
    found, wrong = config.every_suite()
    assert ("toy" in names(found), "theirs" in names(found), 1) == (True, False, len(wrong))
    assert str(wrong[0]).startswith('suite "theirs" of')
    assert "toy" == config.suite("toy").name


@pytest.mark.parametrize("name", ["their/suite", "theirs.py", "their suite"])
def test_name(site, name):
    """A suite whose name could not be given to `--suite`, or not be told from its models, is refused."""
    install(site, f"[bench.suites]\n{name} = their_package", WHOLE)

    with pytest.raises(BenchError, match="a suite's name is of letters, digits"):
        config.suite(name)


def test_reserved_name(site):
    """The name of the suite of people's own models is refused here too."""
    install(site, "[bench.suites]\nuser = their_package", {**WHOLE, "their_package/user.toml": SUITE})

    with pytest.raises(BenchError, match=r'their-models 1\.0: /.*user\.toml:1: a suite named "user"'):
        config.suite("user")


def test_entries(site):
    """Only our group counts; comments are passed over, and a line that is no entry spoils only itself."""
    lines = ["[console_scripts]", "x = y:z", "broken line", "", "[bench.suites]", "# a = b", "theirs=their_package"]
    install(site, "\n".join([*lines, "broken too", "[other]", "c = d", ""]), WHOLE)

    assert [("theirs", "their_package"), ("broken too", "")] == [
        (each.name, each.module) for each in packages.joined() if "their" in each.distribution
    ]
    assert "theirs" == config.suite("theirs").name


def test_first_on_the_path_counts(site, tmp_path, monkeypatch):
    """Of a distribution that is there twice, the one that would be imported counts."""
    install(site, POINT + "their_package", WHOLE)
    install(
        tmp_path / "before", POINT + "their_package", {**WHOLE, "their_package/theirs.toml": SUITE.replace("64", "65")}
    )
    monkeypatch.syspath_prepend(tmp_path / "before")

    assert (65,) == config.suite("theirs").models[0].input_size


def test_announced_twice(site):
    """Two distributions with a suite of one name are both named, and neither is taken."""
    install(site, POINT + "their_package", WHOLE)
    install(site, POINT + "their_package", WHOLE, "other-models")

    with pytest.raises(
        BenchError, match=r'"theirs" is announced twice, by .*(their|other)-models 1\.0 and .*-models 1\.0'
    ):
        config.suite("theirs")
    assert 1 == len(config.every_suite()[1])


def test_without_metadata(site):
    """A distribution that does not say its name is named by its folder."""
    install(site, POINT + "nothing", {}, "")

    with pytest.raises(
        BenchError, match=r'distribution without a name in /.*/site: its entry point says theirs = "nothing"'
    ):
        config.suite("theirs")


def test_own_file_wins(site):
    """A suite's file in the working directory comes before an installed package's."""
    install(site, POINT + "their_package", WHOLE)
    Path("configs/suites").mkdir(parents=True)
    Path("configs/suites/theirs.toml").write_text(SUITE.replace("theirs", "mine"))

    assert "mine" == config.suite("theirs").about
    assert [] == config.every_suite()[1]


def test_ours_win(site):
    """Installing a package never changes what a suite of ours is; that it cannot be reached is said."""
    install(site, "[bench.suites]\ntoy = their_package", {**WHOLE, "their_package/toy.toml": SUITE})

    assert "theirs" != config.suite("toy").about
    owner = 'suite "toy" of the installed distribution their-models 1.0'
    expected = f"{owner}: a suite of that name comes with this command. Rename it there."
    assert [expected] == [str(each) for each in config.every_suite()[1]]


def test_published(site):
    """`--suite all` means the published suites alone, whatever a package says of its own."""
    text = SUITE.replace("module =", "published = true\nmodule =")
    install(site, POINT + "their_package", {**WHOLE, "their_package/theirs.toml": text})

    assert config.suite("theirs").published
    assert "theirs" not in names(config.published())


def test_unknown_name(site):
    """A misspelt suite is answered with an installed package's too."""
    install(site, POINT + "their_package", WHOLE)

    with pytest.raises(UsageError, match=r"no suite 'thiers'\. Close: theirs"):
        config.suite("thiers")
