"""What the driver tells of GPUs, and what it may refuse to. The driver is a file."""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import inspect
import os
import subprocess
import sys
from types import ModuleType

import psutil
import pytest

from harness.host import nvml
from harness.host.nvml import Gpu, Monitor, Refused
from harness.host.reading import Reading
from tests.fakes import A100, Driver

SECOND = "GPU-22222222-aaaa-bbbb-cccc-000000000002"
SLICE = "MIG-33333333-aaaa-bbbb-cccc-000000000003"


@pytest.fixture
def two(driver: Driver) -> Driver:
    """An A100, and an H100 that is divided."""
    slices = [{"name": "NVIDIA H100 MIG 1g.10gb", "uuid": SLICE, "memory": 10 << 30}]
    second = A100 | {"name": "NVIDIA H100", "uuid": SECOND, "capability": [9, 0], "slices": slices}
    driver.write({"driver": "580.95.05", "gpus": [A100, second]})
    return driver


def test_gpus(driver: Driver) -> None:
    """A GPU has the name, memory, compute capability and identity that the driver gives it."""
    expected = Gpu(
        index=0,
        name="NVIDIA A100-SXM4-40GB",
        memory_bytes=40 << 30,
        driver="580.95.05",
        uuid="GPU-11111111-aaaa-bbbb-cccc-000000000001",
        capability=(8, 0),
    )

    assert [expected] == nvml.gpus()


@pytest.mark.parametrize(
    ("visible", "indices"),
    [
        ("0,1", [0, 1]),
        ("1,0", [1, 0]),
        ("1", [1]),
        (" 1 , 0 ", [1, 0]),
        (SECOND, [1]),
        ("GPU-2222", [1]),
        ("GPU-2222,0", [1, 0]),
        ("", []),
        ("-1", []),
        ("1,7,0", [1]),
        ("NoDevFiles", []),
    ],
)
def test_visible(two: Driver, monkeypatch: pytest.MonkeyPatch, visible: str, indices: list[int]) -> None:
    """What CUDA would hide is hidden, in the order that it would have; the first wrong entry ends the list."""
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)

    assert indices == [gpu.index for gpu in nvml.gpus()]


def test_slice(two: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    """A part of a divided GPU has a name and memory of its own, and the number of the whole."""
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", SLICE)

    (gpu,) = nvml.gpus()

    assert (1, "NVIDIA H100 MIG 1g.10gb", 10 << 30) == (gpu.index, gpu.name, gpu.memory_bytes)


def test_no_driver(driver: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a driver there are no GPUs, every reading is empty, and only holding a clock is refused."""
    monkeypatch.delenv("NVML_STUB")
    monitor = Monitor(0)

    assert [] == nvml.gpus()
    assert Reading() == monitor.read()
    assert (None, None) == (monitor.highest_clock_mhz, monitor.default_clock_mhz)
    with pytest.raises(Refused, match="no NVIDIA driver"):
        monitor.hold(1095)


def test_no_package(driver: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the package there are no GPUs either, and no error."""
    monkeypatch.setitem(sys.modules, "pynvml", None)

    assert [] == nvml.gpus()


def test_no_torch() -> None:
    """Looking at GPUs imports no torch, and so cannot touch CUDA."""
    code = "import sys; from harness.host import nvml, clocks; nvml.gpus(); sys.exit('torch' in sys.modules)"

    assert 0 == subprocess.run([sys.executable, "-c", code], timeout=60, check=False).returncode


def test_reading(driver: Driver) -> None:
    """Clock in MHz, heat in degrees, power in watts; the highest and the default clock."""
    monitor = Monitor(0)

    assert Reading(clock_mhz=1350.0, temperature_c=41, power_w=61.5) == monitor.read()
    assert (1410.0, 1095.0) == (monitor.highest_clock_mhz, monitor.default_clock_mhz)


@pytest.mark.parametrize(
    ("bits", "reasons", "idle"),
    [
        (0x0, (), False),
        (0x1, (), True),
        (0x2, (), False),
        (0x4, ("power cap",), False),
        (0x20 | 0x40, ("thermal", "hardware thermal"), False),
        (0x8 | 0x80 | 0x10, ("hardware slowdown", "sync boost", "power brake"), False),
    ],
)
def test_throttle_reasons(driver: Driver, bits: int, reasons: tuple[str, ...], idle: bool) -> None:
    """The driver's bits become words; an idle GPU is not throttled, nor is one whose clock somebody set."""
    driver.change(reasons=bits)

    reading = Monitor(0).read()

    assert (reasons, idle) == (reading.throttle_reasons, reading.idle)


def test_old_driver(driver: Driver) -> None:
    """Functions that an older driver does not know are asked for by their older names."""
    driver.change(reasons=0x4)
    driver.write(driver.read() | {"absent": ["nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetTemperatureV"]})

    reading = Monitor(0).read()

    assert (("power cap",), 41) == (reading.throttle_reasons, reading.temperature_c)


def test_refusals(driver: Driver) -> None:
    """What the driver refuses to tell is unknown, and the rest is told all the same."""
    driver.change(
        milliwatts=None, default=None, refuses={"nvmlDeviceGetTemperatureV": 3, "nvmlDeviceGetTemperature": 3}
    )
    monitor = Monitor(0)

    assert Reading(clock_mhz=1350.0) == monitor.read()
    assert monitor.default_clock_mhz is None


def test_own_processes(driver: Driver) -> None:
    """This process and what it started are no strangers on the GPU."""
    child = subprocess.Popen(["sleep", "60"])
    try:
        driver.change(pids=[os.getpid(), child.pid])

        assert () == Monitor(0).read().foreign_processes
    finally:
        child.kill()
        child.wait()


def test_foreign_processes(driver: Driver) -> None:
    """Another's program is named: by the system, by the driver, or at least counted."""
    name = psutil.Process(os.getppid()).name()
    driver.change(pids=[os.getppid(), 4_000_001, 4_000_002], names={"4000001": "/opt/blender/blender"})

    assert {name, "blender", "unknown (process 4000002)"} == set(Monitor(0).read().foreign_processes)


def test_container(driver: Driver) -> None:
    """In a container the driver knows this process by another number: one nameless process is taken for it, no more."""
    driver.change(pids=[4_000_001])
    assert () == Monitor(0, at_work=True).read().foreign_processes
    assert ("unknown (process 4000001)",) == Monitor(0).read().foreign_processes

    driver.change(pids=[4_000_001, 4_000_002], names={"4000002": "/usr/bin/blender"})
    assert ("blender",) == Monitor(0, at_work=True).read().foreign_processes

    driver.change(pids=[os.getpid(), 4_000_002])
    assert ("blender",) == Monitor(0, at_work=True).read().foreign_processes


@pytest.fixture
def package(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The real module, which the stand-in hides."""
    file = importlib.metadata.distribution("nvidia-ml-py").locate_file("pynvml.py")
    spec = importlib.util.spec_from_file_location("real_pynvml", str(file))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "real_pynvml", module)  # it looks for itself there
    spec.loader.exec_module(module)
    return module


def test_stand_in_is_faithful(driver: Driver, package: ModuleType) -> None:
    """The stand-in has the names, the parameters and the numbers of the package, so that the tests are about that."""
    stub = importlib.import_module("pynvml")
    functions = {name: each for name, each in vars(stub).items() if name.startswith("nvml")}
    numbers = {name: each for name, each in vars(stub).items() if name.startswith("NVML_")}

    assert len(functions) > 20
    for name, function in functions.items():
        assert len(inspect.signature(function).parameters) <= len(inspect.signature(getattr(package, name)).parameters)
    assert numbers == {name: getattr(package, name) for name in numbers}
    assert issubclass(package.NVMLError_NotSupported, package.NVMLError)
    told = {value for name, value in vars(package).items() if name.startswith("nvmlClocksThrottleReason")}
    assert set(nvml.REASONS) <= told


def test_package_without_driver(package: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    """The real package on a machine without a driver: no GPUs, and no error."""
    try:
        package.nvmlInit()
    except package.NVMLError:
        monkeypatch.setitem(sys.modules, "pynvml", package)
        assert [] == nvml.gpus()
        assert Reading() == Monitor(0).read()
    else:
        package.nvmlShutdown()
        pytest.skip("there is a driver here")
