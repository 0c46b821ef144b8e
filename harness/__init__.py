"""Turns a plan into records.

config, plan      what to run           record, stats, derive, summary    what is known afterwards
runner, workers   one child per case    journal, sinks, report            where it goes
worker/           the child process, the only place where a model runs
"""
