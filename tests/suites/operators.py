"""Which operators really run, below everything that a library may say of itself."""

from __future__ import annotations

from torch.utils._python_dispatch import TorchDispatchMode


class Operators(TorchDispatchMode):
    """Keeps the names of the operators that really run."""

    def __init__(self):
        super().__init__()
        self.names = set()

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        self.names.add(function.overloadpacket.__name__)
        return function(*args, **(kwargs or {}))
