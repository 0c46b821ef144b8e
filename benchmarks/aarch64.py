"""Does everything that is pinned install on ARM Linux, such as Graviton, from wheels alone?

    make aarch64

Asks the package index, through uv, which evaluates markers for the machine that is asked about: pip evaluates them for
the one on which it runs. Nothing is installed, and no wheel is downloaded. Prints docs/results/aarch64.md.
"""

from __future__ import annotations

import subprocess
import sys
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date
from importlib.metadata import version
from pathlib import Path

ROOT = Path(__file__).parents[1]
PYTHON = "3.11"
PLATFORM = "aarch64-manylinux_2_28"
"""What torch's wheels ask for: Amazon Linux 2023, Debian 10, Ubuntu 20.04 or newer."""


@dataclass(frozen=True)
class Package:
    name: str
    version: str
    wheel: str
    size_bytes: int | None

    @property
    def platform(self) -> str:
        """Last part of the wheel's name: the first of its platforms, or `any`."""
        return self.wheel.removesuffix(".whl").rsplit("-", 1)[1].split(".")[0]


def resolve(*what: str) -> dict[str, Package]:
    """Return what is to be installed, by name.

    Args:
        what: a file with requirements, and options of `uv pip compile`.

    Raises:
        SystemExit: a wheel is missing, requirements contradict each other, or the index does not answer.
    """
    command = [sys.executable, "-m", "uv", "--no-config", "--quiet", "pip", "compile", "--format", "pylock.toml"]
    command += ["--python-platform", PLATFORM, "--python-version", PYTHON, "--only-binary", ":all:", *what]
    answer = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if answer.returncode:
        raise SystemExit(f"{' '.join(what)}\n{answer.stderr}")
    found = {}
    for each in tomllib.loads(answer.stdout)["packages"]:
        wheel = each["wheels"][0]
        file = wheel.get("name") or wheel["url"].rsplit("/", 1)[1]
        found[each["name"]] = Package(each["name"], each["version"], file, wheel.get("size"))
    return found


def pinned() -> dict[str, str]:
    """Return name and version of each line of constraints.txt, names as an index writes them."""
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    pairs = [line.partition("==") for line in lines if line and not line.startswith("#")]
    return {name.lower().replace("_", "-").replace(".", "-"): number for name, _, number in pairs}


def main() -> None:
    """Print the page."""
    run = resolve("pyproject.toml", "--extra", "run", "-c", "constraints.txt")
    everything = resolve("pyproject.toml", "--extra", "dev", "-c", "constraints.txt")
    # Without the driver's Python interface, which is asked for here and not by torch.
    nvidia = [e for e in run.values() if e.name.startswith(("nvidia-", "cuda-")) and e.name != "nvidia-ml-py"]
    torch = run["torch"].version
    counts = f"{len(run)} packages for `[run]`, {_megabytes(run.values())} MB, and {len(everything)} with `[dev]`"
    print(f"""# Does everything install on ARM Linux?

What `pip install -c constraints.txt '.[run]'` needs on aarch64 (AWS Graviton and others) with Python {PYTHON} and glibc
2.28 or newer, resolved for that platform from wheels alone. Nothing was installed: no ARM machine took part.

    make aarch64

{date.today()}, uv {version("uv")}: {counts}; each has a wheel.
The wheel of torch {torch} requires NVIDIA's libraries on any Linux, whatever the processor: {len(nvidia)} packages,
{_megabytes(nvidia)} MB of these, which a machine without a GPU downloads as well.

| package | version | for | wheel's platform | MB | pinned |
|---|---|---|---|---:|---|""")
    pins = pinned()
    for name, each in sorted(everything.items()):
        size = "" if each.size_bytes is None else f"{each.size_bytes / 1e6:.1f}"
        extra = "run" if name in run else "dev"
        print(f"| {name} | {each.version} | {extra} | {each.platform} | {size} | {'yes' if name in pins else 'no'} |")
    for name, number in pins.items():
        if name not in everything:
            print(f"| {name} | {number} | not needed there | | | yes |")


def _megabytes(packages: Iterable[Package]) -> str:
    sizes = [each.size_bytes or 0 for each in packages]
    return f"{sum(sizes) / 1e6:,.0f}"


if __name__ == "__main__":
    main()
