"""The environment: what is found here is what other sources say, and what is not there is None."""

from __future__ import annotations

import os
import platform
from pathlib import Path

import psutil
import pytest
import torch

from harness.worker import environment


def test_agrees_with_other_sources() -> None:
    """Memory, cores, versions and threads are those that the system and torch report."""
    found = environment.find(None)

    assert found.memory_bytes == psutil.virtual_memory().total
    assert found.versions["torch"].partition("+")[0] == torch.__version__.partition("+")[0]
    assert found.python == platform.python_version()
    assert 1 <= found.threads <= found.cores_usable <= (os.cpu_count() or 1)
    assert set(found.emulated) <= {"bfloat16", "float16"}


def test_threads_are_those_asked_for() -> None:
    """A profile's thread count is the environment's."""
    assert environment.find(1).threads == 1


def test_cgroup_quota_limits_the_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    """A quota of half the period leaves one core, no quota leaves all that affinity allows."""
    for quota, cores in (("50000 100000", 1), ("max 100000", len(os.sched_getaffinity(0))), (None, None)):
        monkeypatch.setattr(environment, "_text", lambda path, quota=quota: quota)
        assert environment.usable_cores() == (cores or len(os.sched_getaffinity(0)))


def test_processor_of_arm(monkeypatch: pytest.MonkeyPatch) -> None:
    """On Arm the kernel calls the flags Features and may name no model: both are borne."""
    monkeypatch.setattr(environment, "_text", lambda path: "processor\t: 0\nFeatures\t: fp asimd asimdhp bf16 sve\n")

    assert environment.cpu_flags() >= {"bf16", "sve"}


def test_absent_is_none(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No compiler, no governor, no machine id: None, and no exception."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("CXX", "no-such-compiler")
    monkeypatch.setattr(environment, "_text", lambda path: None)
    found = environment.find(None)

    assert (found.compiler, found.governor, found.machine_id, found.virtualised) == (None, None, None, None)
