"""How far apart do the outputs of two different inputs lie, as built and as filled?

python -m benchmarks.sensitivity    prints docs/results/sensitivity.md
"""

from __future__ import annotations

import copy
import sys
from dataclasses import dataclass
from datetime import date
from pathlib import Path

import timm
import torch
from torch import Tensor, nn

from harness import config
from suites import inputs
from suites.spec import MODES, Mode, ModelSpec
from suites.timm import build

BATCH = 2
SEED = 1337


@dataclass(frozen=True)
class Sensitivity:
    """`apart`: RMS of the difference of two outputs; `relative`: the same as a share of the outputs' RMS."""

    apart: float
    relative: float
    largest: float
    """Largest absolute activation, over the outputs of all modules."""


def measure(module: nn.Module, mode: Mode, size: tuple[int, ...], batch_size: int = BATCH) -> Sensitivity:
    """Run a copy of an image network, in train or eval mode, on two batches of different seeds."""
    network = copy.deepcopy(module).train(mode == Mode.TRAINING)
    largest = 0.0

    def look(_: nn.Module, __: object, output: object) -> None:
        nonlocal largest
        if isinstance(output, Tensor):
            largest = max(largest, output.abs().max().item())

    for each in network.modules():
        each.register_forward_hook(look)
    outputs = []
    for seed in (SEED + 1, SEED + 2):
        with torch.no_grad(), inputs.seeded(SEED):  # the same random numbers for dropout
            outputs.append(network(inputs.images(batch_size, size, seed)).double())
    one, other = outputs
    apart = (one - other).square().mean().sqrt().item()
    scale = torch.stack(outputs).square().mean().sqrt().item()
    relative = apart / scale if scale else 0.0  # a head of zeros, as built, says nothing but zero
    return Sensitivity(apart=apart, relative=relative, largest=largest)


def as_built(spec: ModelSpec) -> nn.Module:
    """Return the network with timm's own initial weights, from the same seed as the filled one."""
    with inputs.seeded(SEED):
        return timm.create_model(spec.build_name, pretrained=False)


def main() -> None:
    """Print the page."""
    print(f"""# Do outputs depend on inputs?

Two batches of {BATCH} images with different seeds through each network. *relative*: RMS of the difference of the two
outputs as a share of their RMS; *apart*: that RMS itself, to be held beside what the accuracy check allows; *largest*:
largest absolute activation. Inference is eval mode, training is train mode. Filled as
`docs/decisions/0001-filled-weights.md` says.

    python -m benchmarks.sensitivity

{date.today()}, {_machine()}, torch {torch.__version__}, timm {timm.__version__}, seed {SEED}.
""")
    rows = {spec.name: _rows(spec) for spec in config.suite("timm").models}
    for mode in MODES:
        print(f"""## {mode.value.capitalize()}

| model | relative, built | filled | apart, built | filled | largest, built | filled |
|---|---:|---:|---:|---:|---:|---:|""")
        for name, cells in rows.items():
            print(f"| {name} | {cells[mode]} |")
        print()


def _rows(spec: ModelSpec) -> dict[Mode, str]:
    """Return the cells of one model in each mode; they go to stderr as well, as the whole takes an hour or more."""
    networks = (as_built(spec), build(spec, Mode.INFERENCE, BATCH, SEED).module)
    cells = {}
    for mode in MODES:
        size = (spec.input_size if mode == Mode.TRAINING else spec.eval_input_size) or (3, 224, 224)
        a, b = (measure(network, mode, size) for network in networks)
        values = [f"{a.relative:.2g}", f"{b.relative:.2g}", f"{a.apart:.1e}", f"{b.apart:.1e}"]
        cells[mode] = " | ".join([*values, f"{a.largest:.3g}", f"{b.largest:.3g}"])
        print(spec.name, mode.value, cells[mode], file=sys.stderr, flush=True)
    return cells


def _machine() -> str:
    names = [line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")]
    return f"{names[0].partition(':')[2].strip()}, threads: {torch.get_num_threads()}"


if __name__ == "__main__":
    main()
