"""The seam to CUDA, with torch's functions and the driver replaced: no GPU is needed, and none was used."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch

from harness.errors import BenchError
from harness.worker.cuda import CudaDevice
from suites.spec import Precision
from tests.fakes import A100, Driver

SECOND = "22222222-aaaa-bbbb-cccc-000000000002"


@pytest.fixture
def cuda(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """Torch with a GPU of 40 GB that the driver calls its second, and a note of what was asked of it."""
    asked = SimpleNamespace(capability=(8, 0), fraction=None)
    properties = SimpleNamespace(uuid=SECOND, total_memory=40 << 30)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: None)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda index: properties)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda index: asked.capability)
    monkeypatch.setattr(torch.cuda, "set_per_process_memory_fraction", lambda share: setattr(asked, "fraction", share))
    monkeypatch.delenv("CUDA_DEVICE_ORDER", raising=False)
    return asked


def test_monitor_is_the_same_gpu(cuda: SimpleNamespace, driver: Driver) -> None:
    """The GPU that is looked at is the one that CUDA works on, by its identity, whatever their orders are."""
    second = A100 | {"uuid": f"GPU-{SECOND}", "clock": 1230, "highest": 1980}
    driver.write({"driver": "580.95.05", "gpus": [A100, second]})
    device = CudaDevice()

    assert (1230.0, 1980.0) == (device.read().clock_mhz, device.highest_clock_mhz())


def test_no_monitor(cuda: SimpleNamespace, driver: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without NVML a GPU is measured all the same, and its conditions are unknown."""
    monkeypatch.delenv("NVML_STUB")
    device = CudaDevice()

    assert (None, None) == (device.read().clock_mhz, device.highest_clock_mhz())


@pytest.mark.parametrize(
    ("capability", "precision", "amp_dtype", "emulated"),
    [
        ((7, 5), Precision.AMP, "bfloat16", True),
        ((7, 5), Precision.BF16, None, True),
        ((7, 5), Precision.AMP, "float16", False),
        ((7, 5), Precision.FP32, None, False),
        ((8, 0), Precision.AMP, "bfloat16", False),
        ((9, 0), Precision.BF16, None, False),
    ],
)
def test_emulated(
    cuda: SimpleNamespace,
    driver: Driver,
    capability: tuple[int, int],
    precision: Precision,
    amp_dtype: str | None,
    emulated: bool,
) -> None:
    """bfloat16 has instructions from compute capability 8.0 on."""
    cuda.capability = capability

    assert emulated == CudaDevice().emulates(precision, amp_dtype)


def test_reserve(cuda: SimpleNamespace, driver: Driver) -> None:
    """What the profile leaves to others of the GPU's memory is not given out; without a wish nothing is limited."""
    device = CudaDevice()

    device.limit(0)
    assert cuda.fraction is None
    device.limit(10 << 30)
    assert 0.75 == pytest.approx(cuda.fraction)


def test_does_not_start(cuda: SimpleNamespace, driver: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    """A GPU that is there and does not answer is for the operator to mend."""

    def busy() -> None:
        raise RuntimeError("CUDA error: all CUDA-capable devices are busy or unavailable\nCompile with ...")

    monkeypatch.setattr(torch.cuda, "synchronize", busy)

    with pytest.raises(BenchError, match=r"CUDA does not start: .* unavailable\. Look at nvidia-smi"):
        CudaDevice()
