"""Its get_module() returns a generator of inputs."""

import torch


class Model:
    def __init__(self, test, device, batch_size=None, extra_args=[]):
        pass

    def get_module(self):
        return torch.nn.Linear(3, 2), (each for each in [torch.randn(2, 3)])
