"""Which share of a run's wall time is neither model, compiler nor sampling.

    python -m benchmarks.overhead examples/*.jsonl.gz

Wall time is from the run's first line to its end line; what belongs to model, compiler and sampling is the sum of
the stages' own times. Resumed runs are left out: nobody knows how long they rested.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from harness.journal import read
from harness.record import Record, Run, RunEnd


def overhead(path: Path) -> tuple[int, float, float] | None:
    """Return the number of cases, the wall seconds and the seconds in stages of a run; None for a resumed one."""
    run: Run | None = None
    ends: list[RunEnd] = []
    cases, stages_s = 0, 0.0
    for line in read(path):
        if isinstance(line, Run):
            run = line
        elif isinstance(line, RunEnd):
            ends.append(line)
        elif isinstance(line, Record):
            cases += 1
            stages_s += sum(stage.wall_s for stage in line.stages)
    if run is None or len(ends) != 1:
        return None
    return cases, (ends[0].at - run.started_at).total_seconds(), stages_s


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("journals", nargs="+", type=Path)
    print("| journal | cases | wall s | in stages s | share of neither |\n|---|---:|---:|---:|---:|")
    for path in parser.parse_args().journals:
        found = overhead(path)
        if found is None:
            print(f"| {path.name} | resumed or unfinished: not counted | | | |")
            continue
        cases, wall_s, stages_s = found
        print(f"| {path.name} | {cases} | {wall_s:.0f} | {stages_s:.0f} | {1 - stages_s / wall_s:.1%} |")


if __name__ == "__main__":
    main()
