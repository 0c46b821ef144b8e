"""It fetches weights when it is constructed."""

from urllib.error import URLError

from ...util.base import Base


class Model(Base):
    DEFAULT_TRAIN_BSIZE = 2
    DEFAULT_EVAL_BSIZE = 2

    def __init__(self, test, device, batch_size=None, extra_args=[]):
        raise URLError("no route to the weights")
