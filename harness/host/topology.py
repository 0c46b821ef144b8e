"""Which processors there are, and where they sit: cores, packages, NUMA nodes."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.host.cgroup import text

SLOWER_BELOW = 0.75
"""A processor with less than this share of the highest capacity is of a slower kind. Between cores of one kind that
are clocked differently it is above 0.9, between the kinds of a hybrid processor below 0.7."""

MOST_PROCESSORS = 1 << 16
"""A longer range is no list of processors."""


@dataclass(frozen=True)
class Processor:
    """One logical processor.

    Args:
        logical: its number, as the kernel counts.
        core: the lowest number among the processors of the same core: unique on the machine.
        socket, node: of its package and its NUMA node; None: not told.
        slower: of a kind that is slower than the machine's fastest, on a hybrid processor.
    """

    logical: int
    core: int
    socket: int | None = None
    node: int | None = None
    slower: bool = False


def processors(root: Path, blocks: Sequence[Mapping[str, str]]) -> tuple[Processor, ...]:
    """Return the processors that are online, by number.

    Args:
        root: the folder of `proc` and `sys`.
        blocks: of `/proc/cpuinfo`, see `harness.host.cpuinfo`.
    """
    told = {int(name): block for block in blocks if (name := block.get("processor", "")).isdecimal()}
    online = parse_list(text(root / "sys/devices/system/cpu/online")) or tuple(sorted(told))
    nodes = {logical: node for node, logicals in _nodes(root) for logical in logicals}
    slower = _slower(root, online)
    first: dict[object, int] = {}  # of each core, by whatever tells cores apart
    found = []
    for logical in online or allowed(root):
        block, topology = told.get(logical, {}), folder(root, logical) / "topology"
        socket = number(text(topology / "physical_package_id") or block.get("physical id", ""))
        siblings = _siblings(root, logical)
        same: object = siblings or (socket, block.get("core id", ("alone", logical)))
        found.append(
            Processor(
                logical=logical,
                core=first.setdefault(same, logical),
                socket=socket,
                node=nodes.get(logical),
                slower=logical in slower,
            )
        )
    return tuple(found)


def _nodes(root: Path) -> Iterator[tuple[int, tuple[int, ...]]]:
    try:
        folders = sorted((root / "sys/devices/system/node").glob("node[0-9]*"))
    except OSError:
        return
    for each in folders:
        if (node := number(each.name.removeprefix("node"))) is not None:
            yield node, parse_list(text(each / "cpulist"))


def _slower(root: Path, online: Collection[int]) -> frozenset[int]:
    """Processors of a slower kind: as Intel's hybrid ones name them, or by the capacity that the scheduler sees."""
    if (root / "sys/devices/cpu_core").is_dir():
        return frozenset(online) - frozenset(parse_list(text(root / "sys/devices/cpu_core/cpus")))
    capacity = {each: number(text(folder(root, each) / "cpu_capacity")) for each in online}
    highest = max((value for value in capacity.values() if value is not None), default=0)
    return frozenset(each for each, value in capacity.items() if value is not None and value < SLOWER_BELOW * highest)


def tells_cores(root: Path, online: Collection[Processor], blocks: Sequence[Mapping[str, str]]) -> bool:
    """Say whether this machine tells at all which processors share a core."""
    return any("core id" in block for block in blocks) or any(_siblings(root, each.logical) for each in online)


def _siblings(root: Path, logical: int) -> tuple[int, ...]:
    where = folder(root, logical) / "topology"
    return parse_list(text(where / "core_cpus_list") or text(where / "thread_siblings_list"))  # the older name


def allowed(root: Path) -> tuple[int, ...]:
    """Return the processors that this process may run on, as its status file says; they need not be online."""
    for line in text(root / "proc/self/status").splitlines():
        if line.startswith("Cpus_allowed_list:"):
            return parse_list(line.partition(":")[2])
    return ()


def parse_list(words: str) -> tuple[int, ...]:
    """Return the numbers of a list as the kernel writes it: `0-2,8` is 0, 1, 2, 8. What is no number is left out."""
    numbers: set[int] = set()
    for word in words.replace("\n", ",").split(","):
        first, dash, last = word.strip().partition("-")
        if first.isdecimal() and (not dash or last.isdecimal()) and int(last or first) - int(first) < MOST_PROCESSORS:
            numbers.update(range(int(first), int(last or first) + 1))
    return tuple(sorted(numbers))


def folder(root: Path, logical: int) -> Path:
    """Return where the kernel tells of one processor."""
    return root / f"sys/devices/system/cpu/cpu{logical}"


def number(word: str) -> int | None:
    """Return a number of the kernel; it says -1 where it does not know."""
    return int(word) if word.isdecimal() else None
