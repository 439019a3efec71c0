"""9x9 Sudoku: grids, puzzles, rules."""
