"""The face: one module per verb of the command. Wires the rooms together; holds no logic.

`bench.connect(...)` gives results as pandas DataFrames: see `bench.client`. It is imported when it is asked for, since
each verb, and each worker that a run starts, passes through here.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bench.client import connect as connect


def __getattr__(name: str) -> object:
    if name == "connect":
        from bench.client import connect

        return connect
    raise AttributeError(f"module 'bench' has no attribute {name!r}")
