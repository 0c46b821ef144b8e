"""`bench plan`: the cases that `bench run` would measure with the same options, in the same order."""

from __future__ import annotations

from collections import Counter

import typer

from bench import output
from bench.options import DATABASE, Database, Json, Selection, selecting
from harness import report
from harness.budget import Expected
from harness.record import Planned

app = typer.Typer(add_completion=False)


@app.command()
@selecting
def main(selection: Selection, database: Database = DATABASE, as_json: Json = False) -> None:
    """Show what a run would do, without doing it. With --limit-seconds durations are looked up in the database."""
    fitted = selection.fitted(database)
    planned, limited = fitted.plan, fitted.limit_s is not None
    rows = list(zip(planned, fitted.expected, strict=True))
    if as_json:
        for place, (each, expected) in enumerate(rows, start=1):
            values = {"place": place, "case_id": each.case.id, **each.model_dump(mode="json")}
            if limited:
                values |= {"expected_s": expected and expected.seconds, "expected_from": expected and expected.source}
            output.json_line("planned", values)
        return
    output.rows(
        ("#", "case", "configuration", "batch", "tolerance", "limit", *(("expected",) if limited else ()), "note"),
        [_row(place, each, expected, limited) for place, (each, expected) in enumerate(rows, start=1)],
    )
    counts = Counter(each.case.precision.value for each in planned if each.skip is None)
    skipped = sum(each.skip is not None for each in planned)
    expired = sum(each.expired is not None for each in planned)
    told = [f"{count} {precision}" for precision, count in counts.items()]
    told += [f"{count} {what}" for what, count in (("skipped", skipped), ("with an expired skip", expired)) if count]
    print(f"{len(planned)} case{'s' if len(planned) > 1 else ''} on {planned[0].case.device}: {', '.join(told)}")
    if limited:
        print(report.budget_line(fitted))


def _row(place: int, planned: Planned, expected: Expected | None, limited: bool) -> tuple[str, ...]:
    case = planned.case
    notes = [f"skipped: {planned.skip}"] if planned.skip is not None else []
    notes += [f"skip expired: {planned.expired}"] if planned.expired is not None else []
    notes += [f"checked with batch {planned.accuracy_batch}"] if planned.accuracy_batch is not None else []
    batch = "" if case.batch_size is None else str(case.batch_size)
    return (
        str(place),
        case.name,
        case.label,
        batch,
        f"{planned.tolerance:g}",
        f"{planned.orders.timeout_s:g} s",
        *((f"{expected.seconds:.1f} s ({expected.source})" if expected else "",) if limited else ()),
        ", ".join(notes),
    )
