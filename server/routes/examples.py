"""Small bodies as they may be sent, for the description of the API; a test sends them."""

from __future__ import annotations

from typing import Any

from harness.record import record_id

RUN_ID = "0194a3f2-1111-7000-8000-000000000001"

CASE: dict[str, Any] = {
    "suite": "toy",
    "model": "mlp",
    "device": "cpu",
    "mode": "inference",
    "precision": "fp32",
    "batch_size": 2,
}
CASE_ID = "4e7f8e92611a1293"

RUN: dict[str, Any] = {
    "schema": 1,
    "type": "run",
    "id": RUN_ID,
    "started_at": "2026-08-12T01:00:00Z",
    "command": "bench run --suite toy",
    "profile": {"name": "cpu", "kind": "cpu"},
    "environment": {"host": "bench-1", "versions": {"torch": "2.14.1"}},
    "protocol": {},
    "plan": [
        {
            "case": CASE,
            "spec": {"name": "mlp"},
            "module": "suites.toy",
            "tolerance": 0.0001,
            "timeout_s": 1800,
        }
    ],
    "trigger": "nightly",
}

LINES: tuple[dict[str, Any], ...] = (
    {
        "schema": 1,
        "type": "start",
        "run_id": RUN_ID,
        "case_id": CASE_ID,
        "attempt": 1,
        "at": "2026-08-12T01:00:05Z",
    },
    {
        "schema": 1,
        "type": "stage",
        "run_id": RUN_ID,
        "case_id": CASE_ID,
        "attempt": 1,
        "stage": "compile",
        "at": "2026-08-12T01:00:07Z",
    },
    {
        "schema": 1,
        "type": "record",
        "id": record_id(RUN_ID, CASE_ID, 1),
        "run_id": RUN_ID,
        "case": CASE,
        "attempt": 1,
        "started_at": "2026-08-12T01:00:05Z",
        "finished_at": "2026-08-12T01:00:25Z",
        "outcome": "oom",
        "stage": "compile",
        "side": "compiled",
        "text": "out of memory while compiling",
        "derived": {"valid": False, "no_estimate": "not timed"},
    },
    {"schema": 1, "type": "end", "run_id": RUN_ID, "at": "2026-08-12T01:00:26Z", "reason": "finished"},
)
