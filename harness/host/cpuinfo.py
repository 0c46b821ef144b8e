"""What `/proc/cpuinfo` says: on x86 a name and flags, on Arm numbers and features."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

PARTS = {
    0x41: {  # Arm
        0xD03: "Cortex-A53",
        0xD08: "Cortex-A72",
        0xD0B: "Cortex-A76",
        0xD41: "Cortex-A78",
        0xD42: "Cortex-A78AE",
        0xD80: "Cortex-A520",
        0xD81: "Cortex-A720",
        0xD82: "Cortex-X4",
        0xD0C: "Neoverse-N1",
        0xD49: "Neoverse-N2",
        0xD8E: "Neoverse-N3",
        0xD40: "Neoverse-V1",
        0xD4F: "Neoverse-V2",
        0xD84: "Neoverse-V3",
    },
    0x46: {0x001: "A64FX"},  # Fujitsu
    0x48: {0xD01: "Kunpeng-920"},  # HiSilicon
    0xC0: {0xAC3: "Ampere-1", 0xAC4: "Ampere-1a"},  # Ampere
}
"""Names of Arm cores by implementer and part, where the kernel gives only numbers: those that `lscpu` of util-linux
prints; for the youngest, those of Linux's `asm/cputype.h`."""


def blocks(cpuinfo: str) -> list[dict[str, str]]:
    """Return one table per processor, keys in small letters."""
    found: list[dict[str, str]] = []
    for line in cpuinfo.splitlines():
        key, colon, value = (part.strip() for part in line.partition(":"))
        if colon and (key == "processor" or not found):
            found.append({})
        if colon:
            found[-1][key.lower()] = value
    return found


def flags(blocks: Sequence[Mapping[str, str]]) -> frozenset[str]:
    """Return what all processors have: a process may be moved from one to the other."""
    told = [frozenset(words.split()) for block in blocks if (words := block.get("flags") or block.get("features"))]
    return frozenset.intersection(*told) if told else frozenset()


def names(blocks: Sequence[Mapping[str, str]]) -> str:
    """Return the product, or the names of all kinds of cores there are; empty where nothing is told."""
    return " + ".join(dict.fromkeys(name for block in blocks if (name := _name(block))))


def _name(block: Mapping[str, str]) -> str | None:
    if name := block.get("model name"):
        return name
    try:
        maker, part = int(block["cpu implementer"], 0), int(block["cpu part"], 0)
    except (KeyError, ValueError):
        return None
    return PARTS.get(maker, {}).get(part) or f"implementer {maker:#04x} part {part:#05x}"
