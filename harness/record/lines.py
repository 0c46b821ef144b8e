"""The lines of a journal: a run, the start of a case, its record, the end.

Each is one line of JSON that says by which version of the schema it was written, and what it is.
"""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field, TypeAdapter

from harness import stats
from harness.record.asked import Case, Planned, Protocol
from harness.record.derived import Derived, Numbers
from harness.record.found import Findings, Log
from harness.record.machine import DeviceProfile, Environment, Finding
from harness.record.stated import Stated
from harness.record.versions import SCHEMA
from harness.stats import Estimate
from suites.spec import Frozen


class Line(Frozen):
    """What goes to a file or a pipe as one line of JSON: says by which version of the schema."""

    schema_: Literal[1] = Field(default=SCHEMA, alias="schema")

    model_config = Frozen.model_config | {"populate_by_name": True, "serialize_by_alias": True}


class Run(Line):
    """First line: what is going to be done, where, and by which command."""

    type: Literal["run"] = "run"
    id: str
    started_at: datetime
    command: str
    profile: DeviceProfile
    environment: Environment
    protocol: Protocol
    plan: tuple[Planned, ...]
    doctor: tuple[Finding, ...] = ()
    """How fit the host was found to be, before the first case."""
    reference: str | None = None
    """The reference configuration that was asked for, with `--as`."""
    source: str | None = None
    """None: measured here. Else the format of the files that it was imported from, e.g. `pytorch-csv`."""
    dated: bool = True
    """False: nothing says when it was measured; `started_at` is when its file was written."""
    trigger: str | None = None
    """What started it: `manual`, `nightly`, `pull_request`, or another short word."""
    branch: str | None = None
    """This and the next two are of the code under test."""
    commit: str | None = None
    fork_point: str | None = None
    """The commit of the main branch that a branch began at."""


class Start(Line):
    """A case was begun. A start without a record: the harness itself was killed meanwhile."""

    type: Literal["start"] = "start"
    run_id: str
    case_id: str
    attempt: int
    at: datetime


class Record(Findings, Line):
    """Everything observed about one case in one run."""

    type: Literal["record"] = "record"
    id: str
    run_id: str
    case: Case
    attempt: int = 1
    started_at: datetime
    finished_at: datetime
    exit_code: int | None = None
    """Of the worker, where it died without an answer; negative: the signal."""
    derived: Derived
    log: Log = Log()
    stated: Stated | None = None
    """None: measured here."""

    @property
    def numbers(self) -> Numbers:
        """The figures of this case, whoever found them."""
        derived, stated = self.derived, self.stated
        if stated is None:
            return Numbers(
                speedup=derived.speedup,
                eager_s=derived.eager_s,
                compiled_s=derived.compiled_s,
                compile_wall_s=self.compile and self.compile.wall_s,
                compile_cpu_s=self.compile and self.compile.cpu_s,
                graphs=self.compile and self.compile.graphs,
                graph_breaks=self.compile and self.compile.graph_breaks,
                operators=self.compile and self.compile.operators,
                recompiles=self.compile and self.compile.recompiles,
                break_even_steps=derived.break_even_steps,
                eager_peak_bytes=self.memory and self.memory.eager_peak_bytes,
                compiled_peak_bytes=self.memory and self.memory.compiled_peak_bytes,
                memory_ratio=derived.memory_ratio,
            )
        return Numbers(
            speedup=derived.speedup,
            eager_s=_stated(stated.eager_s),
            compiled_s=_stated(stated.compiled_s),
            compile_wall_s=stated.compile_wall_s,
            graphs=stated.graphs,
            graph_breaks=stated.graph_breaks,
            operators=stated.operators,
            recompiles=stated.recompiles,
            break_even_steps=derived.break_even_steps,
            eager_peak_bytes=stated.eager_peak_bytes if stated.memory_comparable else None,
            compiled_peak_bytes=stated.compiled_peak_bytes if stated.memory_comparable else None,
            memory_ratio=derived.memory_ratio,
        )


def _stated(value: float | None) -> Estimate | None:
    return None if value is None else Estimate(value, None, None, None, stats.STATED)


class EndReason(StrEnum):
    FINISHED = "finished"
    INTERRUPTED = "interrupted"


class RunEnd(Line):
    """Last line of one execution; a resumed run has several."""

    type: Literal["end"] = "end"
    run_id: str
    at: datetime
    reason: EndReason


JournalLine = Run | Start | Record | RunEnd
LINE: TypeAdapter[JournalLine] = TypeAdapter(Annotated[JournalLine, Field(discriminator="type")])
