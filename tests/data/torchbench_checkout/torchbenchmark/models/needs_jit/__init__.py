"""As some of 2022: `jit` without a default; inputs are a list."""

import torch

from ...util.base import Base


class Add(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = torch.nn.Parameter(torch.ones(3))

    def forward(self, one, other):
        return self.scale * one + other


class Model(Base):
    DEFAULT_TRAIN_BSIZE = 2
    DEFAULT_EVAL_BSIZE = 2

    def __init__(self, test, device, jit, batch_size=None, extra_args=[]):
        super().__init__(test=test, device=device, jit=jit, batch_size=batch_size, extra_args=extra_args)
        self.model = Add()
        self.example_inputs = [torch.randn(self.batch_size, 3), torch.randn(self.batch_size, 3)]
