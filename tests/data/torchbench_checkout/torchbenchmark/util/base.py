"""What models derive from: a hook that a metaclass runs behind each constructor, seeds, and the rule of batch sizes."""

import random
import sys
from pathlib import Path

import torch


def same_seed(*_):
    return torch.default_generator.manual_seed(1337)


class Hooked(type):
    def __call__(cls, *args, **kwargs):
        made = super().__call__(*args, **kwargs)
        made.hook()
        return made


class Base(metaclass=Hooked):
    DEFAULT_TRAIN_BSIZE = None
    DEFAULT_EVAL_BSIZE = None
    ALLOW_CUSTOMIZE_BSIZE = True

    def __init__(self, test, device, batch_size=None, extra_args=None, jit=None):
        torch.manual_seed = same_seed
        torch.manual_seed(0)
        random.seed(1337)
        own = self.DEFAULT_TRAIN_BSIZE if test == "train" else self.listed(device) or self.DEFAULT_EVAL_BSIZE
        if own is None:
            raise NotImplementedError(f"no {test} here\nand more lines of it")
        if batch_size not in (None, own) and not self.ALLOW_CUSTOMIZE_BSIZE:
            raise NotImplementedError("the batch size is fixed")
        self.batch_size = batch_size or own
        self.asked = {"test": test, "device": device, "jit": jit, "extra_args": extra_args}
        self.hooked = False

    def listed(self, device):
        """The batch size for a device in metadata.yaml, or None."""
        file = Path(sys.modules[type(self).__module__].__file__).with_name("metadata.yaml")
        lines = file.read_text().splitlines() if file.exists() else []
        return next((int(line.split()[-1]) for line in lines if line.startswith(f"{device}:")), None)

    def hook(self):
        self.model.asked = self.asked
        self.hooked = True

    def get_module(self):
        assert self.hooked
        return self.model, self.example_inputs
