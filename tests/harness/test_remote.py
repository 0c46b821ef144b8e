"""A run to a server: it may be away, come back, refuse or be exchanged; nothing is lost, and the run never waits."""

from __future__ import annotations

import gzip
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import httpx2
import pytest

from harness import courier, remote
from harness.courier import Courier, Rejected, Sent, Server, Spooled, server
from harness.errors import BenchError, UsageError
from harness.journal import Journal
from harness.record import EndReason, RunEnd, Stage, now
from harness.remote import Remote, Spool, push
from harness.sinks import Sink
from server import bodies
from server.auth import Scope
from tests.server import factory
from tests.server.doors import Door
from tests.server.reading import rows
from tests.serving import free_port, serving, wait_for


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote, "WAITS_S", (0.05,) * 7)


@pytest.fixture
def door(url: str) -> Door:
    return Door(url)


@pytest.fixture
def where(door: Door) -> Server:
    """Where the server will be."""
    _, secret = door.tokens.create("nightly", Scope.WRITE, None)
    return Server(f"http://127.0.0.1:{free_port()}", secret)


def port(where: Server) -> int:
    return int(where.url.rpartition(":")[2])


class Night:
    """Plays a run to its journal and to a sink, as the runner does: first the one, then the other."""

    def __init__(self, folder: Path, cases: int = 6) -> None:
        self.run = factory.make_run(cases, at=now())
        self.path = folder / f"{self.run.id}.jsonl"
        self.journal = Journal(self.path)
        self.journal.write(self.run)

    def case(self, number: int, *sinks: Sink, record: dict[str, object] | None = None) -> None:
        case = self.run.plan[number].case
        start = factory.make_start(case, self.run.id, at=now())
        self.journal.write(start)
        for sink in sinks:
            sink.start(start)
            sink.stage(start, Stage.COMPILE)
        found = factory.make_record(case, run_id=self.run.id, at=now()).model_copy(update=record or {})
        self.journal.write(found)
        for sink in sinks:
            sink.record(found)

    def end(self, *sinks: Sink) -> None:
        end = RunEnd(run_id=self.run.id, at=now(), reason=EndReason.FINISHED)
        self.journal.write(end)
        for sink in sinks:
            sink.close(end)


@pytest.fixture
def night(tmp_path: Path) -> Night:
    return Night(tmp_path)


def stored(url: str) -> list[tuple]:  # type: ignore[type-arg]
    return rows(url, "SELECT planned, passed, end_reason FROM run")


def test_run_is_there_as_it_goes_on(night: Night, door: Door, where: Server, url: str) -> None:
    """Records reach the server while the run goes on, and its end at the end."""
    sink = Remote(where, night.path)
    with serving(door.app, port(where)):
        sink.open(night.run)
        night.case(0, sink)
        assert wait_for(lambda: rows(url, "SELECT outcome FROM result") == [("pass",)])
        night.case(1, sink)
        night.end(sink)

        assert sink.finish() is None
    assert [(6, 2, "finished")] == stored(url)
    assert (2, 0) == (sink.sent.new, sink.sent.refused)


def test_server_that_is_away_costs_nothing(night: Night, where: Server) -> None:
    """Without a server a run is as quick, and at its end it is said what is missing there and why."""
    sink = Remote(where, night.path)
    sink.open(night.run)
    began = time.perf_counter()
    for number in range(6):
        night.case(number, sink)
    night.end(sink)
    played_s = time.perf_counter() - began

    lacking = sink.finish(grace_s=10)
    assert lacking is not None
    assert lacking.startswith(f"the server at {where.url} lacks 6 records of this run: the server at {where.url}")
    assert "does not answer" in lacking
    assert played_s < 5


def test_unplugged(night: Night, door: Door, where: Server, url: str) -> None:
    """A server that goes in the middle and comes back has everything, each record once."""
    sink = Remote(where, night.path)
    with serving(door.app, port(where)):
        sink.open(night.run)
        night.case(0, sink)
        assert wait_for(lambda: sink.sent.new == 1)
    night.case(1, sink)
    night.case(2, sink)
    assert wait_for(lambda: sink.trouble is not None)
    with serving(door.app, port(where)):
        assert wait_for(lambda: sink.sent.new == 3)
        for number in (3, 4, 5):
            night.case(number, sink)
        night.end(sink)

        assert sink.finish() is None
    assert [(6, 6, "finished")] == stored(url)
    assert (6, 0) == (sink.sent.new, sink.sent.known)


def test_killed(night: Night, url: str, tmp_path: Path, door: Door, where: Server) -> None:
    """The same with a server process that is killed outright and started anew."""

    def start() -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "bench.main", "serve", "--database", url, "--port", str(port(where))]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        assert process.stdout.readline().startswith("Dashboard: ")
        return process

    sink = Remote(where, night.path)
    process = start()
    sink.open(night.run)
    for number in range(3):
        night.case(number, sink)
        if number == 0:
            assert wait_for(lambda: sink.sent.new == 1)
            os.kill(process.pid, signal.SIGKILL)
            process.wait(20)
    assert wait_for(lambda: sink.trouble is not None)
    process = start()
    night.end(sink)

    assert sink.finish() is None
    process.terminate()
    process.wait(20)
    assert [(6, 3, "finished")] == stored(url)


def test_bad_record_holds_nothing_back(night: Night, door: Door, where: Server, url: str) -> None:
    """Of a batch with a record that the server refuses the others arrive; the server's sentence is kept, once."""
    sink = Remote(where, night.path)
    for number in range(6):
        night.case(number, record={"finished_at": factory.BEGIN.replace(year=2001)} if number == 2 else None)
    with serving(door.app, port(where)):
        sink.open(night.run)
        lacking = sink.finish()

    assert lacking is not None
    assert lacking.endswith("lacks 1 records of this run: line 7 of the journal: finished_at: lies before started_at.")
    assert [(6, 5, None)] == stored(url)


def test_what_is_too_much_at_once_goes_in_parts(night: Night, door: Door, where: Server, url: str, monkeypatch) -> None:
    """A batch that the server finds too large is halved until it is not."""
    monkeypatch.setattr(bodies, "LINES", 3)
    sink = Remote(where, night.path)
    for number in range(6):
        night.case(number)
    with serving(door.app, port(where)):
        sink.open(night.run)

        assert sink.finish() is None
    assert [(6, 6, None)] == stored(url)


def test_revoked_token_ends_the_sending(night: Night, door: Door, where: Server) -> None:
    """A token that is revoked in the night is said at the end; the run goes on."""
    sink = Remote(where, night.path)
    with serving(door.app, port(where)):
        sink.open(night.run)
        night.case(0, sink)
        assert wait_for(lambda: sink.sent.new == 1)
        door.tokens.revoke("nightly")
        night.case(1, sink)
        assert wait_for(lambda: sink.refused is not None)
        night.case(2, sink)

        lacking = sink.finish()
    assert lacking is not None
    assert lacking.endswith("lacks 2 records of this run: The token 'nightly' was revoked. Ask for another.")


def test_exchanged_database_is_filled_anew(night: Night, door: Door, where: Server, tmp_path: Path) -> None:
    """A server that comes back without the run gets all of it again."""
    other_url = f"sqlite:///{tmp_path}/other.db"
    other = Door(other_url)
    sink = Remote(where, night.path)
    with serving(door.app, port(where)):
        sink.open(night.run)
        night.case(0, sink)
        assert wait_for(lambda: sink.sent.new == 1)
    other.app.state.engine.dispose()
    with other.app.state.engine.begin() as connection:
        digest = rows(str(door.app.state.engine.url), "SELECT id, digest FROM token")[0]
        connection.exec_driver_sql(
            "INSERT INTO token (id, name, scope, digest, created_at) VALUES (?, 'nightly', 'write', ?, '2026-08-12')",
            digest,
        )
    with serving(other.app, port(where)):
        night.case(1, sink)
        night.end(sink)
        assert wait_for(lambda: sink.sent.new == 3)

        assert sink.finish() is None
    assert [(6, 2, "finished")] == stored(other_url)


def test_keeps_still_while_a_case_is_timed(night: Night, door: Door, where: Server, url: str) -> None:
    """While samples are taken nothing is sent but the news of it; then all that waited."""
    sink, asked = Remote(where, night.path), []

    async def counting(scope: object, receive: object, send: object) -> None:
        asked.append(scope["path"] if scope["type"] == "http" else None)  # type: ignore[index]
        await door.app(scope, receive, send)  # type: ignore[arg-type]

    case = night.run.plan[1].case
    start = factory.make_start(case, night.run.id, at=now())
    with serving(counting, port(where)):
        sink.open(night.run)
        night.case(0, sink)
        night.journal.write(start)
        sink.start(start)
        assert wait_for(lambda: len(rows(url, "SELECT stage FROM progress")) == 1)
        sink.stage(start, Stage.TIME)
        assert wait_for(lambda: rows(url, "SELECT stage FROM progress") == [("time",)])
        before = len(asked)
        night.case(2)
        sink.stage(start, Stage.TIME)  # wakes the thread, which has lines to send now
        time.sleep(0.3)

        assert before == len(asked)
        sink.record(factory.make_record(case))
        assert wait_for(lambda: sink.sent.new == 2)
        assert sink.finish() is None


def test_resumed_run_sends_only_what_is_missing(night: Night, door: Door, where: Server, url: str) -> None:
    """A run that is taken up again asks what the server has, and sends the rest."""
    with serving(door.app, port(where)):
        first = Remote(where, night.path)
        first.open(night.run)
        night.case(0, first)
        assert first.finish() is None
        second = Remote(where, night.path)
        second.open(night.run)
        night.case(1, second)
        assert second.finish() is None

    assert (1, 1) == (second.sent.new, second.sent.known)
    assert [(2, 0)] == rows(url, "SELECT sum(new), sum(known) FROM upload")


def test_spool_passes_over_a_torn_line(night: Night) -> None:
    """Of a journal those lines are sent that are whole, and the line that is being written when it is."""
    night.case(0)
    spool = Spool(night.path)
    with open(night.path, "ab") as file:
        file.write(b'{"schema": 1, "type"')
        file.flush()
        whole = spool.batch()
        assert [2, 3] == [line.number for line in whole]
        spool.passed(whole[-1])
        assert [] == spool.batch()
        file.write(b': "record", "id": "x"}\n')

    assert [(4, "x")] == [(line.number, line.record) for line in spool.batch()]
    assert 1 == spool.records_left()


# -- push -------------------------------------------------------------------------------------


@pytest.mark.parametrize("zipped", [False, True])
def test_push(night: Night, door: Door, where: Server, url: str, zipped: bool) -> None:
    """A whole journal is pushed, plain or gzipped, as often as one likes."""
    for number in range(6):
        night.case(number)
    night.end()
    path = night.path
    if zipped:
        path = path.with_suffix(".jsonl.gz")
        path.write_bytes(gzip.compress(night.path.read_bytes()))
    with serving(door.app, port(where)):
        first, second = push(where, path), push(where, path)

    assert ([night.run.id], Sent(new=6)) == first
    assert ([night.run.id], Sent(known=6)) == second
    assert [(6, 6, "finished")] == stored(url)


def test_push_goes_on_where_it_stopped(night: Night, door: Door, where: Server, url: str, monkeypatch) -> None:
    """A push that was cut off says what arrived; the next one sends the rest."""
    monkeypatch.setattr(courier, "BATCH_LINES", 4)
    for number in range(6):
        night.case(number)
    real, sent = Courier._send, []

    def once(self: Courier, lines: list[Spooled]) -> Sent:
        if sent:
            raise courier.Away("the wire was cut.")
        sent.append(lines)
        return real(self, lines)

    with serving(door.app, port(where)):
        monkeypatch.setattr(Courier, "_send", once)
        with pytest.raises(BenchError, match="2 records were sent, then: the wire was cut. When that is mended"):
            push(where, night.path, pause=lambda _: None)
        monkeypatch.setattr(Courier, "_send", real)

        assert Sent(new=4, known=2) == push(where, night.path)[1]


def test_push_of_no_journal(tmp_path: Path, where: Server) -> None:
    """A file that is no journal is refused before anything is asked."""
    path = tmp_path / "x.jsonl"
    path.write_text(factory.make_end().model_dump_json() + "\n")

    with pytest.raises(BenchError, match="does not begin with a run"):
        push(where, path)


# -- the server's words -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "headers", "content", "said"),
    [
        (301, {"location": "https://bench.example/"}, "", "it sends on to https://bench.example/. Name that address"),
        (404, {}, "<html>", "it answers 404 Not Found."),
        (401, {}, '{"detail": "This token is not known here."}', "This token is not known here."),
        (405, {}, '{"detail": ["odd"]}', "it answers 405 Method Not Allowed."),
        (200, {}, "<html>", "is no server of bench."),
    ],
)
def test_answers_of_others(status: int, headers: dict[str, str], content: str, said: str) -> None:
    """What answers in the place of a server of ours is told in words."""
    answer = httpx2.Response(status, headers=headers, text=content)
    client = httpx2.Client(transport=httpx2.MockTransport(lambda _: answer), base_url="http://bench.example")

    with pytest.raises(Rejected, match=said):
        Courier(client, factory.make_run(1)).open()


def test_waits_as_long_as_it_is_told() -> None:
    """A server that has too much to do says how long to wait."""
    answer = httpx2.Response(429, headers={"retry-after": "7"}, json={"detail": "Too many requests."})
    client = httpx2.Client(transport=httpx2.MockTransport(lambda _: answer), base_url="http://bench.example")

    with pytest.raises(courier.Away, match="is not ready: Too many requests") as caught:
        Courier(client, factory.make_run(1)).open()
    assert 7 == caught.value.wait_s


@pytest.mark.parametrize(
    ("url", "token", "said"),
    [
        ("bench.example", "t", "write the address with http"),
        ("ftp://bench.example", "t", "write the address with http"),
        ("https://me:secret@bench.example", "t", "name the address alone"),
        ("https://bench.example/?token=secret", "t", "name the address alone"),
        ("https://bench.example", None, "needs a token with the scope write"),
        ("https://bench.example", " ", "needs a token with the scope write"),
        ("https://bench.example", "two words", "the token is none"),
    ],
)
def test_where_to_send_to(url: str, token: str | None, said: str) -> None:
    """An address and a token that cannot be are a mistake of usage, and no secret is repeated."""
    with pytest.raises(UsageError, match=said) as caught:
        server(url, None, token)
    assert "secret" not in str(caught.value)


def test_token_from_a_file(tmp_path: Path) -> None:
    """The token in a file wins over the environment's, and is never shown."""
    path = tmp_path / "token"
    path.write_text("from-the-file\n")

    found = server("https://bench.example/", path, "from-the-environment")
    assert ("https://bench.example", "from-the-file") == (found.url, found.token)
    assert "from-the-file" not in repr(found)
    with pytest.raises(UsageError, match="No such file or directory. Put the token in it"):
        server("https://bench.example", tmp_path / "none", None)


def test_asked_beforehand(door: Door, where: Server) -> None:
    """Before a night begins the token is tried: one that cannot write is a mistake, a server that is away is not."""
    _, reads = door.tokens.create("reader", Scope.READ, None)
    assert "does not answer" in str(courier.check(where))
    with serving(door.app, port(where)):
        assert courier.check(where) is None
        with pytest.raises(UsageError, match="the token 'reader' has the scope read, and sending needs write"):
            courier.check(Server(where.url, reads))
        with pytest.raises(UsageError, match="This token is not known here"):
            courier.check(Server(where.url, "bench_none"))
