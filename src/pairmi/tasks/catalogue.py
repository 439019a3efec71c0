"""Every task by its name, as weights files and models name it."""

from pairmi.model import Sequences, Task
from pairmi.tasks.chemistry.task import Reaction
from pairmi.tasks.protein.task import Protein
from pairmi.tasks.sudoku.task import Sudoku

TASKS: dict[str, Task] = {"sudoku": Sudoku(), "sudoku4": Sudoku(2), "protein": Protein(), "reaction": Reaction(), "sequences": Sequences()}
