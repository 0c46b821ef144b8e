"""Turns a model's description into a `Workload`. Knows nothing of time.

spec, workload          what a suite says and what a builder returns
registry                suite's module -> builder, imported on demand
toy, timm, user         the suites
inputs, losses, fill    seeded arguments, losses, and weights that let a fault reach the output
"""
