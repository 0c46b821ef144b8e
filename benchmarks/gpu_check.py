"""The Python part of gpu_check.sh: what is missing, batches of `bench run` until the time is up, a summary.

Torch is imported in processes of their own, so that this one can say that CUDA was untouched in all their parents.
"""

from __future__ import annotations

import gzip
import json
import os
import platform
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path

MODELS = ("lcnet_050", "repvgg_a2", "mobilevit_s", "mixer_b16_224", "vit_base_patch16_224")
"""Convolutions by channel, plain convolutions, attention among convolutions, no attention at all, nothing else."""

OLDEST_TORCH = (2, 6)
"""Older ones are refused unseen. Newer ones must have all of `USED`; tested is 2.14 alone."""

USED = (
    "torch._dynamo.callback.on_compile_start",
    "torch._dynamo.list_backends",
    "torch._dynamo.utils.counters",
    "torch._dynamo.utils.get_compilation_metrics",
    "torch._dynamo.utils.graph_break_reasons",
    "torch._dynamo.utils.set_compilation_metrics_limit",
    "torch._inductor.graph.GraphLowering.compile_to_module",
    "torch._inductor.list_mode_options",
    "torch.OutOfMemoryError",
    "torch.compiler.cudagraph_mark_step_begin",
    "torch.get_device_module",
)
"""What the worker takes from torch that is not in all versions, or may go."""

NEEDED = ("alembic", "numpy", "psutil", "pydantic", "pydantic_settings", "rich", "sqlalchemy", "typer")
NEEDED_BY_TIMM = ("timm", "torchvision")

SAMPLING_S = "2"
"""Of each case. The check is to see all paths; numbers for keeping need a run of their own."""

CASE_LIMIT_S = 150

FEWEST_S = 30.0
"""A batch that has less is not begun: the import of torch and one cold compilation take as long."""

LAST_CASE_S = 45.0
"""Before the end, for the case in hand to finish after the first interrupt."""

LAST_WORDS_S = 10.0
"""Before the end, for the journals to be packed and the summary to be written."""

FACTS = """
import json, pkgutil, sys, torch
absent = []
for name in sys.argv[1:]:
    try:
        pkgutil.resolve_name(name)
    except (ImportError, AttributeError):
        absent.append(name)
built = [torch.version.cuda, torch.version.hip, bool(torch.backends.mps.is_built())]
print(json.dumps([torch.__version__, *built, absent]))
"""


@dataclass(frozen=True)
class Batch:
    """One `bench run`: what it shows, and its options."""

    name: str
    options: tuple[str, ...]


@dataclass
class Done:
    """How a batch went. `code` is the exit code of `bench run`; None: there was no time for it."""

    batch: Batch
    code: int | None = None
    seconds: float = 0.0
    said: str = ""
    cuda_in_parent: bool | None = None
    journals: list[Path] = field(default_factory=list)


def batches(suite: str, models: Sequence[str], backend: str) -> Iterator[Batch]:
    """Yield the batches, the most telling first: one model in all configurations, then the others."""
    reduced = ("--compile-mode", "reduce-overhead")

    def of(chosen: Sequence[str], name: str, *options: str) -> Batch:
        named = [word for model in chosen for word in ("--model", model)]
        return Batch(name, ("--suite", suite, *named, "--backend", backend, *options))

    first, rest = models[:1], models[1:]
    yield Batch(
        "forkserver: a child uses the device, its parent does not",
        ("--suite", "toy", "--model", "mlp", "--mode", "inference", "--backend", "eager"),
    )
    yield of(first, "one model, FP32 and AMP", "--mode", "both", "--fp32", "--amp")
    yield of(first, "one model, reduce-overhead", "--mode", "both", "--fp32", "--amp", *reduced)
    yield of(first, "one model, TF32", "--mode", "both", "--fp32", "--tf32")
    if rest:
        yield of(rest, "the others, inference in FP32 and AMP", "--mode", "inference", "--fp32", "--amp")
        yield of(rest, "the others, reduce-overhead, inference in AMP", "--mode", "inference", "--amp", *reduced)
        yield of(rest, "the others, training in AMP", "--mode", "training", "--amp")
        yield of(rest, "the others, TF32, inference", "--mode", "inference", "--fp32", "--tf32")
        yield of(rest, "the others, training in FP32", "--mode", "training", "--fp32")
        yield of(rest, "the others, reduce-overhead, training in AMP", "--mode", "training", "--amp", *reduced)


def missing(suite: str) -> str | None:
    """Return what is not installed, and how to install it without touching torch; None: nothing."""
    if find_spec("torch") is None:
        return f"{sys.executable} has no torch. Set PYTHON to an interpreter that has."
    wanted = [*NEEDED, *(NEEDED_BY_TIMM if suite == "timm" else ())]
    absent = [name for name in wanted if find_spec(name) is None]
    if not absent:
        return None
    plain = [name.replace("_", "-") for name in absent if name not in NEEDED_BY_TIMM]
    fixed = [name for name in absent if name in NEEDED_BY_TIMM]
    lines = [f"{sys.executable} lacks {', '.join(absent)}. Install, which leaves torch as it is:"]
    lines += [f"    {sys.executable} -m pip install {' '.join(plain)}"] if plain else []
    lines += [f"    {sys.executable} -m pip install --no-deps {' '.join(fixed)}"] if fixed else []
    lines += ["torchvision must be the release that goes with this torch."] if "torchvision" in fixed else []
    return "\n".join(lines)


def torch_facts() -> list[object]:
    """Return torch's version, the CUDA and ROCm it was built for, and whether for Metal."""
    done = subprocess.run([sys.executable, "-c", FACTS, *USED], capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"gpu_check: torch cannot be imported:\n{done.stderr.strip()[-2000:]}")
    *facts, absent = json.loads(done.stdout.splitlines()[-1])
    version = str(facts[0])
    if tuple(int(part) for part in version.split("+")[0].split(".")[:2]) < OLDEST_TORCH:
        oldest = ".".join(map(str, OLDEST_TORCH))
        raise SystemExit(f"gpu_check: torch {version} is older than {oldest}, whose compiler tells too little.")
    if absent:
        raise SystemExit(f"gpu_check: torch {version} has not got {', '.join(absent)}, which the worker uses.")
    return facts


def header(facts: Sequence[object]) -> list[str]:
    """Return what is known of the machine, without touching CUDA."""
    from harness.host import cpu, nvml

    version, cuda, hip, metal = facts
    built = [f"{name} {value}" for name, value in (("CUDA", cuda), ("ROCm", hip)) if value] + ["Metal"] * bool(metal)
    lines = [
        f"- torch {version}, built for {', '.join(built) or 'the CPU alone'}; Python {platform.python_version()}",
        f"- {cpu.read().name}, {platform.platform()}",
    ]
    for gpu in nvml.gpus():
        monitor = nvml.Monitor(gpu.index)
        seen = monitor.read()
        clock, highest, default = map(_or, (seen.clock_mhz, monitor.highest_clock_mhz, monitor.default_clock_mhz))
        others = ", ".join(seen.foreign_processes) or "nobody"
        lines.append(
            f"- GPU {gpu.index}: {gpu.name}, {_gib(gpu.memory_bytes)}, compute capability {gpu.capability}, driver "
            f"{gpu.driver}; clock {clock} of {highest} MHz, default {default}; {_or(seen.temperature_c)} degrees, "
            f"{_or(seen.power_w)} W; used by {others}"
        )
    return lines if len(lines) > 2 else [*lines, "- no NVIDIA GPU: none there, no driver, or no package nvidia-ml-py"]


def attempt(batch: Batch, device: str, out: Path, end: float) -> Done:
    """Run one batch. At the end of the time it is asked to finish the case in hand, then to stop, then killed."""
    done = Done(batch)
    began = time.monotonic()
    if end - LAST_WORDS_S - began < FEWEST_S:
        return done
    before = set(_journals(out))
    note = out / "parent.json"
    note.unlink(missing_ok=True)
    sampling_s = os.environ.get("SAMPLING_S") or SAMPLING_S
    limits = ("--max-seconds", sampling_s, "--timeout", str(CASE_LIMIT_S), "--keep-clocks")
    database = ("--database", "sqlite:///gpu_check.db")
    command = ("run", *batch.options, "--device", device, *limits, *database)
    print(f"\n== {batch.name}\n   bench {' '.join(command)}", flush=True)
    with open(out / "stderr.log", "a+", encoding="utf-8") as errors:
        begin = errors.tell()
        child = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.gpu_check", "bench", *command],
            cwd=out,
            env=_environment(),
            stderr=errors,
            start_new_session=True,  # Ctrl-C comes here, and goes on from here
        )
        done.code = _wait(child, (end - LAST_CASE_S, end - LAST_WORDS_S))
        errors.seek(begin)
        lines = [line for line in errors.read().splitlines() if line.startswith("bench: ")]
    done.said = lines[-1].removeprefix("bench: ") if lines else ""
    done.seconds = time.monotonic() - began
    done.cuda_in_parent = json.loads(note.read_text(encoding="utf-8"))["cuda"] if note.exists() else None
    note.unlink(missing_ok=True)
    done.journals = sorted(set(_journals(out)) - before)
    print(f"   exit code {done.code} after {done.seconds:.0f} s{': ' * bool(done.said)}{done.said}", flush=True)
    return done


def _wait(child: subprocess.Popen[bytes], moments: Sequence[float]) -> int:
    """Interrupt the child at each of the moments that it lives to see, and kill it soon after the last."""
    for moment in moments:
        try:
            return child.wait(max(0.0, moment - time.monotonic()))
        except (subprocess.TimeoutExpired, KeyboardInterrupt):
            child.send_signal(signal.SIGINT)
    try:
        return child.wait(LAST_WORDS_S / 2)
    except subprocess.TimeoutExpired:
        child.kill()
        return child.wait()


def _environment() -> Mapping[str, str]:
    """Ours, with the configurations that it names as an absolute path: batches run in another folder."""
    own = os.environ.get("BENCH_CONFIGS")
    return {**os.environ, **({"BENCH_CONFIGS": str(Path(own).resolve())} if own else {})}


def _journals(out: Path) -> list[Path]:
    return sorted((out / "runs").glob("*.jsonl"))


def bench(args: Sequence[str]) -> int:
    """Run `bench`, and leave a note whether this process, the parent of its children, touched CUDA."""
    from bench import main

    sys.argv = ["bench", *args]  # as the journal is to tell it
    code = main.run(args)
    torch = sys.modules.get("torch")
    touched = torch is not None and bool(torch.cuda.is_initialized())
    Path("parent.json").write_text(json.dumps({"torch": torch is not None, "cuda": touched}), encoding="utf-8")
    return code


def summary(facts: Sequence[str], done: Sequence[Done], out: Path) -> list[str]:
    """Return the page: where, what ran, what did not fit, what the device's own events and conditions say, the results.

    Packs the journals into `out`.
    """
    from benchmarks import results
    from harness.journal import replay

    ran = [each for each in done if each.code is not None]
    lines = ["# GPU check", "", *facts, "", "## What ran", ""]
    lines += ["| batch | exit code | s | CUDA touched in the parent | said |", "|---|---:|---:|---|---|"]
    lines += [
        f"| {each.batch.name} | {each.code} | {each.seconds:.0f} | {_yes(each.cuda_in_parent)} | {each.said} |"
        for each in ran
    ]
    lines += ["", "## What did not fit", ""]
    lines += [f"- {each.batch.name}" for each in done if each.code is None] or ["Nothing was left out."]
    histories = [(_packed(path, out), replay(path)) for each in ran for path in each.journals]
    records = [record for _, history in histories for record in history.records.values()]
    lines += ["", "## Events beside the host's clock", ""]
    lines += ["| case | eager ms, clock | events | compiled ms, clock | events |", "|---|---:|---:|---:|---:|"]
    for record in records:
        if record.timing is not None:
            timing = record.timing
            sides = (timing.eager_s, timing.eager_events_s, timing.compiled_s, timing.compiled_events_s)
            lines.append(f"| {record.case} | " + " | ".join(_median_ms(side) for side in sides) + " |")
    lines += ["", "## The device meanwhile", ""]
    lines += [
        "| case | tensors on | looks | MHz before | median | lowest | wanted | throttled by | degrees | W | others "
        "| lock |",
        "|---|---|" + "---:|" * 5 + "---|---:|---:|---|---|",
    ]
    for record in records:
        if (seen := record.conditions) is not None:
            clocks = (seen.clock_before_mhz, seen.clock_median_mhz, seen.clock_lowest_mhz, seen.clock_wanted_mhz)
            cells = [str(record.case), record.observed.device_type or "", str(seen.readings), *map(_or, clocks)]
            cells += [", ".join(seen.throttle_reasons), _or(seen.temperature_c), _or(seen.power_w)]
            cells += [", ".join(seen.foreign_processes), seen.lock or ""]
            lines.append("| " + " | ".join(cells) + " |")
    for path, history in histories:
        lines += ["", *results.page(path, history)]
    return lines


def _packed(path: Path, out: Path) -> Path:
    packed = out / f"{path.name}.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    return packed


def _median_ms(seconds: Sequence[float]) -> str:
    return f"{sorted(seconds)[len(seconds) // 2] * 1000:.4g}" if seconds else ""


def _gib(size: int | None) -> str:
    return "memory unknown" if size is None else f"{size / 2**30:.0f} GiB"


def _or(value: float | None) -> str:
    return "unknown" if value is None else f"{value:g}"


def _yes(value: bool | None) -> str:
    return "unknown" if value is None else "yes" if value else "no"


def main() -> int:
    end = time.monotonic() + float(os.environ.get("SECONDS_LIMIT") or 460)
    suite = os.environ.get("SUITE") or "timm"
    models = (os.environ.get("MODELS") or " ".join(MODELS)).replace(",", " ").split()
    out = Path(os.environ.get("OUT") or "gpu_check").resolve()
    if (lack := missing(suite)) is not None:
        print(f"gpu_check: {lack}", file=sys.stderr)
        return 1
    facts = header(torch_facts())
    print("\n".join(facts), flush=True)
    out.mkdir(parents=True, exist_ok=True)
    planned = list(batches(suite, models, os.environ.get("BACKEND") or "inductor"))
    done = [attempt(batch, os.environ.get("DEVICE") or "auto", out, end) for batch in planned]
    page = summary(facts, done, out)
    (out / "summary.md").write_text("\n".join(page).rstrip() + "\n", encoding="utf-8")
    ran = [each for each in done if each.code is not None]
    print(f"\n{len(ran)} of {len(done)} batches ran; see {out / 'summary.md'} and the journals beside it.")
    for each in done:
        if each.code is None:
            print(f"Did not fit: {each.batch.name}")
    return 0 if any(each.code == 0 for each in ran) and not any(each.cuda_in_parent for each in ran) else 1


if __name__ == "__main__":
    sys.exit(bench(sys.argv[2:]) if sys.argv[1:2] == ["bench"] else main())
