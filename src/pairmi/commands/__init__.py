"""What each command of the command line does: one file each, with a function `run`."""
