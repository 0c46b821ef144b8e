"""What stands before every answer: who may ask, and what a browser may do with the answer."""

from __future__ import annotations

from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from server.settings import LOOPBACK

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

REFUSAL = "This dashboard answers on 127.0.0.1 and localhost only. To let others read it: bench serve --public-read\n"


class Guard:
    """Adds the headers, and refuses requests under a foreign name: a page elsewhere may have rebound it."""

    def __init__(self, app: ASGIApp, *, public: bool) -> None:
        self._app = app
        self._public = public

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

        host = host_name(Request(scope).headers.get("host", ""))
        if self._public or host in LOOPBACK or host == TEST_HOST:
            await self._app(scope, receive, send_guarded)
            return
        await PlainTextResponse(REFUSAL, status_code=421)(scope, receive, send_guarded)


def host_name(header: str) -> str:
    """Return a Host header without its port: `[::1]:8000` -> `[::1]`."""
    name, _, port = header.rpartition(":")
    return (name if name and port.isdigit() else header).lower()
