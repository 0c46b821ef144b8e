"""Its batch size in eval stands in metadata.yaml, by device."""

import torch

from ...util.base import Base


class Model(Base):
    DEFAULT_TRAIN_BSIZE = 4
    DEFAULT_EVAL_BSIZE = 4

    def __init__(self, test, device, batch_size=None, extra_args=[]):
        super().__init__(test=test, device=device, batch_size=batch_size, extra_args=extra_args)
        self.model = torch.nn.Linear(3, 2)
        self.example_inputs = (torch.randn(self.batch_size, 3),)
