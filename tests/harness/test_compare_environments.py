"""What differs between two environments, and what of it starts a new series."""

from __future__ import annotations

from harness.compare_environments import Difference, differences
from tests.server.factory import make_environment


def test_hard_ones_first():
    """What belongs to the hard fingerprint comes first; versions and variables are told one by one."""
    base = make_environment(variables={"OMP_NUM_THREADS": "2"}, governor="powersave")
    head = make_environment(
        cpu="Arm Neoverse-V1",
        threads=4,
        governor="performance",
        versions={"torch": "2.15.0", "torchvision": "0.29.1", "triton": "3.6.0"},
        variables={"OMP_NUM_THREADS": "4"},
    )

    assert (
        Difference("cpu", "AMD EPYC 7R13", "Arm Neoverse-V1", True),
        Difference("threads", "2", "4", True),
        Difference("variables.OMP_NUM_THREADS", "2", "4", True),
        Difference("governor", "powersave", "performance", False),
        Difference("versions.torch", "2.14.1", "2.15.0", False),
        Difference("versions.timm", "1.0.31", None, False),
        Difference("versions.triton", None, "3.6.0", False),
    ) == differences(base, head)


def test_driver():
    """A patch of the driver is soft, another branch of it hard."""
    base, patch, branch = (make_environment(driver=version) for version in ("570.12", "570.99", "580.1"))

    assert [False] == [each.hard for each in differences(base, patch)]
    assert [True] == [each.hard for each in differences(base, branch)]


def test_every_hard_field_is_told():
    """Environments with different fingerprints differ in a hard field; the load, never the same twice, is none."""
    base = make_environment(load_average=0.1)

    assert () == differences(base, make_environment(load_average=1.9))
    for field, value in (
        ("machine_id", "x"),
        ("host", "other"),
        ("memory_bytes", 1 << 30),
        ("cores_usable", 8),
        ("method", 99),
        ("product", "H200"),
        ("device_count", 2),
        ("pinned", (0, 1)),
    ):
        head = make_environment(**{field: value})
        assert [(field, True)] == [(each.field, each.hard) for each in differences(base, head)]
        assert [(field, True)] == [(each.field, each.hard) for each in differences(head, base)]
