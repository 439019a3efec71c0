"""9x9 Sudoku: grids, puzzles, text formats."""
