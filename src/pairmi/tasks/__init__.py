"""What is decoded: exact tables, Sudoku."""
