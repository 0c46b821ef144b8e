"""It needs a name that the package installed does not have."""

from torch import a_name_that_is_not_there_9d2  # noqa: F401
