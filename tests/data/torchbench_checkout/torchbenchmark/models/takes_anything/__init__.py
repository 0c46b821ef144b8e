"""A constructor that passes on whatever it gets; it would refuse `jit`. The input is a tensor alone."""

import torch

from ...util.base import Base


class Model(Base):
    DEFAULT_TRAIN_BSIZE = 2
    DEFAULT_EVAL_BSIZE = 2

    def __init__(self, **options):
        assert "jit" not in options, "unknown option: jit"
        super().__init__(**options)
        self.model = torch.nn.Linear(3, 2)
        self.example_inputs = torch.randn(self.batch_size, 3)
