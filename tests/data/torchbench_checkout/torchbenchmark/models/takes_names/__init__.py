"""As today: no `jit`; inputs are a dict."""

import torch

from ...util.base import Base


class Named(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(3, 2)

    def forward(self, *, states, weights=None):
        return {"logits": self.layer(states), "kept": states * weights}


class Model(Base):
    DEFAULT_TRAIN_BSIZE = 2
    DEFAULT_EVAL_BSIZE = 2

    def __init__(self, test, device, batch_size=None, extra_args=[]):
        super().__init__(test=test, device=device, batch_size=batch_size, extra_args=extra_args)
        self.model = Named()
        self.example_inputs = {"states": torch.randn(self.batch_size, 3), "weights": torch.randn(3)}
