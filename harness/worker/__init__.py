"""The child process, the only place where a model runs.

main       one assignment in, stage events and one answer out
measure    the order of a measurement on one screen
step, compiled, accuracy, timing, device, environment    its parts
"""
