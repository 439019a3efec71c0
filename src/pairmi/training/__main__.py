"""`torchrun --nproc-per-node N -m pairmi.training head ...`: the command `pairmi train` in several processes."""

import sys

from pairmi.cli import main

if __name__ == "__main__":
    sys.exit(main(["train", *sys.argv[1:]]))
