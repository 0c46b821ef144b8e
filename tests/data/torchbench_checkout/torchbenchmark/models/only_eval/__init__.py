"""It does not train: no batch size is set for that."""

import torch

from ...util.base import Base


class Model(Base):
    DEFAULT_EVAL_BSIZE = 2

    def __init__(self, test, device, batch_size=None, extra_args=[]):
        super().__init__(test=test, device=device, batch_size=batch_size, extra_args=extra_args)
        self.model = torch.nn.Linear(3, 2)
        self.example_inputs = (torch.randn(self.batch_size, 3),)
