"""Variables that libraries read when they are imported: set as a profile asks, and recorded."""

from __future__ import annotations

import pytest

from harness.errors import UsageError
from harness.host import settings
from harness.record import DeviceProfile


def profile(**variables: str) -> DeviceProfile:
    return DeviceProfile(name="mine", kind="cpu", environment=variables)


def test_apply() -> None:
    """A profile's variables are set; one that has the value already is fine."""
    variables = {"B": "2", "PATH": "/bin"}
    settings.apply(profile(A="1", B="2"), variables)

    assert {"A": "1", "B": "2", "PATH": "/bin"} == variables


def test_contradiction() -> None:
    """A variable that is set to something else is named with both values, and nothing is set."""
    variables = {"B": "3"}

    with pytest.raises(UsageError, match="Profile mine sets B=2, and B=3 is set here. Unset it"):
        settings.apply(profile(A="1", B="2"), variables)
    assert {"B": "3"} == variables


@pytest.mark.parametrize("name", ["OMP_PROC_BIND", "OMP_PLACES", "GOMP_CPU_AFFINITY", "KMP_AFFINITY"])
def test_two_who_choose_processors(name: str) -> None:
    """OpenMP's own binding contradicts a profile that pins, and no other; switched off it is fine."""
    pinned = profile().model_copy(update={"pin": True})

    with pytest.raises(UsageError, match=f"{name}=close has OpenMP choose others"):
        settings.apply(pinned, {name: "close"})
    settings.apply(profile(), {name: "close"})
    settings.apply(pinned, {name: "false"})


@pytest.mark.parametrize(
    "name",
    [
        *("OMP_NUM_THREADS", "GOMP_CPU_AFFINITY", "KMP_AFFINITY", "MKL_NUM_THREADS", "DNNL_MAX_CPU_ISA"),
        *("ONEDNN_DEFAULT_FPMATH_MODE", "TIMM_FUSED_ATTN", "TORCHINDUCTOR_MAX_AUTOTUNE", "TORCHDYNAMO_DISABLE"),
        *("CUBLAS_WORKSPACE_CONFIG", "NVIDIA_TF32_OVERRIDE", "PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF"),
        *("ATEN_CPU_CAPABILITY", "MALLOC_ARENA_MAX", "CUDA_LAUNCH_BLOCKING"),
    ],
)
def test_telling(name: str) -> None:
    """What changes kernels, threads, formats or the allocator is recorded, though no profile asks for it."""
    assert {name: "1"} == settings.telling((), {name: "1", f"MY_{name}": "1"})


@pytest.mark.parametrize(
    "name",
    ["PATH", "HOME", "TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR", "CUDA_VISIBLE_DEVICES", "BENCH_PRELOAD", "TMPDIR"],
)
def test_not_telling(name: str) -> None:
    """What changes no number, or only says where something is kept, is not recorded; an empty one counts as unset."""
    assert {} == settings.telling((), {name: "1", "OMP_NUM_THREADS": ""})
    assert {name: "1"} == settings.telling([name], {name: "1"})


def test_preloaded_libraries() -> None:
    """Of preloaded libraries the names of their files are kept."""
    variables = {"LD_PRELOAD": "/home/a/libtcmalloc.so.4:/opt/libiomp5.so libother.so"}

    assert {"LD_PRELOAD": "libtcmalloc.so.4:libiomp5.so:libother.so"} == settings.telling((), variables)
