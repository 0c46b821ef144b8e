"""Only imports."""

import torch  # noqa: F401
