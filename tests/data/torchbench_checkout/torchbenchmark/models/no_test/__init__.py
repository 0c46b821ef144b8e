"""As before 2022: the constructor is not told the mode."""


class Model:
    def __init__(self, device=None, jit=False):
        pass
