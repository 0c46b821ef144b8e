"""A stand-in for the module of nvidia-ml-py 13.615: its names, its numbers, its errors; a driver that is a file.

The state is JSON in the file that NVML_STUB names, read and written at each call: so it is one for all processes.

    {"driver": "580.95.05", "gpus": [{"name": ..., "uuid": ..., "memory": bytes, "capability": [8, 0],
     "clock": MHz, "highest": MHz, "default": MHz or null, "reasons": bits, "temperature": C, "milliwatts": mW,
     "pids": [...], "names": {"pid": path}, "locked": null or [MHz, MHz], "history": [...],
     "refuses": {"nvmlDeviceGet...": error number}}], "absent": ["nvmlDeviceGet..."]}
"""

import json
import os
import types

NVML_CLOCK_GRAPHICS = 0
NVML_CLOCK_SM = 1
NVML_TEMPERATURE_GPU = 0
NVML_ERROR_INVALID_ARGUMENT = 2
NVML_ERROR_NOT_SUPPORTED = 3
NVML_ERROR_NO_PERMISSION = 4
NVML_ERROR_NOT_FOUND = 6
NVML_ERROR_LIBRARY_NOT_FOUND = 12
NVML_ERROR_FUNCTION_NOT_FOUND = 13

_TEXTS = {3: "Not Supported", 4: "Insufficient Permissions", 6: "Not Found", 12: "NVML Shared Library Not Found"}


class NVMLError(Exception):
    def __init__(self, value):
        super().__init__(value)
        self.value = value

    def __str__(self):
        return _TEXTS.get(self.value, f"NVML Error with code {self.value}")


def _state():
    path = os.environ.get("NVML_STUB")
    if not path:
        raise NVMLError(NVML_ERROR_LIBRARY_NOT_FOUND)
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def _write(state):
    path = os.environ["NVML_STUB"]
    with open(f"{path}.{os.getpid()}", "w", encoding="utf-8") as file:
        json.dump(state, file)
    os.replace(file.name, path)


class _Slice:
    """The handle of a part of a divided GPU (MIG)."""

    def __init__(self, whole, uuid):
        self.whole, self.uuid = whole, uuid


def _gpu(handle, function):
    state = _state()
    if function in state.get("absent", []):
        raise NVMLError(NVML_ERROR_FUNCTION_NOT_FOUND)
    if isinstance(handle, _Slice):
        return next(each for each in state["gpus"][handle.whole]["slices"] if each["uuid"].startswith(handle.uuid))
    gpu = state["gpus"][handle]
    if function in gpu.get("refuses", {}):
        raise NVMLError(gpu["refuses"][function])
    return gpu


def _told(value):
    if value is None:
        raise NVMLError(NVML_ERROR_NOT_SUPPORTED)
    return value


def nvmlInit():
    _state()


def nvmlShutdown():
    pass


def nvmlSystemGetDriverVersion():
    return _told(_state().get("driver"))


def nvmlSystemGetProcessName(pid):
    for gpu in _state()["gpus"]:
        if str(pid) in gpu.get("names", {}):
            return gpu["names"][str(pid)]
    raise NVMLError(NVML_ERROR_NOT_FOUND)


def nvmlDeviceGetCount():
    return len(_state()["gpus"])


def nvmlDeviceGetHandleByIndex(index):
    if not 0 <= index < len(_state()["gpus"]):
        raise NVMLError(NVML_ERROR_INVALID_ARGUMENT)
    return index


def nvmlDeviceGetName(handle):
    return _told(_gpu(handle, "nvmlDeviceGetName").get("name"))


def nvmlDeviceGetUUID(handle):
    return _told(_gpu(handle, "nvmlDeviceGetUUID").get("uuid"))


def nvmlDeviceGetMemoryInfo(handle):
    return types.SimpleNamespace(total=_told(_gpu(handle, "nvmlDeviceGetMemoryInfo").get("memory")), free=0, used=0)


def nvmlDeviceGetCudaComputeCapability(handle):
    return tuple(_told(_gpu(handle, "nvmlDeviceGetCudaComputeCapability").get("capability")))


def nvmlDeviceGetClockInfo(handle, type):
    return _told(_gpu(handle, "nvmlDeviceGetClockInfo").get("clock"))


def nvmlDeviceGetMaxClockInfo(handle, type):
    return _told(_gpu(handle, "nvmlDeviceGetMaxClockInfo").get("highest"))


def nvmlDeviceGetDefaultApplicationsClock(handle, type):
    return _told(_gpu(handle, "nvmlDeviceGetDefaultApplicationsClock").get("default"))


def nvmlDeviceGetTemperatureV(handle, sensor):
    return _told(_gpu(handle, "nvmlDeviceGetTemperatureV").get("temperature"))


def nvmlDeviceGetTemperature(handle, sensor):
    return _told(_gpu(handle, "nvmlDeviceGetTemperature").get("temperature"))


def nvmlDeviceGetPowerUsage(handle):
    return _told(_gpu(handle, "nvmlDeviceGetPowerUsage").get("milliwatts"))


def nvmlDeviceGetCurrentClocksEventReasons(handle):
    return _told(_gpu(handle, "nvmlDeviceGetCurrentClocksEventReasons").get("reasons"))


def nvmlDeviceGetCurrentClocksThrottleReasons(handle):
    return _told(_gpu(handle, "nvmlDeviceGetCurrentClocksThrottleReasons").get("reasons"))


def nvmlDeviceGetComputeRunningProcesses(handle):
    pids = _told(_gpu(handle, "nvmlDeviceGetComputeRunningProcesses").get("pids"))
    return [types.SimpleNamespace(pid=pid, usedGpuMemory=None) for pid in pids]


def nvmlDeviceGetHandleByUUID(uuid):
    for index, gpu in enumerate(_state()["gpus"]):
        if any(each["uuid"].startswith(uuid) for each in gpu.get("slices", [])):
            return _Slice(index, uuid)
    raise NVMLError(NVML_ERROR_NOT_FOUND)


def nvmlDeviceGetDeviceHandleFromMigDeviceHandle(handle):
    return handle.whole


def nvmlDeviceGetIndex(handle):
    return handle


def nvmlDeviceSetGpuLockedClocks(handle, lowest, highest):
    _gpu(handle, "nvmlDeviceSetGpuLockedClocks")
    _lock(handle, [lowest, highest])


def nvmlDeviceResetGpuLockedClocks(handle):
    _gpu(handle, "nvmlDeviceResetGpuLockedClocks")
    _lock(handle, None)


def _lock(handle, clocks):
    state = _state()
    gpu = state["gpus"][handle]
    gpu["locked"] = clocks
    gpu.setdefault("history", []).append(clocks)
    if clocks:
        gpu["clock"] = clocks[1]
    _write(state)
