"""`bench compare`: two sides, one verdict per case, and an exit code that a job can act on."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path

import pytest

from bench import main
from harness.record import Environment, Outcome, now
from server.store import Store
from tests.server import factory

BASE, HEAD = "0194a3f2-1111-7000-8000-000000000001", "0194a3f3-1111-7000-8000-000000000001"


def run_of(run_id: str, speedup: float, *, broken: tuple[str, ...] = (), environment: Environment | None = None):
    """Return the lines of a finished run of four models: one is skipped, one is missing."""
    day = timedelta(days=int(run_id == HEAD))
    run = factory.make_run(
        4,
        id=run_id,
        at=factory.BEGIN + day,
        skip={"model_2": "too large"},
        environment=environment or factory.make_environment(),
    )
    records = [
        factory.make_record(
            planned.case,
            Outcome.CRASH if planned.case.model in broken else Outcome.PASS,
            speedup,
            run_id=run_id,
            at=factory.BEGIN + day,
        )
        for planned in run.plan[:2]
    ]
    return [run, *records, factory.make_end(run_id, at=factory.BEGIN + day + timedelta(hours=1))]


@pytest.fixture
def bench(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch):
    """Run `bench compare` over runs that are stored, and return exit code, stdout and stderr."""
    monkeypatch.chdir(tmp_path)

    def compare(*words: str) -> tuple[int, str, str]:
        code = main.run(["compare", "--database", f"sqlite:///{tmp_path}/bench.db", *words])
        return code, *capsys.readouterr()

    return compare


@pytest.fixture
def store(tmp_path: Path):
    """Store the lines of a run, and write them as a journal too."""
    kept = Store.connect(f"sqlite:///{tmp_path}/bench.db")

    def keep(lines) -> None:
        kept.replay(lines)
        (tmp_path / f"{lines[0].id[:8]}.jsonl").write_text("".join(line.model_dump_json() + "\n" for line in lines))

    yield keep
    kept.dispose()


def test_regression(bench, store):
    """A regression is exit code 3, by prefix of the ids or `latest`, and the other way round none."""
    store(run_of(BASE, 1.25))
    store(run_of(HEAD, 1.10))

    code, out, _ = bench("0194a3f2", "latest")

    assert 3 == code
    assert f"base  {BASE}  2026-08-12 01:00 UTC, cpu, torch 2.14.1" == out.splitlines()[0]
    assert "regressed 2, improved 0, same 1, inconclusive 1, status changed 0, only left 0, only right 0" in out
    assert "  regressed       toy/model_0 inference fp32   1.25x [1.23, 1.27] -> 1.10x [1.08, 1.12]   -12.0 % [" in out
    assert "toy/model_2" not in out
    code, out, _ = bench("latest", "0194a3f2", "--all")
    assert (0, True) == (code, "improved 2" in out)
    assert "still skipped" in out
    assert "not run on either side" in out


def test_outcome_got_worse(bench, store):
    """A case that passed and now fails is exit code 3 too; one that was fixed is 0."""
    store(run_of(BASE, 1.25))
    store(run_of(HEAD, 1.25, broken=("model_1",)))
    there, back = bench(BASE, HEAD), bench(HEAD, BASE)

    assert (3, True) == (there[0], "pass -> crash: crash while compiling (worse)" in there[1])
    assert (0, True) == (back[0], "status changed 1" in back[1])


def test_still_running(bench, store):
    """A run that still goes on is compared as far as it is, and says so."""
    store(run_of(BASE, 1.25))
    started = factory.make_run(1, id=HEAD, at=now())
    store([started, factory.make_record(started.plan[0].case, run_id=HEAD, at=now())])

    assert ", still running" in bench(BASE, HEAD)[1].splitlines()[1]


def test_journals(bench, store):
    """Journals are compared as they are, and say the same as the database, skipped and missing cases too."""
    store(run_of(BASE, 1.25))
    store(run_of(HEAD, 1.10, broken=("model_1",)))

    assert bench(BASE, HEAD, "--all") == bench("0194a3f2.jsonl", "0194a3f3.jsonl", "--all")
    assert bench(BASE, HEAD, "--json") == bench(BASE, "0194a3f3.jsonl", "--json")


def test_json(bench, store):
    """For programs there is one object for the comparison, one a row and one a mean; absent is null."""
    store(run_of(BASE, 1.25))
    store(run_of(HEAD, 1.10))
    code, out, _ = bench(BASE, HEAD, "--json", "--all")
    head, *lines = map(json.loads, out.splitlines())
    (mean,) = (line for line in lines if line["type"] == "cohort")
    changes = {line["model"]: line for line in lines if line["type"] == "change"}

    assert (3, {1}) == (code, {line["schema"] for line in (head, *lines)})
    assert ("compared", BASE, HEAD, "same", [], True) == (
        head["type"],
        head["base"]["name"],
        head["head"]["name"],
        head["machine"],
        head["differences"],
        head["against"],
    )
    assert (2, 2, 1) == (head["counts"]["regressed"], head["judgements"]["speedup"]["worse"], head["counts"]["same"])
    assert "one launch" in head["caveat"]
    regressed, skipped = changes["model_0"], changes["model_2"]
    assert ("regressed", "same", "speedup", None) == tuple(regressed[k] for k in ("verdict", "outcome", "by", "why"))
    assert ("worse", "interval", 1.25, 1.10, 0.02) == tuple(
        regressed["metrics"]["speedup"][k] for k in ("judgement", "ground", "base", "head", "floor")
    )
    assert (None, "neither side has one") == tuple(skipped["metrics"]["speedup"][k] for k in ("change", "why"))
    assert {"case_id", "outcome", "valid", "text"} == {*skipped["base"]}
    assert (2, 1.10) == (mean["models"], pytest.approx(mean["these_models"]["head"]["value"]))
    assert {"reason": "2 families, at least 6 are needed"} == mean["models_like_these"]["ratio"]
    assert {"model_2": "skipped on both sides", "model_3": "missing on both sides"} == {
        left["model"]: left["why"] for left in mean["left_out"]
    }


def test_markdown(bench, store):
    """For an issue there is a table."""
    store(run_of(BASE, 1.25))
    store(run_of(HEAD, 1.10))
    code, out, _ = bench(BASE, HEAD, "--markdown")

    assert (3, True) == (code, "| toy/model\\_0 inference fp32 | **regressed** |" in out)
    assert (2, "") == bench(BASE, HEAD, "--markdown", "--json")[:2]


def test_other_machine(bench, store):
    """Runs of two machines are refused with what differs, as JSON too; `--across` compares them."""
    store(run_of(BASE, 1.25))
    store(run_of(HEAD, 1.24, environment=factory.make_environment(cpu="Arm Neoverse-V1")))

    code, out, err = bench(BASE, HEAD)
    assert (2, "") == (code, out)
    assert "cpu AMD EPYC 7R13 -> Arm Neoverse-V1" in err
    assert "--across" in err
    code, out, _ = bench(BASE, HEAD, "--json")
    line = json.loads(out)
    assert (2, "refused", "cpu", True) == (
        code,
        line["type"],
        line["differences"][0]["field"],
        line["differences"][0]["hard"],
    )
    code, out, _ = bench(BASE, HEAD, "--across")
    assert 0 == code
    assert "differs, and starts a new series: cpu AMD EPYC 7R13 -> Arm Neoverse-V1" in out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("0195", "latest"), "There is no run '0195'"),
        (("0194a3", "latest"), "fits several runs"),
        (("latest", "gone.jsonl"), "gone.jsonl: no such journal."),
        (("latest", "latest", "--database", "sqlite:///none.db"), "there is no database"),
        (("latest", "other.jsonl"), "no case is on both sides: the base has 4, the head 1"),
    ],
)
def test_mistakes(bench, store, tmp_path, words, said):
    """A side that is not there, or shares no case, is one sentence and exit code 2; no database is made."""
    store(run_of(BASE, 1.25))
    store(run_of(HEAD, 1.10))
    other = factory.make_run([factory.make_case("stranger")])
    (tmp_path / "other.jsonl").write_text(other.model_dump_json() + "\n")

    code, out, err = bench(*words)

    assert (2, "") == (code, out)
    assert said in err
    assert not (tmp_path / "none.db").exists()
