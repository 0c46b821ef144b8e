"""Variables that change how libraries compute: those that a profile sets, and those that are set already.

Libraries read them when they are imported, so they are set before the workers start.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Mapping, MutableMapping

from harness.errors import UsageError
from harness.record import DeviceProfile

TELLING = re.compile(
    r"(OMP|GOMP|KMP|MKL|DNNL|ONEDNN|OPENBLAS|CUBLAS|CUDNN|TORCHINDUCTOR|TORCHDYNAMO|TORCH_COMPILE|TRITON)_\w+"
    r"|PYTORCH_(\w+_)?ALLOC_CONF|PYTORCH_NO_\w+|PYTORCH_MPS_\w+|TORCH_ALLOW_TF32\w*|TIMM_(FUSED|EXPORTABLE|NO)\w*"
    r"|NVIDIA_TF32_OVERRIDE|CUDA_(LAUNCH_BLOCKING|MODULE_LOADING|DEVICE_MAX_CONNECTIONS|FORCE_PTX_JIT)"
    r"|ATEN_CPU_CAPABILITY|LD_PRELOAD|MALLOC_\w+|GLIBC_TUNABLES"
)
"""Names of variables that change kernels, threads, number formats or the allocator. `CUDA_VISIBLE_DEVICES` is none of
them: it says which device, and the device found is recorded."""

OURS = frozenset({"TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR", "TRITON_HOME", "TRITON_DUMP_DIR"})
"""Folders, which differ in each case and change no number."""


BINDING = ("OMP_PROC_BIND", "OMP_PLACES", "GOMP_CPU_AFFINITY", "KMP_AFFINITY")
"""With any of these OpenMP binds threads to processors that it chose when it was loaded, before a child is pinned."""

NOT_BOUND = ("", "false", "none", "disabled")


def apply(profile: DeviceProfile, variables: MutableMapping[str, str] = os.environ) -> None:
    """Set what a profile asks for.

    Raises:
        UsageError: a variable is set already, to something else, or binds threads where the profile pins children.
            Nothing is set then.
    """
    for name, value in profile.environment.items():
        there = variables.get(name)
        if there is not None and there != value:
            raise UsageError(
                f"Profile {profile.name} sets {name}={value}, and {name}={there} is set here. "
                "Unset it, or change it in the profile's file."
            )
    for name in BINDING:
        if profile.pin and name not in profile.environment and variables.get(name, "").lower() not in NOT_BOUND:
            raise UsageError(
                f"Profile {profile.name} keeps children on processors of its choice, and {name}={variables[name]} has "
                "OpenMP choose others. Unset it, or take a profile without pin."
            )
    variables.update(profile.environment)


def telling(asked: Collection[str], variables: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return the variables to be recorded: those `asked` for by name, and all whose names tell that they matter.

    Of preloaded libraries only the files' names: their folders differ between hosts and say nothing.
    """
    names = {name for name in variables if TELLING.fullmatch(name)} - OURS | set(asked)
    found = {name: variables[name] for name in sorted(names) if variables.get(name)}
    if preloaded := found.get("LD_PRELOAD"):
        found["LD_PRELOAD"] = ":".join(word.rpartition("/")[2] for word in re.split(r"[: ]+", preloaded) if word)
    return found
