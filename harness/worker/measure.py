"""The order of a measurement on one screen: load, eager, reference, eager twice, compile, check, time, memory.

What a model does wrong decides the outcome; nothing it does is raised to the caller.
"""

from __future__ import annotations

import gc
import random
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

import torch

from harness.record import (
    NO_BACKEND,
    Accuracy,
    DeviceProfile,
    Findings,
    Measure,
    Memory,
    Observed,
    Outcome,
    Planned,
    Protocol,
    Reference,
    Side,
    Stage,
    StageTime,
)
from harness.worker.accuracy import Noise, Rounding, compare, eager_noise
from harness.worker.collect import (
    NoReference,
    State,
    Step,
    collect,
    draws_random_numbers,
    float64_reference,
    mutates_inputs,
    restore,
    sensitivity,
    snapshot,
)
from harness.worker.compiled import Compiler, replays_graphs, timed_call
from harness.worker.conditions import Watch
from harness.worker.device import Device, open_device
from harness.worker.environment import physical_cores
from harness.worker.failures import describe, first_line, is_out_of_memory
from harness.worker.leaves import Leaves, Value
from harness.worker.observe import Sighting, look, observe
from harness.worker.rounding import may_be_rounding, rounding
from harness.worker.step import Prepared, StepResult, make_step, prepare, set_global_state
from harness.worker.timing import SamplingError, measure_memory, time_pairs
from suites.registry import builder

Tell = Callable[[Stage, Findings], None]

INSENSITIVE_BELOW = 100.0
"""Sensitivity below which the check could miss a wrong answer."""

MUTATED_INPUT_STEPS = 32
"""Most steps in a sample for a model that writes into its inputs: each step gets a copy laid out beforehand."""

EMULATED_PAIRS = 6
"""Pairs for a precision that the machine emulates, tens of times slower: enough to show, not worth more time."""


def measure(planned: Planned, protocol: Protocol, profile: DeviceProfile, tell: Tell) -> Findings:
    """Measure one case in this process, which must not have run anything else.

    Args:
        tell: hears of each stage as it begins, with what was found until then.

    Raises:
        BenchError: the device is not there, or is not the one asked for: nothing that a model could have done.
    """
    notes = _Notes(tell)
    measurement = _Measurement(planned, protocol, profile, notes, open_device(profile))
    with suppress(_Ended):
        measurement.run()
    return notes.findings()


class _Ended(Exception):
    """The case has its outcome; what is left of its stages is not gone through."""


class _Notes:
    """What was found so far; turns an exception in a stage into an outcome."""

    def __init__(self, tell: Tell) -> None:
        self._tell = tell
        self._found: dict[str, Any] = {"outcome": Outcome.PASS}
        self._observed = Observed()
        self._stages: list[StageTime] = []

    def findings(self) -> Findings:
        return Findings(**self._found, observed=self._observed, stages=tuple(self._stages))

    def add(self, **found: Any) -> None:
        self._found |= found

    def observe(self, observed: Observed) -> None:
        self._observed = observed

    @property
    def observed(self) -> Observed:
        return self._observed

    def end(self, outcome: Outcome, stage: Stage, text: str, side: Side | None = None, **found: Any) -> _Ended:
        self.add(outcome=outcome, stage=stage, text=text, side=side, **found)
        return _Ended()

    @contextmanager
    def stage(self, stage: Stage, otherwise: Outcome, side: Side | None) -> Iterator[None]:
        """Time a stage. An exception in it ends the case: out of memory, or else with `otherwise`."""
        self._tell(stage, self.findings())
        began = time.perf_counter()
        try:
            yield
        except _Ended:
            raise
        except BaseException as error:  # a model may even raise SystemExit
            raise self._end_with(error, stage, otherwise, side) from None
        finally:
            self._stages.append(StageTime(stage=stage, wall_s=time.perf_counter() - began))

    def _end_with(self, error: BaseException, stage: Stage, otherwise: Outcome, side: Side | None) -> _Ended:
        cause = error
        if isinstance(error, SamplingError) and error.__cause__ is not None:
            self.add(timing=error.timing)
            cause, side = error.__cause__, error.side
        failure = describe(cause)
        if self._found["outcome"] != Outcome.PASS:
            self.add(failure=failure)  # the first thing that went wrong decides: a failed check stays one
            return _Ended()
        outcome = Outcome.OOM if is_out_of_memory(cause) else otherwise
        return self.end(outcome, stage, f"{failure.kind}: {first_line(failure)}", side, failure=failure)


class _Timed:
    """A step that remembers the wall and CPU seconds of its last call."""

    def __init__(self, step: Step, device: Device) -> None:
        self.step = step
        self.device = device
        self.wall_s = self.cpu_s = 0.0

    def __call__(self) -> StepResult:
        result, self.wall_s, self.cpu_s = timed_call(self.step, self.device)
        return result


class _Measurement:
    def __init__(
        self, planned: Planned, protocol: Protocol, profile: DeviceProfile, notes: _Notes, device: Device
    ) -> None:
        self.planned = planned
        self.case = planned.case
        self.protocol = protocol
        self.profile = profile
        self.notes = notes
        self.device = device
        self.replays = replays_graphs(planned.case, device.torch_type)
        self.seed = protocol.seed
        self.checked: Accuracy | None = None
        """What the check with a smaller batch found."""

    def run(self) -> None:
        """Go through all stages; before, where the entry asks for it, through those of a check with a smaller batch."""
        if self.case.backend == NO_BACKEND:
            self.run_alone()
            return
        small = self.planned.accuracy_batch
        if small is not None and self.protocol.measure != Measure.PERFORMANCE:
            self.go(small, timed=False)
            gc.collect()
        self.go(self.case.batch_size, timed=self.protocol.measure != Measure.ACCURACY)

    def run_alone(self) -> None:
        """Run two eager steps and nothing else: does the model run on this machine, in which time and memory?

        No copy of the model's state is made, so that what just fits is not refused.
        """
        stage, notes = self.notes.stage, self.notes
        with stage(Stage.LOAD, Outcome.MODEL_FAIL_TO_LOAD, Side.EAGER):
            prepared = self.load(self.case.batch_size)
        eager = _Timed(make_step(prepared, prepared.module), self.device)
        with stage(Stage.EAGER, Outcome.EAGER_FAIL_TO_RUN, Side.EAGER):
            first = collect(prepared, eager, None, self.seed)
            emulated = self.device.emulates(self.case.precision, self.case.amp_dtype)
            notes.observe(observe(prepared, first, Sighting(), emulated))
            del first
            collect(prepared, eager, None, self.seed)
            found = {"eager_step_s": eager.wall_s, "peak_bytes": self.device.peak_bytes()}
            notes.observe(notes.observed.model_copy(update=found))

    def go(self, batch_size: int | None, *, timed: bool) -> None:
        stage, notes = self.notes.stage, self.notes
        checking = self.protocol.measure != Measure.PERFORMANCE
        with stage(Stage.LOAD, Outcome.MODEL_FAIL_TO_LOAD, Side.EAGER):
            prepared = self.load(batch_size)
        eager = make_step(prepared, prepared.module)
        with stage(Stage.EAGER, Outcome.EAGER_FAIL_TO_RUN, Side.EAGER):
            state = snapshot(prepared)
            first, draws = self.run_eager(prepared, eager, state)
        reference: Leaves | NoReference = NoReference("not asked for")
        noise: Noise | None = None
        if checking:
            with stage(Stage.REFERENCE, Outcome.EAGER_FAIL_TO_RUN, Side.EAGER):
                if self.checked is None:
                    elsewhere = "cpu" if self.device.refuses(torch.float64) else None
                    reference = float64_reference(prepared, state, self.seed, draws, elsewhere)
                else:
                    reference = NoReference(f"float64 was compared at batch {self.checked.batch_size}")
            with stage(Stage.EAGER_TWICE, Outcome.EAGER_FAIL_TO_RUN, Side.EAGER):
                noise = self.run_eager_again(prepared, eager, state, first)
        with stage(Stage.COMPILE, Outcome.FAIL_TO_RUN, Side.COMPILED):
            compiler = Compiler(self.case, random_numbers_from_eager=draws)
            compiled = _Timed(compiler.step(prepared), self.device)
            with compiler.watching():
                collect(prepared, compiled, state, self.seed)
            first_call_s, cpu_s = compiled.wall_s, compiled.cpu_s
        with stage(Stage.CHECK, Outcome.FAIL_TO_RUN, Side.COMPILED):
            if self.replays:
                collect(prepared, compiled, state, self.seed)  # the second call records the graphs that are timed
            steady = collect(prepared, compiled, state, self.seed)
            report = compiler.report(
                first_call_s=first_call_s, steady_s=compiled.wall_s, cpu_s=cpu_s, steady_cpu_s=compiled.cpu_s
            )
            notes.add(compile=report)
            if report.graphs == 0 or report.operators == 0:
                raise notes.end(
                    Outcome.FAIL_TO_RUN, Stage.CHECK, "nothing was compiled: every frame ran eager", Side.COMPILED
                )
            if checking:
                accuracy = self.compare(first, steady, reference, noise)
                if may_be_rounding(accuracy):
                    for moved in rounding(prepared, eager, state, first, self.seed):
                        accuracy = self.compare(first, steady, reference, noise, moved)
                        if not accuracy.failed_count:
                            break
                self.judge(accuracy, batch_size)
            else:
                notes.add(
                    accuracy=Accuracy(reference=Reference.NONE, tolerance=self.planned.orders.tolerance, leaves=0)
                )
        del reference, first, steady
        if not timed:
            return
        step = compiled.step
        with stage(Stage.TIME, Outcome.FAIL_TO_RUN, None):
            self.time(prepared, eager, step, state, compiler)
        with stage(Stage.MEMORY, Outcome.FAIL_TO_RUN, None):
            arm = prepared.feed.arm if prepared.feed.mutated else None
            memory = measure_memory(eager, step, self.device, arm=arm)
            if self.replays:  # a replay allocates nothing: its memory was taken for good when it was recorded
                memory = Memory(eager_peak_bytes=memory.eager_peak_bytes, compiled_peak_bytes=None)
            notes.add(memory=memory)

    def load(self, batch_size: int | None) -> Prepared:
        torch.set_num_threads(self.profile.threads or physical_cores())
        build = builder(self.planned.orders.module)
        workload = build(self.planned.spec, self.case.mode, batch_size, self.seed, self.case.attention)
        # After the build: a model's file may set the framework's switches as it likes.
        set_global_state(self.case, self.seed)
        return prepare(workload, self.case, self.device.torch_type)

    def run_eager(self, prepared: Prepared, eager: Step, state: State) -> tuple[Leaves, bool]:
        """Return what the first eager step gave, and whether the model draws random numbers."""
        first = collect(prepared, eager, state, self.seed)
        prepared.feed.mutated = mutates_inputs(first)
        emulated = self.device.emulates(self.case.precision, self.case.amp_dtype)
        seen = observe(prepared, first, look(prepared, eager, state, self.seed), emulated)
        draws = draws_random_numbers(prepared, eager, state, first, self.seed)
        changed = _any_nonzero(first.below("update")) if prepared.optimizer is not None else None
        self.notes.observe(seen.model_copy(update={"draws_random_numbers": draws, "parameters_changed": changed}))
        return first, draws

    def run_eager_again(self, prepared: Prepared, eager: Step, state: State, first: Leaves) -> Noise:
        second = collect(prepared, eager, state, self.seed)
        noise = eager_noise(first, second, self.planned.orders.tolerance, self.case.precision)
        if noise.differing:
            leaf = noise.differing[0]
            text = f"two eager runs differ in {leaf.name}" + (f": {leaf.detail}" if leaf.detail else "")
            raise self.notes.end(Outcome.EAGER_TWO_RUNS_DIFFER, Stage.EAGER_TWICE, text, Side.EAGER)
        felt = sensitivity(prepared, state, first, self.planned.orders.tolerance, self.seed)
        deaf = felt is not None and felt < INSENSITIVE_BELOW
        self.notes.observe(self.notes.observed.model_copy(update={"sensitivity": felt, "insensitive": deaf}))
        return noise

    def compare(
        self,
        eager: Leaves,
        compiled: Leaves,
        reference: Leaves | NoReference,
        noise: Noise | None,
        moved: Rounding | None = None,
    ) -> Accuracy:
        why = reference.reason if isinstance(reference, NoReference) else None
        return compare(
            eager,
            compiled,
            None if isinstance(reference, NoReference) else reference,
            tolerance=self.planned.orders.tolerance,
            noise=noise,
            rounding=moved,
            precision=self.case.precision,
            reference_why=why,
        )

    def judge(self, accuracy: Accuracy, batch_size: int | None) -> None:
        if batch_size != self.case.batch_size:
            accuracy = self.checked = accuracy.model_copy(update={"batch_size": batch_size})
        elif self.checked is not None and not accuracy.failed_count:
            # The compile that is timed agrees with eager; the other one with float64.
            moved = [each.rounding for each in (accuracy, self.checked) if each.rounding is not None]
            accuracy = self.checked.model_copy(update={"rounding": max(moved, default=None)})
        self.notes.add(accuracy=accuracy)
        if accuracy.failed_count:
            leaf = accuracy.failed[0]
            others = f" and {accuracy.failed_count - 1} more" if accuracy.failed_count > 1 else ""
            text = f"{leaf.name}{others} of {accuracy.leaves} differ" + (f": {leaf.detail}" if leaf.detail else "")
            # Times are still taken, and marked as not valid.
            self.notes.add(outcome=Outcome.FAIL_ACCURACY, stage=Stage.CHECK, side=Side.COMPILED, text=text)

    def time(self, prepared: Prepared, eager: Step, compiled: Step, state: State, compiler: Compiler) -> None:
        restore(prepared, state)
        emulated = self.notes.observed.emulated
        watch = Watch(self.device, self.profile.clock_mhz if self.profile.lock_clocks else None)
        try:
            timing = time_pairs(
                eager,
                compiled,
                self.device,
                precision_target=self.protocol.precision_target,
                max_seconds=self.protocol.max_seconds,
                max_pairs=EMULATED_PAIRS if emulated else self.protocol.max_pairs,
                rng=random.Random(self.seed),
                recompiles=lambda: compiler.compilations,
                between=watch.between,
                arm=prepared.feed.arm if prepared.feed.mutated else None,
                **({"max_inner": MUTATED_INPUT_STEPS} if prepared.feed.mutated else {}),
            )
        finally:
            self.notes.add(conditions=watch.conditions())
        if prepared.training:
            timing = timing.model_copy(update={"finite_after": _finite(prepared, eager)})
        self.notes.add(timing=timing)


def _finite(prepared: Prepared, step: Step) -> bool:
    """Whether the loss of one more step and all parameters are finite: times of NaN are times of nothing."""
    prepared.feed.arm(1)
    loss = step().loss
    tensors = [*prepared.module.parameters(), *([loss] if loss is not None else [])]
    return all(bool(torch.isfinite(tensor).all()) for tensor in tensors)


def _any_nonzero(values: Mapping[str, Value]) -> bool:
    return any(bool(value.any()) for value in values.values() if isinstance(value, torch.Tensor))
