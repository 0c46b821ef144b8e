"""`bench import`: journals and the files of others into the database, each upload wholly or not at all."""

from __future__ import annotations

import gzip
import json
import sqlite3
from pathlib import Path

import pytest
from typer.testing import CliRunner

from bench.data import app
from harness.errors import BenchError, UsageError
from server import db
from server.queries import Queries
from tests.server import factory


@pytest.fixture
def database(tmp_path: Path) -> Path:
    return tmp_path / "bench.db"


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    """A finished run of three cases, as `bench run` writes it."""
    run = factory.make_run(3)
    records = [factory.make_record(planned.case) for planned in run.plan]
    path = tmp_path / "run.jsonl"
    path.write_text("".join(line.model_dump_json() + "\n" for line in (run, *records, factory.make_end())))
    return path


def load(database, *arguments):
    return CliRunner().invoke(app, [*map(str, arguments), "--database", f"sqlite:///{database}"])


def stored(database) -> int:
    with sqlite3.connect(database) as found:
        return found.execute("SELECT count(*) FROM result").fetchone()[0]


def test_new_and_known(database, journal):
    """A journal is loaded once; the second time its records are known."""
    first, second = load(database, journal), load(database, journal)

    assert f"{journal}: journal of run 0194a3f2, 3 records: 3 new\n" == first.stdout
    assert f"{journal}: journal of run 0194a3f2, 3 records: 0 new, 3 already there\n" == second.stdout
    assert 3 == stored(database)


def test_compressed(database, journal, tmp_path):
    """A gzipped journal is read as it is."""
    packed = tmp_path / "run.jsonl.gz"
    packed.write_bytes(gzip.compress(journal.read_bytes()))

    assert "3 new" in load(database, packed).stdout


def test_torn_last_line(database, journal):
    """The torn last line of a killed run loses that line alone."""
    journal.write_text(journal.read_text()[:-30])

    assert "3 new" in load(database, journal).stdout


@pytest.mark.parametrize("place", [0, 2])
def test_bad_line_stores_nothing_of_its_file(database, journal, place):
    """A broken line is named by file and number; nothing of that file is stored, all of the others is."""
    lines = journal.read_text().splitlines(keepends=True)
    broken = journal.with_name("broken.jsonl")
    broken.write_text("".join(lines[:place]) + "{broken\n" + "".join(lines[place:]))
    result = load(database, broken, journal)

    assert f"bench: {broken}, line {place + 1}: not JSON" in result.stderr
    assert "Nothing of this file was stored." in result.stderr
    assert "3 new" in result.stdout
    assert isinstance(result.exception, BenchError)
    assert (1, 3) == (result.exception.exit_code, stored(database))


def test_record_of_another_run(database, journal, tmp_path):
    """A record that does not belong to the journal's run is refused, with the file's name."""
    stray = factory.make_record(factory.make_case("stranger"))
    journal.write_text(journal.read_text() + stray.model_dump_json() + "\n")

    result = load(database, journal)

    assert f"bench: {journal}: run {factory.RUN_ID} has no case" in result.stderr
    assert 0 == stored(database)


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("nothing.jsonl", None, "cannot be read: No such file"),
        ("empty.jsonl", "", "does not begin with a run"),
        ("notes.txt", "milk, eggs\n", "is no result file that bench knows (its columns are milk, eggs)"),
        ("settings.json", '{"a": 1}', "is JSON, and no result file that bench knows (a)"),
        ("fake.jsonl.gz", "not gzipped\n", "cannot be read"),
    ],
)
def test_what_is_no_journal(database, tmp_path, name, content, said):
    """Other files are refused with where, what and what to do."""
    path = tmp_path / name
    if content is not None:
        path.write_text(content)

    result = load(database, path)

    assert result.stderr.startswith(f"bench: {path}")
    assert said in result.stderr
    assert "1 of 1 files could not be imported" in str(result.exception)


def test_folder(database, tmp_path):
    """A folder is answered with the pattern of its journals."""
    assert f"{tmp_path}: is a folder. Name the files in it: {tmp_path}/*" in load(database, tmp_path).stderr


def test_json(database, journal):
    """For programs there is one object a file."""
    line = json.loads(load(database, journal, "--json").stdout)

    assert (1, "import", 3, 0) == tuple(line[name] for name in ("schema", "type", "new", "already_there"))


# -- files of others --------------------------------------------------------------------------

NAME = "inductor_no_cudagraphs_timm_models_bfloat16_inference_cuda_h100_{}.csv"


@pytest.fixture
def upload(tmp_path: Path) -> tuple[Path, Path]:
    """Accuracy and performance of two models, one of which is timed."""
    accuracy, performance = (tmp_path / NAME.format(target) for target in ("accuracy", "performance"))
    accuracy.write_text("dev,name,batch_size,accuracy\ncuda,a,4,pass\ncuda,b,4,fail_accuracy\n")
    performance.write_text("dev,name,batch_size,speedup,abs_latency\ncuda,a,32,1.4375,6.25\ncuda,b,32,0.5,9.0\n")
    return accuracy, performance


def test_files_of_others(database, upload):
    """Accuracy and performance files are one run with what others state; the second time it is known."""
    first, second = load(database, *upload), load(database, *reversed(upload))
    queries = Queries(db.connect(f"sqlite:///{database}"))
    run, (a, b) = queries.run(), queries.results()

    assert (
        f"{upload[0]}, {upload[1]}: results of the PyTorch runner, run {run.id[:8]}, 2 records: 2 new\n" in first.stdout
    )
    assert "2 records: 0 new, 2 already there" in second.stdout
    assert 1 == queries.count()
    assert (1.4375, None, None) == (a.speedup.value, a.speedup.low, a.speedup.n)
    assert ("pass", True, "stated", 0.00625) == (a.status, a.valid, a.reference, a.compiled_s)
    assert ("fail_accuracy", False) == (b.status, b.valid)
    (summary,) = run.summaries
    assert (1, 2, 1.4375, None) == (summary.passed, summary.planned, summary.speedup.value, summary.speedup.low)


def test_unknown_is_said(database, tmp_path):
    """What cannot be known is said with the options that would say it."""
    path = tmp_path / "numbers.csv"
    path.write_text("dev,name,batch_size,speedup\ncuda,a,32,1.5\n")

    told = load(database, path).stdout

    assert "nothing says when it was measured; its file's own time is taken. Give --time." in told
    assert "not known: backend, mode, precision, suite. Where you know better: --backend --mode" in told


def test_options(database, tmp_path):
    """Options say what a file does not, in upstream's words or ours."""
    path = tmp_path / "numbers.csv"
    path.write_text("name,batch_size,speedup\na,32,1.5\n")
    options = [
        "--suite",
        "timm_models",
        "--mode",
        "training",
        "--precision",
        "amp_fp16",
        "--device",
        "cuda-a100",
        "--backend",
        "inductor",
    ]
    options += [
        "--variant",
        "with_cudagraphs",
        "--commit",
        "ABCDEF1",
        "--branch",
        "main",
        "--trigger",
        "nightly",
        "--time",
        "2024-03-10",
    ]

    told = load(database, path, *options)
    head = Queries(db.connect(f"sqlite:///{database}")).head()
    (result,) = Queries(db.connect(f"sqlite:///{database}")).results()

    assert "not known" not in told.stdout
    assert ("2024-03-10T00:00:00+00:00", "abcdef1", "main", "nightly", True) == (
        head.started_at.isoformat(),
        head.commit,
        head.branch,
        head.trigger,
        head.dated,
    )
    assert ("timm", "training amp(float16) with_cudagraphs") == (result.suite, result.label)
    assert ("pytorch-csv", "cuda-a100") == (head.source, head.profile.name)


@pytest.mark.parametrize(
    ("option", "said"),
    [
        (("--mode", "unknown"), "--mode unknown: unknown. Known: inference, training."),
        (("--precision", "notset"), "--precision notset: unknown. Known: fp32, amp"),
        (("--device", "abacus"), "--device abacus: unknown. Known: cuda"),
        (("--time", "yesterday"), "--time yesterday: no moment."),
        (("--rule", "upstream-2021"), "there is no rule 'upstream-2021'. Close: upstream-2022."),
    ],
)
def test_wrong_options(database, upload, option, said):
    """A word that is none of those that can be is refused before anything is read."""
    result = load(database, *upload, *option)

    assert isinstance(result.exception, UsageError)
    assert said in str(result.exception)
    assert not database.exists()


def test_malformed_stores_nothing_of_its_upload(database, upload):
    """A malformed file is refused with its lines; what belongs to the same upload waits for it."""
    accuracy, performance = upload
    performance.write_text(performance.read_text() + "cuda,c,32\n<<<<<<< HEAD\n")

    result = load(database, *upload)

    assert f"bench: {performance}, line 4: 3 cells, and the header has 5; line 5: a mark of a merge" in result.stderr
    assert f"bench: {accuracy}: is of the same upload as {performance}. Nothing of this file" in result.stderr
    assert "2 of 2 files could not be imported" in str(result.exception)
    assert 0 == stored(database)


def test_lenient(database, upload):
    """With --lenient the good rows are taken, and the bad lines are told, to a program too."""
    _, performance = upload
    performance.write_text(performance.read_text() + "cuda,c,32\n")

    result = load(database, *upload, "--lenient", "--json")
    line = json.loads(result.stdout)

    assert 0 == result.exit_code
    assert f"bench: {performance}, left out: line 4: 3 cells, and the header has 5" in result.stderr
    assert ("pytorch-csv", 2, 0) == (line["format"], line["new"], line["replaced"])
    assert "line 4" in line["bad"]
    assert [str(path) for path in upload] == line["files"]


def test_rule(database, upload):
    """The figures by another rule stand below the run."""
    told = load(database, *upload, "--rule", "upstream-2022").stdout

    assert "by the rule of 2022" in told
    assert "timm inference bf16 no_cudagraphs: 1 of 2 passed (50%), geometric mean 1.44x of 1 models" in told


def test_nothing_to_import(database, tmp_path):
    """An empty file is no failure: it holds no results."""
    path = tmp_path / "empty.json"
    path.write_text("")

    result = load(database, path)

    assert (0, f"bench: {path}: holds no results\n") == (result.exit_code, result.stderr)
