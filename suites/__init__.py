"""Turns a model's description into a `Workload`. Knows nothing of time.

spec, workload    what a suite says and what a builder returns
registry          suite name -> module, imported on demand
toy, timm, user   the suites; inputs: seeded arguments for them
"""
