"""Builds the `proc` and `sys` of other machines, as far as they are read, from the tables in `tests/data/hosts`.

A table names the block of one processor in `/proc/cpuinfo`, what the kernel knows of each processor, and further files:

    processors = ["0-3 socket 0 node 0", "8-11 socket 0 node 0 like 0-3"]     # 8 is the second thread of 0's core
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from harness.host.topology import parse_list

DATA = Path(__file__).parents[2] / "data/hosts"
NAMES = sorted(path.stem for path in DATA.glob("*.toml"))


def build(folder: Path, name: str, files: dict[str, str] | None = None) -> Path:
    """Write the files of a host below `folder`, `files` over them, and return it. A text of None: no such file."""
    table = tomllib.loads((DATA / f"{name}.toml").read_text())
    rows = [row for line in table.get("processors", []) for row in _rows(line)]
    told = {"proc/sys/kernel/arch": table["architecture"], "proc/cpuinfo": _cpuinfo(table, rows)}
    if rows and table.get("tells_topology", True):
        told |= _topology(rows)
    for path, text in (told | table.get("files", {}) | (files or {})).items():
        if text is not None:
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(text.rstrip("\n") + "\n")
    return folder


def _rows(line: str) -> list[dict[str, int]]:
    words = line.split()
    logicals = parse_list(words[0])
    fields = dict(zip(words[1::2], words[2::2], strict=True))
    cores = parse_list(fields.pop("like", words[0]))
    numbers = {key: int(value) for key, value in fields.items()}
    return [{"logical": logical, "core": core, **numbers} for logical, core in zip(logicals, cores, strict=True)]


def _cpuinfo(table: dict[str, Any], rows: list[dict[str, int]]) -> str:
    blocks = []
    for row in rows:
        kinds = table["cpuinfo"]
        block = kinds if isinstance(kinds, str) else kinds[row.get("kind", 0)]
        for key in ("logical", "socket", "core"):
            block = block.replace(f"{{{key}}}", str(row.get(key, 0)))
        blocks.append(block.strip("\n") + "\n\n")
    return "".join(blocks) + table.get("cpuinfo_end", "")


def _topology(rows: list[dict[str, int]]) -> dict[str, str]:
    system = "sys/devices/system"
    everything = [row["logical"] for row in rows]
    told = {f"{system}/cpu/{name}": _listed(everything) for name in ("online", "present", "possible")}
    for row in rows:
        siblings = [each["logical"] for each in rows if each["core"] == row["core"]]
        package = [each["logical"] for each in rows if each.get("socket") == row.get("socket")]
        folder = f"{system}/cpu/cpu{row['logical']}"
        told |= {
            f"{folder}/topology/core_id": str(row["core"]),
            f"{folder}/topology/physical_package_id": str(row.get("socket", -1)),
            f"{folder}/topology/core_cpus_list": _listed(siblings),
            f"{folder}/topology/thread_siblings_list": _listed(siblings),
            f"{folder}/topology/thread_siblings": _mask(siblings),
            f"{folder}/topology/core_siblings": _mask(package),
        }
        if "capacity" in row:
            told[f"{folder}/cpu_capacity"] = str(row["capacity"])
    for node in sorted({row["node"] for row in rows if "node" in row}):
        near = [row["logical"] for row in rows if row.get("node") == node]
        told |= {
            f"{system}/node/node{node}/cpulist": _listed(near),
            f"{system}/node/node{node}/cpumap": _mask(near),
        }
    return told


def _listed(numbers: list[int]) -> str:
    return ",".join(str(number) for number in sorted(numbers))


def _mask(numbers: list[int]) -> str:
    return f"{sum(1 << number for number in numbers):08x}"
