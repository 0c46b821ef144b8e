"""It needs a package that is not installed."""

import a_package_that_is_not_installed_9d2.layers  # noqa: F401
