"""THE SCHEMA: what is asked for, what was observed, what was derived from it.

A journal is a file of JSON lines, each with `schema` and `type`: one `Run`, then per case a
`Start` and a `Record`, at last a `RunEnd`. Units stand in the names (`_s` seconds, `_bytes`);
absent is None, never zero, never NaN. Nothing here imports torch.

asked      configuration, case, plan, protocol      found      outcome, check, compilation, samples, memory
machine    profile, environment, findings           stated     what files from elsewhere say
versions   of the schema and of the method          derived    statistics and figures of a record
ids        of runs and records                      lines      of a journal: run, start, record, end

This is the published door: what all of them define is imported from here.
"""

from __future__ import annotations

from harness.record.asked import (
    NO_BACKEND,
    UNKNOWN,
    Case,
    CompileScope,
    Configuration,
    Measure,
    OptimizerKind,
    Orders,
    Planned,
    Protocol,
)
from harness.record.derived import Derived, Flag, Numbers
from harness.record.found import (
    Accuracy,
    ClockLock,
    CompileReport,
    Conditions,
    Failure,
    Findings,
    Frame,
    GraphBreak,
    Leaf,
    Log,
    Memory,
    Observed,
    Outcome,
    Reference,
    Side,
    Stage,
    StageTime,
    StopReason,
    Timing,
)
from harness.record.ids import content_id, new_run_id, now, record_id
from harness.record.lines import LINE, EndReason, JournalLine, Line, Record, Run, RunEnd, Start
from harness.record.machine import DeviceProfile, Environment, Finding, Level
from harness.record.stated import Cells, Stated
from harness.record.versions import METHOD, SCHEMA
from suites.spec import Mode, Precision

__all__ = [
    "LINE",
    "METHOD",
    "NO_BACKEND",
    "SCHEMA",
    "UNKNOWN",
    "Accuracy",
    "Case",
    "Cells",
    "ClockLock",
    "CompileReport",
    "CompileScope",
    "Conditions",
    "Configuration",
    "Derived",
    "DeviceProfile",
    "EndReason",
    "Environment",
    "Failure",
    "Finding",
    "Findings",
    "Flag",
    "Frame",
    "GraphBreak",
    "JournalLine",
    "Leaf",
    "Level",
    "Line",
    "Log",
    "Measure",
    "Memory",
    "Mode",
    "Numbers",
    "Observed",
    "OptimizerKind",
    "Orders",
    "Outcome",
    "Planned",
    "Precision",
    "Protocol",
    "Record",
    "Reference",
    "Run",
    "RunEnd",
    "Side",
    "Stage",
    "StageTime",
    "Start",
    "Stated",
    "StopReason",
    "Timing",
    "content_id",
    "new_run_id",
    "now",
    "record_id",
]
