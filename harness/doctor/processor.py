"""Checks of the processors: their clocks, which of them share a core, and how many threads they bear. Pure."""

from __future__ import annotations

from harness.doctor.sight import Sight, found
from harness.host import cpu
from harness.record import DeviceProfile, Finding, Level

FOLLOWING = ("intel_pstate", "amd-pstate-epp")
"""Drivers whose `powersave` leaves the clock to the processor, which raises it under load."""


def governor(sight: Sight, profile: DeviceProfile) -> Finding:
    facts = sight.machine.cpu
    remedy = "sudo cpupower frequency-set -g performance"
    value = ", ".join(facts.governors) or None
    if not facts.governors:
        hidden = "A virtual machine does not tell its" if facts.hypervisor else "The kernel names no"
        return found(
            "governor", Level.UNKNOWN, None, f"{hidden} governor: whether the clock follows the load is unknown."
        )
    if facts.governors == ("performance",):
        return found("governor", Level.GOOD, value, "The clock does not follow the load.")
    if facts.governors == ("powersave",) and facts.frequency_driver in FOLLOWING:
        sentence = f"{facts.frequency_driver} raises the clock under load, with a delay that the first samples see."
        return found("governor", Level.NOTE, value, sentence, remedy)
    if "powersave" in facts.governors and facts.frequency_driver not in FOLLOWING:
        return found("governor", Level.BAD, value, "Processors are kept at their lowest clock.", remedy)
    return found("governor", Level.WARNING, value, "The clock follows the load, late and by its own rules.", remedy)


def turbo(sight: Sight, profile: DeviceProfile) -> Finding:
    facts = sight.machine.cpu
    if facts.turbo is None:
        return found("turbo", Level.UNKNOWN, None, "The host does not tell whether the clock may rise above its base.")
    if not facts.turbo:
        return found("turbo", Level.GOOD, "off", "The clock does not rise above its base.")
    switch = "1 | sudo tee /sys/devices/system/cpu/intel_pstate/no_turbo"
    if not (facts.frequency_driver or "").startswith("intel"):
        switch = "0 | sudo tee /sys/devices/system/cpu/cpufreq/boost"
    sentence = "The clock depends on heat and on how many cores work: times of other nights spread more, ratios less."
    return found("turbo", Level.NOTE, "on", sentence, f"echo {switch}")


def clocks(sight: Sight, profile: DeviceProfile) -> Finding:
    highest, limit = sight.machine.cpu.max_mhz, sight.limit_mhz
    if highest is None or limit is None:
        return found("clocks", Level.UNKNOWN, None, "The host does not tell how high the processors' clocks may go.")
    value = f"{limit:.0f} of {highest:.0f} MHz"
    if limit < highest:
        remedy = f"sudo cpupower frequency-set -u {highest:.0f}MHz"
        sentence = "The system holds the clock below the processor's highest: not comparable with hosts that do not."
        return found("clocks", Level.NOTE, value, sentence, remedy)
    return found("clocks", Level.GOOD, value, "The system sets no limit below the processor's own.")


def smt(sight: Sight, profile: DeviceProfile) -> Finding:
    facts = sight.machine.cpu
    if facts.smt and profile.pin and cpu.pinning(facts):
        return found("smt", Level.GOOD, "on", "Each thread is kept on a core of its own.")
    if facts.smt:
        sentence = "Two threads, ours or another's, may share a core and slow each other down."
        remedy = "echo off | sudo tee /sys/devices/system/cpu/smt/control, or a profile with pin = true"
        return found("smt", Level.NOTE, "on", sentence, remedy)
    if facts.smt is None or facts.hypervisor:
        sentence = "Whether a processor is a whole core or half of one that somebody else uses too is not told."
        return found("smt", Level.UNKNOWN, None if facts.smt is None else "none seen", sentence)
    return found("smt", Level.GOOD, "off", "Each processor is a core of its own.")


def numa(sight: Sight, profile: DeviceProfile) -> Finding:
    facts = sight.machine.cpu
    kept_on = (profile.pin and cpu.pinning(facts)) or facts.usable
    nodes = {each.node for each in facts.processors if each.logical in kept_on}
    if facts.numa_nodes is None:
        return found("numa", Level.UNKNOWN, None, "The host does not tell which memory is near which processor.")
    value = f"{len(nodes)} of {facts.numa_nodes} nodes"
    if len(nodes) > 1:
        sentence = "Threads may run far from their memory, and where it lies is chance at each start."
        remedy = "use a profile with pin = true, or: numactl --cpunodebind=0 --membind=0 bench run ..."
        return found("numa", Level.WARNING, value, sentence, remedy)
    return found("numa", Level.GOOD, value, "Threads stay near their memory.")


def virtual(sight: Sight, profile: DeviceProfile) -> Finding:
    maker = sight.machine.cpu.hypervisor
    if maker:
        sentence = "Other machines share this hardware, and what they do cannot be seen from here, only felt."
        return found("virtual", Level.NOTE, maker, sentence, "bench doctor --noise shows how much that is")
    return found("virtual", Level.GOOD, "no", "No hypervisor was seen.")


def heat(sight: Sight, profile: DeviceProfile) -> Finding:
    now, boot = sight.watched.throttled, sight.throttled_since_boot
    if boot is None:
        return found("heat", Level.UNKNOWN, None, "The host keeps no count of processors slowed down for heat.")
    if now:
        sentence = "Processors are being slowed down for heat."
        return found("heat", Level.WARNING, f"{now} times now", sentence, "let it cool, and clear its air")
    if boot:
        sentence = "Processors were slowed down for heat since the system started: long runs may meet it again."
        return found("heat", Level.NOTE, f"{boot} times since boot", sentence, "watch the mark `drifting` on results")
    return found("heat", Level.GOOD, "never", "No processor was slowed down for heat since the system started.")


def threads(sight: Sight, profile: DeviceProfile) -> Finding:
    facts = sight.machine.cpu
    pinned = cpu.pinning(facts) if profile.pin else ()
    wanted = profile.threads or len(pinned) or facts.physical_cores
    variables = {**sight.variables, **profile.environment}
    value = f"{wanted} of {facts.physical_cores} cores"
    if facts.cgroup_cores is not None and wanted > facts.cgroup_cores:
        sentence = f"The control group pays for {facts.cgroup_cores:g} processors: more threads are stopped in turn."
        remedy = (
            f"set threads = {facts.usable_cores} in the profile, or raise the limit, e.g. docker run --cpus={wanted}"
        )
        return found("threads", Level.BAD, value, sentence, remedy)
    if wanted > facts.usable_cores:
        sentence = f"This process may run on {facts.usable_cores} processors: its threads take turns on them."
        remedy = f"set threads = {facts.usable_cores} in the profile, or widen the affinity"
        return found("threads", Level.BAD, value, sentence, remedy)
    if (limit := variables.get("OMP_THREAD_LIMIT", "")).isdigit() and int(limit) < wanted:
        sentence = f"OMP_THREAD_LIMIT={limit} leaves fewer threads than the {wanted} that the record would name."
        return found("threads", Level.BAD, value, sentence, "unset OMP_THREAD_LIMIT")
    if wanted > facts.physical_cores:
        sentence = "More threads than cores: some share one, and wait for each other at every barrier."
        return found("threads", Level.WARNING, value, sentence, f"set threads = {facts.physical_cores} in the profile")
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        if variables.get(name, str(wanted)) != str(wanted):
            sentence = f"{name}={variables[name]} is set: torch is told {wanted}, other libraries obey the variable."
            return found("threads", Level.NOTE, value, sentence, f"unset {name}")
    if facts.cgroup_cores is not None:
        sentence = (
            f"The control group pays for {facts.cgroup_cores:g} processors; compilers beside a model may use it up."
        )
        return found("threads", Level.NOTE, value, sentence)
    return found("threads", Level.GOOD, value, "As many threads as cores may be used, or fewer.")
