"""Lines of a journal to a server over HTTP, and what the server says to them.

A `Courier` sends the lines of one run; what the server has already is not sent again. An answer is one of three: what
became of the records, `Away` (try again later), `Rejected` (do not).
"""

from __future__ import annotations

import contextlib
import gzip
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import httpx2

from harness.errors import BenchError, UsageError
from harness.record import Run, Stage, Start, now
from harness.wire import StageLine

TIMEOUT = httpx2.Timeout(60, connect=10)
"""Seconds. The server answers a batch when it is stored, which may wait for other writers."""

BATCH_BYTES = 1 << 20
BATCH_LINES = 500
"""What is sent in one piece: a twentieth of a second of packing."""

_LATER = (408, 425, 429, 500, 502, 503, 504)
_TOO_MUCH_OR_WRONG = (413, 422)


class Away(BenchError):
    """The server does not answer, or is not ready; it may be later.

    Args:
        wait_s: as long as it asks to wait, or a second; None: nothing answers at all.
    """

    def __init__(self, text: str, wait_s: float | None = None) -> None:
        super().__init__(text)
        self.wait_s = wait_s


class Rejected(BenchError):
    """The server will not have it; asking again changes nothing."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


@dataclass(frozen=True)
class Server:
    """Where to send to, and with which key."""

    url: str
    token: str

    def client(self) -> httpx2.Client:
        headers = {"Authorization": f"Bearer {self.token}", "User-Agent": "bench"}
        return httpx2.Client(base_url=self.url, headers=headers, timeout=TIMEOUT)

    def __repr__(self) -> str:
        return f"Server({self.url!r})"  # the token must not get into a log


def server(url: str, token_file: Path | None, token: str | None) -> Server:
    """Return the server that options name.

    Raises:
        UsageError: the address is none, or there is no token.
    """
    try:
        parsed = httpx2.URL(url)
    except httpx2.InvalidURL as error:
        raise UsageError(f"--server {url}: {error}. Write e.g. https://bench.example.") from None
    if parsed.scheme not in ("http", "https") or not parsed.host:
        raise UsageError(f"--server {url}: write the address with http:// or https://, e.g. https://bench.example.")
    if parsed.userinfo or parsed.query:
        raise UsageError("--server: name the address alone. The token comes from --token-file or BENCH_TOKEN.")
    if token_file is not None:
        try:
            token = token_file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or "is no text"
            raise UsageError(f"--token-file {token_file}: {reason}. Put the token in it, and nothing else.") from None
    token = (token or "").strip()
    if not token:
        raise UsageError(
            f"sending to {url} needs a token with the scope write: in --token-file FILE or BENCH_TOKEN. "
            "`bench token create NAME --scope write` makes one, on the server."
        )
    if not (token.isascii() and token.isprintable() and " " not in token):
        raise UsageError(
            "the token is none: it is one word of letters, digits, _ and -. See --token-file, BENCH_TOKEN."
        )
    return Server(url.rstrip("/"), token)


@dataclass(frozen=True)
class Spooled:
    """A line of a journal as it stands there."""

    text: bytes
    number: int
    """Of the line, from 1."""
    end: int = 0
    """Where the next one begins, in bytes."""
    record: str | None = None
    """Its id, where it is a record."""

    @classmethod
    def of(cls, text: bytes, number: int, end: int = 0) -> Self:
        values = json.loads(text)
        return cls(text, number, end, values["id"] if values["type"] == "record" else None)


def batches(lines: Iterable[Spooled]) -> Iterator[list[Spooled]]:
    """Yield the lines in pieces as they are sent."""
    found: list[Spooled] = []
    size = 0
    for line in lines:
        if found and (size + len(line.text) > BATCH_BYTES or len(found) == BATCH_LINES):
            yield found
            found, size = [], 0
        found.append(line)
        size += len(line.text)
    if found:
        yield found


@dataclass
class Sent:
    """What became of the records that were sent."""

    new: int = 0
    known: int = 0
    late: int = 0
    refused: int = 0
    why: list[str] = field(default_factory=list)
    """The server's sentence about each batch that it refused."""

    def add(self, other: Sent) -> None:
        self.new += other.new
        self.known += other.known
        self.late += other.late
        self.refused += other.refused
        self.why += other.why


class Courier:
    """Sends the lines of one run, and says what the server said."""

    def __init__(self, client: httpx2.Client, run: Run) -> None:
        self._client = client
        self._run = run
        self._known: frozenset[str] = frozenset()

    def open(self) -> None:
        """Send the run, and hear which of its records are there.

        Raises:
            Away, Rejected: see there.
        """
        _ask(self._client, "POST", "/api/v1/runs", self._run.model_dump_json().encode())
        answer = _ask(self._client, "GET", f"/api/v1/runs/{self._run.id}/records")
        self._known = frozenset(answer["records"])

    def send(self, lines: Sequence[Spooled]) -> Sent:
        """Send lines, and those alone that the server refuses; the others of a batch must not be lost with one.

        Raises:
            Away: nothing, or not all, was stored; sent again, nothing is stored twice.
            Rejected: it would refuse any line: the token, or the run.
        """
        there = [line for line in lines if line.record is not None and line.record in self._known]
        sent = Sent(known=len(there))
        missing = [line for line in lines if line not in there]
        if missing:
            sent.add(self._send(missing))
        return sent

    def stage(self, start: Start, stage: Stage) -> None:
        """Say where the case in hand is.

        Raises:
            Away, Rejected: see there.
        """
        line = StageLine(
            run_id=start.run_id, case_id=start.case_id, attempt=start.attempt, stage=stage, at=now()
        ).model_dump_json()
        _ask(self._client, "POST", self._address, line.encode())

    @property
    def _address(self) -> str:
        return f"/api/v1/runs/{self._run.id}/records"

    def _send(self, lines: Sequence[Spooled]) -> Sent:
        body = b"".join(line.text.rstrip(b"\r\n") + b"\n" for line in lines)
        try:
            answer = _ask(self._client, "POST", self._address, body)
        except Rejected as error:
            if error.status not in _TOO_MUCH_OR_WRONG:
                raise
            if len(lines) == 1:
                why = f"line {lines[0].number} of the journal: {str(error).removeprefix('line 1: ')}"
                return Sent(refused=int(lines[0].record is not None), why=[why])
            half = len(lines) // 2
            sent = self._send(lines[:half])
            sent.add(self._send(lines[half:]))
            return sent
        return Sent(new=answer["new"], known=answer["known"], late=answer["late"])


def check(where: Server) -> str | None:
    """Ask whether a server would take what is sent, and return a sentence if it does not answer now.

    Raises:
        UsageError: it would not: the token is not good for it, or the address is none of a server of ours.
    """
    with where.client() as client:
        try:
            token = _ask(client, "GET", "/api/v1/token")
        except Away as error:
            return str(error)
        except Rejected as error:
            raise UsageError(f"--server {where.url}: {error}") from None
    if token.get("scope") not in ("write", "admin"):
        raise UsageError(
            f"--server {where.url}: the token {token.get('name')!r} has the scope {token.get('scope')}, and sending "
            "needs write."
        )
    return None


def _ask(client: httpx2.Client, method: str, path: str, body: bytes | None = None) -> Any:
    packed = gzip.compress(body, 6) if body is not None else None
    kind = "application/json" if path.endswith("/runs") else "application/x-ndjson"
    headers = {"Content-Encoding": "gzip", "Content-Type": kind} if packed is not None else {}
    try:
        response = client.request(method, path, content=packed, headers=headers)
    except httpx2.RequestError as error:
        raise Away(f"the server at {client.base_url} does not answer ({_cause(error)}).") from None
    if response.is_success:
        with contextlib.suppress(ValueError):
            return response.json()
        raise Rejected(response.status_code, f"what answers at {client.base_url} is no server of bench.")
    said = _said(response)
    if response.status_code in _LATER:
        wait = response.headers.get("retry-after", "")
        raise Away(f"the server at {client.base_url} is not ready: {said}", float(wait) if wait.isdigit() else 1.0)
    raise Rejected(response.status_code, said)


def _said(response: httpx2.Response) -> str:
    """Return the server's sentence, or its status where it has none."""
    with contextlib.suppress(ValueError, KeyError, TypeError):
        detail = response.json()["detail"]
        if isinstance(detail, str):
            return detail
    if response.is_redirect:
        return f"it sends on to {response.headers.get('location')}. Name that address with --server."
    return f"it answers {response.status_code} {response.reason_phrase}."


def _cause(error: httpx2.RequestError) -> str:
    return str(error) or type(error).__name__
