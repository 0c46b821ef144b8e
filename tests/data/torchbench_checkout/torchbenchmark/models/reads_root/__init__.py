"""It reads a file by its path from the root, and imports a module that stands there."""

import torch
from checkout_utils import WIDTH

from ...util.base import Base


class Model(Base):
    DEFAULT_TRAIN_BSIZE = 2
    DEFAULT_EVAL_BSIZE = 2

    def __init__(self, test, device, batch_size=None, extra_args=[]):
        super().__init__(test=test, device=device, batch_size=batch_size, extra_args=extra_args)
        with open("torchbenchmark/models/reads_root/width.txt") as file:
            self.model = torch.nn.Linear(WIDTH, int(file.read()))
        self.example_inputs = (torch.randn(self.batch_size, WIDTH),)
