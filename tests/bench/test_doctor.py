"""`bench doctor`: a table, JSON, an exit code; and that each run keeps what was found."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from bench import doctor, main
from harness.doctor import noise
from harness.doctor.sight import Sight
from harness.journal import replay
from harness.record import Level
from tests.harness.sights import BUSY_VM, make_sight
from tests.harness.test_noise import noise_of, scaled


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[Sight], None]:
    """Let the doctor see this instead of the host."""
    monkeypatch.chdir(tmp_path)
    return lambda sight: monkeypatch.setattr(doctor, "look", lambda places: sight)


def bench(capsys: pytest.CaptureFixture[str], *args: str) -> tuple[int, str, str]:
    code = main.run(args)
    return (code, *capsys.readouterr())


def test_fit(seen, capsys) -> None:
    """A quiet host is fit, with exit code 0."""
    seen(make_sight())
    code, out, _ = bench(capsys, "doctor", "--device", "cpu")

    assert 0 == code
    assert "Fit to measure." == out.splitlines()[-1]


def test_fit_with_warnings(seen, capsys) -> None:
    """Warnings and what is unknown are counted, and leave the exit code at 0."""
    seen(make_sight(memory_free_bytes=20 << 30, throttled_since_boot=None))
    code, out, _ = bench(capsys, "doctor", "--device", "cpu")

    assert 0 == code
    assert "Fit to measure, with 1 warning; 1 not told by this host." == out.splitlines()[-1]


def test_not_fit(seen, capsys) -> None:
    """A busy host is not fit: exit code 3; the table begins with the worst, with a remedy."""
    seen(BUSY_VM)
    code, out, _ = bench(capsys, "doctor", "--device", "cpu")
    lines = out.splitlines()

    assert 3 == code
    assert "Not fit to measure: 1 bad, 1 warning; 5 not told by this host." == lines[-1]
    assert lines[1].startswith("load      bad      1.4 of 2 processors  ")
    assert lines[1].endswith("top -o %CPU")
    assert ["load", "tenants"] == [line.split()[0] for line in lines[1:3]]


def test_json(seen, capsys) -> None:
    """As JSON each finding is a line with schema and type, unknown is null."""
    seen(BUSY_VM)
    code, out, _ = bench(capsys, "doctor", "--device", "cpu", "--json")
    lines = [json.loads(line) for line in out.splitlines()]

    assert 3 == code
    assert {(1, "finding")} == {(line["schema"], line["type"]) for line in lines}
    assert ["check", "level", "remedy", "schema", "sentence", "type", "value"] == sorted(lines[0])
    assert None is next(line["value"] for line in lines if line["check"] == "governor")


def test_this_host(capsys, tmp_path, monkeypatch) -> None:
    """On the host of the tests, whatever it is, each check that applies says something."""
    monkeypatch.chdir(tmp_path)
    code, out, _ = bench(capsys, "doctor", "--json", "--device", "cpu")

    assert code in (0, 3)
    assert {"governor", "load", "steal", "threads", "disk", "compiler"} <= {
        json.loads(line)["check"] for line in out.splitlines()
    }


def test_needs_no_torch(tmp_path) -> None:
    """Where torch is not installed the host is examined all the same, and --noise says what it lacks."""
    code = (
        "import sys; sys.modules['torch'] = None\n"
        "from bench import doctor, main\n"
        "doctor.find_spec = lambda name: None\n"
        "print(main.run(['doctor', '--device', 'cpu']), main.run(['doctor', '--noise']))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)

    assert done.stdout.splitlines()[-1] in ("0 1", "3 1")
    assert "--noise needs torch" in done.stderr


@pytest.mark.parametrize(
    ("options", "said"),
    [(["--seconds", "0", "--noise"], "above 0"), (["--device", "nosuch"], "bench list devices")],
)
def test_refused(capsys, options, said) -> None:
    """What cannot be done is refused in a sentence."""
    code, _, err = bench(capsys, "doctor", *options)

    assert 2 == code
    assert said in err


@pytest.fixture
def noisy(monkeypatch) -> None:
    measured = noise_of(*scaled(20), spread=0.005)
    monkeypatch.setattr(noise, "measure", lambda profile, seconds, told: measured)


def test_noise(seen, noisy, capsys) -> None:
    """With --noise each launch is a row with its ratio and interval, and the verdict is one of the findings."""
    seen(make_sight())
    code, out, err = bench(capsys, "doctor", "--device", "cpu", "--noise")
    launches, works, findings = (part.splitlines() for part in out.split("\n\n"))

    assert 0 == code
    assert "about 60 s" in err
    assert "1 compute 10 1.000 [0.995, 1.005] 0.50% 20" == " ".join(launches[1].split())
    assert 2 * 5 == len(launches[1:])
    assert ["compute 5 0.50%", "memory 5 0.50% 0.00% 0.00% with 5 + 5 launches"] == [
        " ".join(works[1].split()[:3]),
        " ".join(works[2].split()),
    ]
    assert ["noise", "warning"] == findings[1].split()[:2]
    assert "Fit to measure, with 1 warning." == findings[-1]


def test_noise_as_json(seen, noisy, capsys) -> None:
    """As JSON each kind of work is a line with its launches, its spread and the smallest change."""
    seen(make_sight())
    _, out, _ = bench(capsys, "doctor", "--device", "cpu", "--noise", "--json")
    lines = [json.loads(line) for line in out.splitlines()]
    compute, memory = (line for line in lines if line["type"] == "noise")

    assert ("compute", "memory") == (compute["work"], memory["work"])
    assert 5 == compute["launches"] == len(compute["step_s"]) == len(compute["ratios"]) == compute["compared_launches"]
    assert 0.02 < compute["smallest_change"] < 0.10
    assert {"value", "low", "high", "n", "method"} == set(compute["ratios"][0])


QUICK = ["run", "--suite", "toy", "--model", "mlp", "--mode", "inference", "--backend", "eager", "--only-accuracy"]


def test_run_keeps_what_was_found(seen, capsys) -> None:
    """A run looks at its host before the first case, says what disturbs in a line each, and keeps all of it."""
    seen(BUSY_VM)
    _, _, err = bench(capsys, *QUICK, "--device", "cpu")
    kept = replay(next(Path("runs").glob("*.jsonl"))).run.doctor

    assert [Level.BAD, Level.WARNING, Level.UNKNOWN] == [finding.level for finding in kept[:3]]
    said = [line for line in err.splitlines() if line.startswith(tuple(f"{level}: " for level in Level))]
    assert 2 == len(said)
    assert said[0].startswith("bad: load 1.4 of 2 processors. Others take most of this machine")
    assert said[1].startswith("warning: tenants python (10317) 74%, python (16484) 62%. ")


@pytest.mark.parametrize(
    ("database", "place"),
    [
        ("sqlite:///data/bench.db", "data"),
        ("sqlite:////var/bench.db", "/var"),
        ("postgresql+psycopg://u@h/bench", None),
    ],
)
def test_places(database: str, place: str | None) -> None:
    """Journals, temporary files and a database in a file have a disk that matters; one on a server has not."""
    found = doctor.places(database)

    assert ["journals", "temporary files"] == list(found)[:2]
    assert (Path(place) if place else None) == found.get("the database")
