"""It needs a part of the checkout that is not there."""

from torchbenchmark.util.missing import part  # noqa: F401
