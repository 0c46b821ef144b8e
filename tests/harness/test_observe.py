"""What was really there: number formats, switches, attention kernels, emulation."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from harness.worker.observe import emulated_formats, is_emulated, leading_dimension, look, observe
from suites.spec import MODES, Mode, Precision
from tests.harness.conftest import SEED


def seen(bench, emulated: bool = False):
    return observe(bench.prepared, bench.collect(), look(bench.prepared, bench.eager, bench.state, SEED), emulated)


@pytest.mark.parametrize(
    ("precision", "output", "parameter", "autocast"),
    [
        (Precision.FP32, "float32", "float32", None),
        (Precision.AMP, "bfloat16", "float32", "bfloat16"),
        (Precision.BF16, "bfloat16", "bfloat16", None),
        (Precision.FP16, "float16", "float16", None),
    ],
)
def test_number_formats_are_seen(bench_of, precision, output, parameter, autocast):
    """The formats of outputs, of parameters and of autocast as it was inside the module's call."""
    observed = seen(bench_of(nn.Linear(4, 4), torch.randn(2, 4), precision=precision))

    assert ((output,), (parameter,), autocast) == (
        observed.output_dtypes,
        observed.parameter_dtypes,
        observed.autocast_dtype,
    )


@pytest.mark.parametrize(("mode", "on"), [(Mode.INFERENCE, False), (Mode.TRAINING, True)])
def test_mode_is_seen(bench_of, mode, on):
    """Training means a module in training mode and gradients; inference neither."""
    observed = seen(bench_of(nn.Linear(4, 4), torch.randn(2, 4), mode=mode))

    assert (on, on) == (observed.training, observed.grad)


@pytest.mark.parametrize("asked", [False, True])
def test_switches_are_seen(bench_of, asked):
    """TF32 and deterministic kernels are read from the framework, not from the case."""
    observed = seen(bench_of(nn.Linear(4, 4), torch.randn(2, 4), tf32=asked, deterministic=asked))

    assert (asked, asked) == (observed.tf32, observed.deterministic)
    assert torch.get_num_threads() == observed.threads


def test_sizes_are_seen(bench_of):
    """The leading dimension of the first tensor among the arguments; shared parameters are counted once."""
    net = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4))
    net[1].weight = net[0].weight
    observed = seen(bench_of(net, torch.randn(3, 4)))

    assert (24, 3) == (observed.parameters, observed.batch_size)
    assert 5 == leading_dimension(((torch.tensor(1.0), "text"), {"ids": torch.zeros(5, 2)}))
    assert leading_dimension(((), {"scale": 2.0})) is None


class Attends(nn.Module):
    def __init__(self, how: str) -> None:
        super().__init__()
        self.how = how
        self.q = nn.Linear(16, 16)

    def forward(self, x: Tensor) -> Tensor:
        q = self.q(x)
        match self.how:
            case "fused":
                return functional.scaled_dot_product_attention(q, q, q)
            case "dropout":
                return functional.scaled_dot_product_attention(q, q, q, dropout_p=0.1)
            case "spelled out":
                return (q @ q.transpose(-1, -2)).softmax(-1) @ q
            case _:
                return functional.linear(q.softmax(-1), self.q.weight)


@pytest.mark.parametrize(
    ("how", "kernel"),
    [
        ("fused", "flash_attention_for_cpu"),
        ("dropout", "math"),
        ("spelled out", "spelled out"),
        ("softmax alone", None),
    ],
)
@pytest.mark.parametrize("mode", MODES)
def test_attention_kernel_is_seen(bench_of, how, kernel, mode):
    """A fused kernel has its name; with dropout the CPU has none; a softmax between linears is no attention."""
    assert kernel == seen(bench_of(Attends(how), torch.randn(2, 2, 5, 16), mode=mode)).attention_kernel


def test_attention_inside_torchs_own_layer_is_seen(bench_of):
    """Torch's multi-head attention calls it from within."""
    layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)

    assert "math" == seen(bench_of(layer, torch.randn(2, 5, 16), mode=Mode.TRAINING)).attention_kernel


def test_model_that_cannot_be_watched(bench_of):
    """An observation that fails costs the observation, not the case."""

    class Shy(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            if torch.utils._python_dispatch._get_current_dispatch_mode() is not None:
                raise RuntimeError("do not look")
            return x * 1

    observed = seen(bench_of(Shy(), torch.ones(2)))

    assert (None, None) == (observed.grad, observed.attention_kernel)
    assert ("float32",) == observed.output_dtypes


def test_written_inputs_and_dropouts_are_seen(bench_of):
    """What the check found of them stands in the observation."""

    class Writes(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.drop = nn.Dropout(0.5)

        def forward(self, x: Tensor) -> Tensor:
            return self.drop(x.mul_(2))

    assert (True, 1) == (
        (observed := seen(bench_of(Writes(), torch.ones(2)))).mutates_inputs,
        observed.dropouts,
    )
    assert (False, 0) == ((plain := seen(bench_of(nn.Linear(2, 2), torch.ones(2)))).mutates_inputs, plain.dropouts)


ICE_LAKE = {"avx2", "avx512f", "avx512_vnni"}
SAPPHIRE_RAPIDS = ICE_LAKE | {"avx512_bf16", "avx512_fp16", "amx_bf16"}
GRAVITON_2 = {"asimd", "asimdhp"}
GRAVITON_3 = {"asimd", "asimdhp", "bf16", "sve"}


@pytest.mark.parametrize(
    ("flags", "machine", "emulated"),
    [
        (ICE_LAKE, "x86_64", ("bfloat16", "float16")),
        (ICE_LAKE | {"avx512_bf16"}, "AMD64", ("float16",)),
        (SAPPHIRE_RAPIDS, "x86_64", ()),
        (GRAVITON_2, "aarch64", ("bfloat16",)),
        (GRAVITON_3, "aarch64", ()),
        ({"bf16"}, "x86_64", ("bfloat16", "float16")),
    ],
)
def test_emulated_formats(flags, machine, emulated):
    """A CPU whose flags name no instruction for a number format emulates it."""
    assert emulated == emulated_formats(flags, machine)


@pytest.mark.parametrize(
    ("precision", "amp_dtype", "emulated"),
    [
        (Precision.FP32, None, False),
        (Precision.AMP, "bfloat16", True),
        (Precision.AMP, "float16", False),
        (Precision.BF16, None, True),
        (Precision.FP16, None, False),
    ],
)
def test_emulated_precision(precision, amp_dtype, emulated):
    """On a Graviton 2: half precision is there, bfloat16 is not, whether by cast or by autocast."""
    assert emulated == is_emulated(precision, amp_dtype, GRAVITON_2, "aarch64")
