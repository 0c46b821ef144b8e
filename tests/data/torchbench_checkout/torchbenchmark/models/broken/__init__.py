"""It fails by itself."""


class Model:
    def __init__(self, test, device, batch_size=None, extra_args=[]):
        raise RuntimeError("a layer of width 5 where 3 is expected")
