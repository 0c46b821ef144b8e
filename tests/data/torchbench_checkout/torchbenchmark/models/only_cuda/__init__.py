"""It refuses the CPU, when its module is asked for and without a word."""

import torch

from ...util.base import Base


class Model(Base):
    DEFAULT_TRAIN_BSIZE = 2
    DEFAULT_EVAL_BSIZE = 2

    def __init__(self, test, device, batch_size=None, extra_args=[]):
        super().__init__(test=test, device=device, batch_size=batch_size, extra_args=extra_args)
        self.model = torch.nn.Linear(3, 2)
        self.example_inputs = (torch.randn(self.batch_size, 3),)

    def get_module(self):
        if self.asked["device"] == "cpu":
            raise NotImplementedError
        return super().get_module()
