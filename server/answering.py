"""What every answer of the API gets: a tag by which an unchanged one is not sent again, and compression."""

from __future__ import annotations

import hashlib

from starlette.datastructures import Headers, MutableHeaders
from starlette.middleware.gzip import GZipMiddleware
from starlette.types import ASGIApp, Message, Receive, Scope, Send

SMALLEST = 1024
"""Bytes below which a body is not worth compressing."""

LEVEL = 4
"""zlib's. A year of sixteen series takes 12 ms, with level 9 32 ms for 1 % less; runs 5 ms, 12 ms for 16 % less."""

PREFIX = "/api/"


class Answering:
    """Tags and compresses what is answered below `/api/`; pages are left alone: they mostly stay on the machine."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._api = GZipMiddleware(_Tagging(app), minimum_size=SMALLEST, compresslevel=LEVEL)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        of_api = scope["type"] == "http" and scope["path"].startswith(PREFIX)
        await (self._api if of_api else self._app)(scope, receive, send)


class _Tagging:
    """Gives each whole answer a strong ETag, the hash of its body, and answers 304 to who has it.

    A tag belongs to one encoding (RFC 9110, 8.8.3), so the compressed answer's is another. What is streamed has none.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] not in ("GET", "HEAD"):
            await self._app(scope, receive, send)
            return
        asked = Headers(scope=scope)
        start: Message | None = None

        async def send_tagged(message: Message) -> None:
            nonlocal start
            if message["type"] == "http.response.start" and _is_whole(message):
                start = message
                return
            if start is not None:
                begun, start = start, None
                headers = MutableHeaders(scope=begun)
                tag = _tag(message["body"], "gzip" in asked.get("accept-encoding", ""))
                headers["ETag"] = tag
                headers["Cache-Control"] = "private, no-cache"
                if _fits(tag, asked.get("if-none-match", "")):
                    del headers["Content-Length"], headers["Content-Type"]
                    begun, message = {**begun, "status": 304}, {**message, "body": b""}
                await send(begun)
            await send(message)

        await self._app(scope, receive, send_tagged)


def _is_whole(start: Message) -> bool:
    """A good answer whose length is known is one piece; what is streamed has none, and must not wait."""
    return start["status"] == 200 and "content-length" in Headers(raw=start["headers"])


def _tag(body: bytes, zipped: bool) -> str:
    encoding = "-gzip" if zipped and len(body) >= SMALLEST else ""
    return f'"{hashlib.blake2b(body, digest_size=12).hexdigest()}{encoding}"'


def _fits(tag: str, known: str) -> bool:
    """If-None-Match compares weakly: a proxy may have marked the tag as weak."""
    listed = [each.strip().removeprefix("W/") for each in known.split(",")]
    return tag in listed or "*" in listed
