"""The usual formats of Sudoku in files are read, and boards drawn for people."""

import csv
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

import torch
from jaxtyping import Int
from torch import Tensor

from pairmi.tasks.sudoku.rules import cell_name, to_text, valid
from pairmi.types import PairmiError

EMPTY = 9
BLANKS = "._0*xX"
SEPARATORS = " \t|-+=[]"  # may stand anywhere between cells
TOKENS = {digit: token for token, digit in enumerate("123456789")} | dict.fromkeys(BLANKS, EMPTY)
CELLS = f"1-9, and {' '.join(BLANKS)} for empty"
PUZZLE_COLUMNS = ("puzzle", "puzzles", "quiz", "quizzes", "question")
SOLUTION_COLUMNS = ("solution", "solutions", "answer")


@dataclass(frozen=True)
class Record:
    """A puzzle as tokens (0..8, 9 = empty), its solution if the text gives one, and the line on which it begins."""

    line: int
    canvas: Int[Tensor, " 81"]
    solution: Int[Tensor, " 81"] | None


@dataclass(frozen=True)
class Columns:
    """Where in a line of CSV the puzzle and the solution stand."""

    puzzle: int = 0
    solution: int | None = 1


def _parse(text: str, line: int) -> list[int]:
    """The tokens in a piece of text, without what separates them."""
    letters = [letter for letter in text if letter not in SEPARATORS]
    for letter in letters:
        if letter not in TOKENS:
            raise PairmiError(f"line {line}: {letter!r} is not a Sudoku cell; expected {CELLS}, got {_short(text)}")
    return [TOKENS[letter] for letter in letters]


def _short(text: str) -> str:
    return repr(text if len(text) <= 90 else text[:87] + "...")


def _split(text: str, line: int) -> list[str]:
    """The fields of a line of CSV."""
    try:
        return [field.strip() for field in next(csv.reader([text]))]
    except csv.Error as error:
        raise PairmiError(f"line {line}: expected a puzzle or a line of CSV, got {_short(text)} ({error})") from None


def _header(fields: list[str]) -> Columns | None:
    """The columns that a header names; None if it is not a header."""
    names = [field.lower() for field in fields]
    puzzle = next((n for n, name in enumerate(names) if name in PUZZLE_COLUMNS), None)
    solution = next((n for n, name in enumerate(names) if name in SOLUTION_COLUMNS), None)
    return None if puzzle is None else Columns(puzzle, solution)


def _field(fields: list[str], column: int, name: str, line: int) -> list[int]:
    """The 81 tokens in one column."""
    if column >= len(fields):
        raise PairmiError(f"line {line}: expected the {name} in column {column + 1}, got {len(fields)} columns")
    tokens = _parse(fields[column], line)
    if len(tokens) != 81:
        raise PairmiError(f"line {line}: expected 81 cells as {name}, got {len(tokens)}: {_short(fields[column])}")
    return tokens


def _csv(fields: list[str], columns: Columns, line: int) -> Record:
    """A puzzle, with its solution unless that is left out."""
    canvas = torch.tensor(_field(fields, columns.puzzle, "puzzle", line))
    if columns.solution is None or not "".join(fields[columns.solution : columns.solution + 1]):
        return Record(line, canvas, None)
    solution = torch.tensor(_field(fields, columns.solution, "solution", line))
    if bool((solution == EMPTY).any()):
        raise PairmiError(f"line {line}: expected a complete solution, got {int((solution == EMPTY).sum())} empty cells in it")
    wrong = torch.nonzero((canvas != EMPTY) & (canvas != solution))[:, 0].tolist()
    if wrong:
        given, said = int(canvas[wrong[0]]) + 1, int(solution[wrong[0]]) + 1
        raise PairmiError(f"line {line}: expected a solution of this puzzle, got {said} for the given {given} at {cell_name(wrong[0])}")
    if not bool(valid(solution[None])):
        raise PairmiError(f"line {line}: expected a solution that follows the rules, got a digit twice in a row, column or box")
    return Record(line, canvas, solution)


def read_puzzles(lines: Iterable[str]) -> Iterator[Record]:
    """Puzzles one by one, so that a file of any size needs no memory; blank lines and what follows a '#' are skipped.

    Read are 81 cells on a line, nine lines of nine cells (with or without lines drawn between them: '-' separates, it is no
    cell), and CSV with the puzzle and the solution in the first two columns, or in those that a header names.
    """
    columns, board, begun = Columns(), list[int](), 0
    for number, raw in enumerate(lines, 1):
        text = raw.lstrip("\ufeff").partition("#")[0].strip()
        if not text.strip(SEPARATORS):
            continue
        fields = _split(text, number)
        header = _header(fields)
        if header is not None and not board:
            columns = header
            continue
        one_column = len(fields) == 1 and columns.puzzle == 0
        tokens = _parse(fields[0], number) if one_column else []
        if board and len(tokens) != 9:
            raise PairmiError(f"line {number}: expected row {len(board) // 9 + 1} of the board begun on line {begun}, got {_short(text)}")
        if one_column and len(tokens) not in (9, 81):
            raise PairmiError(f"line {number}: expected 81 cells, or 9 for a row of a board ({CELLS}), got {len(tokens)}: {_short(text)}")
        if len(tokens) != 9:
            yield _csv(fields, columns, number)
            continue
        begun = begun if board else number
        board += tokens
        if len(board) == 81:
            yield Record(begun, torch.tensor(board), None)
            board = []
    if board:
        raise PairmiError(f"line {begun}: expected a board of 9 rows, got {len(board) // 9} before the end")


def to_board(tokens: Int[Tensor, " 81"], highlight: Collection[int] | None = None) -> str:
    """A board of nine lines with its boxes drawn; the cells in `highlight` (0..80) stand in brackets."""
    marked = set(highlight or ())
    if not marked <= set(range(81)):
        raise PairmiError(f"to_board: expected cells 0..80 to highlight, got {sorted(marked)}")
    cells = [f"[{letter}]" if n in marked else f" {letter} " for n, letter in enumerate(to_text(tokens))]
    rule = "+" + 3 * f"{'-' * 9}+"
    out = [rule]
    for row in range(9):
        boxes = ("".join(cells[start : start + 3]) for start in range(9 * row, 9 * row + 9, 3))
        out += [f"|{'|'.join(boxes)}|"] + [rule] * (row % 3 == 2)
    return "\n".join(out)
