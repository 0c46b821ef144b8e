"""What the host is, from its own files and libraries. Nothing here imports torch; unknown is None.

cpu                 the processors: counts, clocks; which of them this process may use, and a child keeps to
topology, cpuinfo   cores, packages and NUMA nodes; what the kernel says of the product
cgroup, macos       what a control group allows; the few facts that macOS tells
nvml, reading       NVIDIA's GPUs; what one look at a device shows
clocks              hold a GPU's clock during a run
settings            variables that change how libraries compute: set, and recorded
detect              the machine as a whole: does a profile fit it, and which one fits best
"""
