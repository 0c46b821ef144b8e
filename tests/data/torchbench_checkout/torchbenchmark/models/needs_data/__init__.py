"""It asserts when it is imported that its data are there."""

import os

assert os.path.exists("torchbenchmark/data/pictures"), "no pictures: run the installer\nand more lines of it"
