"""Its module draws random numbers."""

import torch

from ...util.base import Base


class Noisy(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(3, 2)

    def forward(self, states):
        return self.layer(states + torch.rand_like(states))


class Model(Base):
    DEFAULT_TRAIN_BSIZE = 2
    DEFAULT_EVAL_BSIZE = 2

    def __init__(self, test, device, batch_size=None, extra_args=[]):
        super().__init__(test=test, device=device, batch_size=batch_size, extra_args=extra_args)
        self.model = Noisy()
        self.example_inputs = (torch.randn(self.batch_size, 3),)
