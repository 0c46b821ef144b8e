"""The child process, the only place where a model runs.

main, preload              one assignment in, stage events and one answer out; what children find imported
measure                    the order of a measurement on one screen
step, dropout              a workload in its precision and mode: a callable of no arguments
collect, leaves, accuracy  one step and all it gave; held against eager and float64
compiled                   torch.compile, and what the compiler says of its work
timing, conditions         pairs in random order; what the device does meanwhile
device, cuda, mps          clock, queue, events, memory: one seam, a class per kind
observe, failures, environment    what was really there
"""
