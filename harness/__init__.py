"""Turns a plan into records.

config, plan     what to run            record, stats, derive    what is known afterwards
runner, slots    keeping slots busy     journal, sinks           where it goes
worker/          the child process, the only place where a model runs
"""
