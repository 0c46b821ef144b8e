"""Counters of this process in the Prometheus format: requests, their durations, records that came in, runs."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from server.queries import Queries
from server.writer import Kept

SECONDS = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10)
"""Upper ends of the histogram's bins."""

NO_ROUTE = "none"
"""In place of a route where nothing answers: a label must not grow with what strangers ask for."""

_METHODS = ("GET", "HEAD", "POST", "PATCH", "PUT", "DELETE", "OPTIONS")


class Metrics:
    """The counters of one app."""

    def __init__(self, queries: Queries) -> None:
        self._registry = CollectorRegistry()
        self.requests = Counter(
            "bench_requests",
            "Requests that were answered.",
            ("method", "route", "status"),
            registry=self._registry,
        )
        self.seconds = Histogram(
            "bench_request_seconds",
            "Seconds until the answer began.",
            ("method", "route"),
            buckets=SECONDS,
            registry=self._registry,
        )
        self.records = Counter(
            "bench_records_received", "Records that came in over the API.", ("became",), registry=self._registry
        )
        for kept in Kept:
            self.records.labels(kept.value)
        self._registry.register(_Runs(queries))

    def text(self) -> bytes:
        """Return all of them as a scraper reads them."""
        return generate_latest(self._registry)

    def count(self, kept: Iterable[Kept]) -> None:
        """Count what became of records."""
        for each in kept:
            self.records.labels(each.value).inc()


class _Runs(Collector):
    def __init__(self, queries: Queries) -> None:
        self._queries = queries

    def describe(self) -> Iterator[Metric]:
        yield GaugeMetricFamily("bench_runs", "Runs in the database.")

    def collect(self) -> Iterator[Metric]:
        yield GaugeMetricFamily("bench_runs", "Runs in the database.", value=self._queries.count())


class Counting:
    """Counts every answer, those that nobody was let in for as well."""

    def __init__(self, app: ASGIApp, *, metrics: Metrics) -> None:
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began, status, seconds = time.perf_counter(), 500, 0.0

        async def send_noted(message: Message) -> None:
            nonlocal status, seconds
            if message["type"] == "http.response.start":
                status, seconds = message["status"], time.perf_counter() - began
            await send(message)

        try:
            await self._app(scope, receive, send_noted)
        finally:
            method = scope["method"] if scope["method"] in _METHODS else "OTHER"
            route = getattr(scope.get("route"), "path", NO_ROUTE)
            self._metrics.requests.labels(method, route, str(status)).inc()
            self._metrics.seconds.labels(method, route).observe(seconds or time.perf_counter() - began)
