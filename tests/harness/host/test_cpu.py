"""Processors of other machines, from their files: what is there, what may be used, what a child is kept on."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import psutil
import pytest

from harness.host import cgroup, cpu, macos
from harness.host.topology import parse_list
from harness.worker.observe import emulated_formats
from tests.harness.host import hosts

GIB = 1 << 30
HERE = pytest.mark.skipif(not Path("/proc/cpuinfo").exists(), reason="not Linux")


def read(folder: Path, name: str, files: dict[str, str] | None = None, **more: object) -> cpu.CpuFacts:
    return cpu.read(hosts.build(folder, name, files), **more)


@pytest.mark.parametrize(
    ("host", "name", "architecture", "sockets", "cores", "nodes", "smt"),
    [
        ("x86-server", "Intel(R) Xeon(R) Platinum 8480+", "x86_64", 2, 8, 2, True),
        ("x86-desktop", "AMD Ryzen 7 5800X 8-Core Processor", "x86_64", 1, 8, 1, True),
        ("x86-hybrid", "12th Gen Intel(R) Core(TM) i5-12600K", "x86_64", 1, 10, 1, True),
        ("graviton3", "Neoverse-V1", "aarch64", 1, 4, 1, False),
        ("graviton2", "Neoverse-N1", "aarch64", 1, 4, 1, False),
        ("arm-board", "Cortex-A53 + Cortex-A76", "aarch64", None, 6, None, False),
        ("gaps", "AMD EPYC 7763 64-Core Processor", "x86_64", 2, 4, None, True),
        ("vm", "unknown", "x86_64", None, None, None, None),
    ],
)
def test_what_is_there(
    tmp_path: Path,
    host: str,
    name: str,
    architecture: str,
    sockets: int | None,
    cores: int | None,
    nodes: int | None,
    smt: bool | None,
) -> None:
    """Product, sockets, cores, NUMA nodes with processors and SMT are the machine's; what it does not tell is None."""
    facts = read(tmp_path, host)

    assert (name, architecture) == (facts.name, facts.architecture)
    assert (sockets, cores, nodes, smt) == (facts.sockets, facts.cores_physical, facts.numa_nodes, facts.smt)


@pytest.mark.parametrize(
    ("host", "usable", "physical", "pinned"),
    [
        ("x86-server", 16, 8, (0, 1, 2, 3)),  # of two equal nodes the first
        ("x86-desktop", 16, 8, (0, 1, 2, 3, 4, 5, 6, 7)),
        ("x86-hybrid", 16, 10, (0, 2, 4, 6, 8, 10)),  # no slow core, and each fast one once
        ("graviton3", 4, 4, (0, 1, 2, 3)),
        ("arm-board", 6, 6, (4, 5)),
        ("gaps", 3, 3, (1, 4, 6)),
        ("vm", 1, 1, (0,)),
        ("container-v2", 1, 1, (0,)),  # a quota of 1.5
        ("container-v1", 2, 2, (0, 1)),  # a quota of 2.5
    ],
)
def test_what_may_be_used(tmp_path: Path, host: str, usable: int, physical: int, pinned: tuple[int, ...]) -> None:
    """Affinity, cpuset and quota, rounded down, bound what is used; pinned is one processor per core of one node."""
    facts = read(tmp_path, host)

    assert (usable, physical, pinned) == (facts.usable_cores, facts.physical_cores, cpu.pinning(facts))


@pytest.mark.parametrize(
    ("affinity", "physical", "pinned"),
    [
        ({0, 8}, 1, (0,)),  # one core twice
        ({9, 10}, 2, (9, 10)),  # second threads alone
        ({0, 4, 5, 13}, 3, (4, 5)),  # the node that has most of what may be used
        ({0, 1, 99}, 2, (0, 1)),  # one that is not there
        ({99}, 8, (0, 1, 2, 3)),  # nothing of it: all
    ],
)
def test_affinity(tmp_path: Path, affinity: set[int], physical: int, pinned: tuple[int, ...]) -> None:
    """What a process may run on bounds cores and pinning; two threads of a core count once."""
    facts = read(tmp_path, "x86-server", affinity=affinity)

    assert (physical, pinned) == (facts.physical_cores, cpu.pinning(facts))


def test_numbers_of_processors_have_gaps(tmp_path: Path) -> None:
    """Processors keep the kernel's numbers; those that are offline are not there, whatever affinity says."""
    facts = read(tmp_path, "gaps")

    assert (0, 1, 4, 6, 7) == tuple(each.logical for each in facts.processors)
    assert (0, 0, 4, 6, 7) == tuple(each.core for each in facts.processors)
    assert (1, 4, 6) == facts.usable


def test_node_without_processors(tmp_path: Path) -> None:
    """A NUMA node that is memory alone is none of those counted."""
    root = hosts.build(tmp_path, "x86-server")

    assert (root / "sys/devices/system/node/node2/cpulist").exists()
    assert {0, 1} == {each.node for each in cpu.read(root).processors}


@pytest.mark.parametrize(
    ("host", "emulated"),
    [
        ("x86-server", ()),  # avx512_bf16, avx512_fp16 and AMX
        ("x86-desktop", ("bfloat16", "float16")),  # AVX2 and no wider
        ("graviton3", ()),  # bf16, asimdhp
        ("graviton2", ("bfloat16",)),  # asimdhp alone
        ("arm-board", ("bfloat16", "float16")),  # the slow cores have neither
        ("vm", ("bfloat16", "float16")),
    ],
)
def test_emulated_formats(tmp_path: Path, host: str, emulated: tuple[str, ...]) -> None:
    """The number formats that a machine emulates follow from the flags that all its processors have."""
    facts = read(tmp_path, host)

    assert emulated == emulated_formats(facts.flags, facts.architecture)


def test_flags_of_arm(tmp_path: Path) -> None:
    """Arm's features are flags: SVE is seen."""
    assert {"sve", "bf16", "i8mm"} <= read(tmp_path, "graviton3").flags


def test_amx_alone_has_bfloat16(tmp_path: Path) -> None:
    """AMX multiplies bfloat16 where the vector units do not."""
    text = (hosts.build(tmp_path, "x86-server") / "proc/cpuinfo").read_text()
    facts = read(tmp_path, "x86-server", {"proc/cpuinfo": text.replace(" avx512_bf16", "").replace(" avx512_fp16", "")})

    assert "amx_bf16" in facts.flags
    assert ("float16",) == emulated_formats(facts.flags, facts.architecture)


def test_core_without_a_name(tmp_path: Path) -> None:
    """An Arm core of no known name is called by its numbers."""
    text = (hosts.build(tmp_path, "graviton3") / "proc/cpuinfo").read_text().replace("0xd40", "0xfff")

    assert "implementer 0x41 part 0xfff" == read(tmp_path, "graviton3", {"proc/cpuinfo": text}).name


@pytest.mark.parametrize(
    ("host", "cores", "memory_bytes", "free_bytes"),
    [
        ("container-v2", 1.5, 4 * GIB, 2 * GIB),  # of the pod above, whose dropped files would give 1 GiB back
        ("container-v1", 2.5, 2 * GIB, 3 * GIB // 2),
        ("x86-server", None, None, None),  # "max" everywhere
        ("vm", None, None, None),
    ],
)
def test_control_group(
    tmp_path: Path, host: str, cores: float | None, memory_bytes: int | None, free_bytes: int | None
) -> None:
    """The tightest limit of all groups above counts, in both versions; without a limit there is None."""
    allowed = cgroup.read(hosts.build(tmp_path, host))

    assert cgroup.Allowance(cores, memory_bytes, free_bytes) == allowed


def test_no_limit_of_version_1(tmp_path: Path) -> None:
    """Version 1 says "no limit" by -1 and by a number near 2**63."""
    files = {
        "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us": "-1",
        "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712",
    }

    assert cgroup.Allowance() == cgroup.read(hosts.build(tmp_path, "container-v1", files))


@pytest.mark.parametrize(
    ("host", "governors", "turbo", "max_mhz", "hypervisor"),
    [
        ("x86-server", ("performance",), False, 3800.0, None),
        ("x86-desktop", ("performance", "schedutil"), True, 4850.194, None),
        ("graviton3", (), None, None, "Amazon EC2"),
        ("graviton2", (), None, None, None),  # the whole machine
        ("container-v1", (), None, None, "Microsoft Corporation"),
        ("vm", (), None, None, "hypervisor"),
    ],
)
def test_clocks_and_hypervisor(
    tmp_path: Path,
    host: str,
    governors: tuple[str, ...],
    turbo: bool | None,
    max_mhz: float | None,
    hypervisor: str | None,
) -> None:
    """Governors, turbo and highest clock are the kernel's; a hypervisor is seen by its flag or, on Arm, by its name."""
    facts = read(tmp_path, host)

    assert (governors, turbo, max_mhz) == (facts.governors, facts.turbo, facts.max_mhz)
    assert hypervisor == facts.hypervisor


@pytest.mark.parametrize("host", hosts.NAMES)
def test_nothing_raises(tmp_path: Path, host: str) -> None:
    """Where every file holds nonsense, one is a folder, or none is there, nothing is known and nothing raised."""
    root = hosts.build(tmp_path / "odd", host)
    files = [path for path in root.rglob("*") if path.is_file()]
    for number, path in enumerate(files):
        path.write_bytes((b"\xff\xfe-3:-,,9-1,\xc2\xb2 \n:::\n", b"", b"0-99999999999999999999")[number % 3])
    files[0].unlink()
    files[0].mkdir()

    for facts in (cpu.read(root), cpu.read(tmp_path / "nowhere")):
        assert facts.usable_cores >= 1
        assert facts.physical_cores >= 1
        assert (None, None) == (facts.memory_bytes, facts.cgroup_memory_bytes)
    assert () == cpu.pinning(cpu.read(tmp_path / "nowhere"))


@pytest.mark.parametrize(
    ("words", "numbers"),
    [("0-2,8\n", (0, 1, 2, 8)), ("", ()), ("5", (5,)), ("3-1", ()), ("a,1-b,7", (7,)), ("-1", ()), ("0-9999999", ())],
)
def test_lists(words: str, numbers: tuple[int, ...]) -> None:
    """A list is read as the kernel writes it; what is none is left out."""
    assert numbers == parse_list(words)


@pytest.mark.skipif(shutil.which("lscpu") is None, reason="no lscpu")
@pytest.mark.parametrize("host", ["x86-server", "x86-desktop", "x86-hybrid", "graviton3", "graviton2", "container-v1"])
def test_agrees_with_lscpu(tmp_path: Path, host: str) -> None:
    """`lscpu` of util-linux reads the same product, cores, sockets and nodes out of the same files."""
    root = hosts.build(tmp_path, host)
    facts = cpu.read(root)
    told = [line.split(",") for line in lscpu(root, "-p=CPU,CORE,SOCKET,NODE") if not line.startswith("#")]
    cores = {core: min(int(row[0]) for row in told if row[1] == core) for _, core, *_ in told}
    names = [line.partition(":")[2].strip() for line in lscpu(root) if line.startswith("Model name:")]

    assert [(int(a), cores[b], int(c), int(d)) for a, b, c, d in told] == [
        (each.logical, each.core, each.socket, each.node) for each in facts.processors
    ]
    assert [facts.name] == names


def lscpu(root: Path, *options: str) -> list[str]:
    done = subprocess.run(["lscpu", "-s", str(root), *options], capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


@HERE
def test_this_machine() -> None:
    """Here the files agree with what Python and psutil say."""
    facts = cpu.read()

    assert set(facts.usable) == os.sched_getaffinity(0)
    assert psutil.virtual_memory().total == facts.memory_bytes
    assert facts.cores_physical in (psutil.cpu_count(logical=False), None)
    assert set(cpu.pinning(facts)) <= set(facts.usable)
    assert 1 <= facts.physical_cores <= facts.usable_cores


def test_mac() -> None:
    """A Mac's chip has its name, and its features by Linux's names; where nothing is told, nothing is known."""
    told = macos.read(
        lambda: (
            "machdep.cpu.brand_string: Apple M2\n"
            "hw.optional.arm.FEAT_BF16: 1\nhw.optional.arm.FEAT_FP16: 1\nhw.optional.arm.FEAT_I8MM: 0\n"
        )
    )

    assert ("Apple M2", {"bf16", "asimdhp"}) == (told.name, told.flags)
    assert () == emulated_formats(told.flags, "arm64")
    assert (None, frozenset()) == (macos.read(lambda: "").name, macos.read(lambda: "").flags)


def test_where_there_is_no_proc(monkeypatch: pytest.MonkeyPatch) -> None:
    """On another system there are counts and no way to pin."""
    monkeypatch.setattr("sys.platform", "darwin")
    facts = cpu.read()

    assert os.cpu_count() == facts.usable_cores
    assert facts.physical_cores >= 1
    assert () == cpu.pinning(facts)
