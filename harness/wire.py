"""What a run sends to a server: the lines of its journal, and where the case in hand is.

The run itself goes ahead as one document; then come batches of the other lines. A `StageLine` is kept only for the
eye: it is in no journal, and one that comes late is passed over.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field, TypeAdapter

from harness.record import Line, Record, RunEnd, Stage, Start


class StageLine(Line):
    """Where an attempt at a case is now."""

    type: Literal["stage"] = "stage"
    run_id: str
    case_id: str
    attempt: int
    stage: Stage
    at: datetime


SentLine = Start | StageLine | Record | RunEnd
SENT: TypeAdapter[SentLine] = TypeAdapter(Annotated[SentLine, Field(discriminator="type")])
