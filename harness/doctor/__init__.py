"""Is this host fit to measure?

sight      all that was seen of a host, as one value
look       looks: facts of the machine, half a second of load, disks, compilers, the GPU
processor  checks of clocks, cores and threads
checks     all checks: a sight -> findings, each with a sentence and a remedy. Pure
noise      the same step on both sides in fresh interpreters: the smallest change that this host could see

Nothing here imports torch; a launch of `noise` is `harness.worker.noise`.
"""
