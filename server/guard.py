"""What stands before every answer: who may ask, how often, and what a browser may do with the answer.

    address (host, nothing secret in it) -> token, if one is given -> how often -> may they read? -> the app

Writing is asked for by the routes themselves, which need a token with its scope; see `routes.access`.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import math
import re
from urllib.parse import unquote

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from harness.errors import BenchError
from server.auth import SECRET, Token, Tokens, Unauthorised
from server.limits import Buckets
from server.routes.problems import Refused, answer, status_of
from server.settings import LOOPBACK, Reading, Settings

POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data:",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    )
)
"""Nothing inline, nothing from elsewhere: a name or an error text can never run as a script."""

HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}

TEST_HOST = "testserver"
"""The name by which a test client asks; no browser can send it from a page."""

REFUSAL = (
    "This server does not answer to that name. To let others read: bench serve --public-read, or --read-token; "
    "behind a proxy, name it in BENCH_HOSTS."
)

HOST = re.compile(r"([\w.-]+|\[[0-9A-Fa-f:.]+\])?(:\d{1,5})?", re.ASCII)
"""What a Host header may look like; some of what else comes cannot be made an address of."""

PROBES = ("/healthz", "/readyz")
"""Asked by whoever keeps the service running; they tell nothing of the results."""

IN_ADDRESS = frozenset({"token", "access_token", "api_key"})
"""Names of what must not stand in an address: it ends up in logs, histories and bookmarks."""

BURST_S = 10
"""A full bucket holds what flows into it in so many seconds."""

_SAFE = ("GET", "HEAD", "OPTIONS")


class Guard:
    """Adds the headers, and lets in who may ask."""

    def __init__(self, app: ASGIApp, *, settings: Settings, tokens: Tokens) -> None:
        self._app = app
        self._settings = settings
        self._tokens = tokens
        self._buckets = Buckets(settings.rate, settings.rate * BURST_S / 60) if settings.rate else None
        self._any_host = not settings.hosts and (settings.public_read or settings.read == Reading.TOKEN)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers[name] = value
            await send(message)

        request = Request(scope)
        try:
            self._check_address(request)
            token = await self._token(request)
            self._check_rate(request, token)
            self._check_reading(request, token)
        except BenchError as error:
            await _refusal(request, error)(scope, receive, send_guarded)
            return
        scope.setdefault("state", {})["token"] = token
        await self._app(scope, receive, send_guarded)
        if token is not None:  # when the answer is gone, since on SQLite it may have to wait for another writer
            with contextlib.suppress(BenchError):
                await run_in_threadpool(self._tokens.note_use, token)

    def _check_address(self, request: Request) -> None:
        header = request.headers.get("host", "")
        host = host_name(header)
        known = self._any_host or host in (*LOOPBACK, TEST_HOST, *self._settings.hosts)
        if not (known and HOST.fullmatch(header)):
            raise Refused(421, REFUSAL)
        query = request.scope["query_string"].decode("latin-1")
        secret = SECRET.search(unquote(f"{request.scope['path']}?{query}"))
        if secret or IN_ADDRESS & {name.lower() for name in request.query_params}:
            raise Refused(
                400,
                "A token must not stand in an address, where logs and histories keep it. Send it as a header, "
                "Authorization: Bearer; and revoke this one if it is real.",
            )

    async def _token(self, request: Request) -> Token | None:
        """Return whose token is given; None where none is.

        Raises:
            Refused: too many of this address were none.
            Unauthorised: this one is none.
            BenchError: the database does not answer.
        """
        secret = given(request)
        if secret is None:
            return None
        failed = f"failed {_address(request)}"
        if self._buckets and (wait_s := self._buckets.wait_s(failed)):
            raise _too_many(wait_s)
        try:
            return await run_in_threadpool(self._tokens.check, secret)
        except Unauthorised:
            if self._buckets:
                self._buckets.take(failed)
            raise

    def _check_rate(self, request: Request, token: Token | None) -> None:
        if self._buckets and request.scope["path"] not in PROBES:
            key = f"token {token.id}" if token else f"address {_address(request)}"
            if wait_s := self._buckets.take(key):
                raise _too_many(wait_s)

    def _check_reading(self, request: Request, token: Token | None) -> None:
        if self._settings.read == Reading.TOKEN and token is None and request.scope["path"] not in PROBES:
            way = "Bearer" if _is_program(request) else 'Basic realm="bench: a token as the password", charset="UTF-8"'
            raise Refused(
                401,
                "Reading needs a token here. Send Authorization: Bearer; a browser asks for it: any name, and the "
                "token as the password.",
                {"WWW-Authenticate": way},
            )


def given(request: Request) -> str | None:
    """Return the secret that a request bears.

    A browser can send one as a password alone. It does so by itself, on behalf of any page, so a password never
    opens anything but reading.
    """
    way, _, value = request.headers.get("authorization", "").partition(" ")
    if way.lower() == "bearer":
        return value.strip()
    if way.lower() == "basic" and request.method in _SAFE:
        with contextlib.suppress(binascii.Error, UnicodeDecodeError):
            return base64.b64decode(value.strip(), validate=True).decode().partition(":")[2]
        return ""
    return None


def host_name(header: str) -> str:
    """Return a Host header without its port: `[::1]:8000` -> `[::1]`."""
    name, _, port = header.rpartition(":")
    return (name if name and port.isdigit() else header).lower()


def _too_many(wait_s: float) -> Refused:
    seconds = max(1, math.ceil(wait_s))
    return Refused(429, f"Too many requests. Ask again in {seconds} s.", {"Retry-After": str(seconds)})


def _refusal(request: Request, error: BenchError) -> Response:
    found = answer(error)
    if _is_program(request):
        return found
    headers = {name: found.headers[name] for name in ("www-authenticate", "retry-after") if name in found.headers}
    if isinstance(error, Unauthorised):
        headers = {"WWW-Authenticate": 'Basic realm="bench: a token as the password", charset="UTF-8"'}
    return PlainTextResponse(f"{error}\n", status_of(error), headers)


def _is_program(request: Request) -> bool:
    return request.scope["path"].startswith("/api/") or "text/html" not in request.headers.get("accept", "")


def _address(request: Request) -> str:
    return request.client.host if request.client else ""
