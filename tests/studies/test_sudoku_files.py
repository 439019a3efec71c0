"""Everything that is read is read as the same tokens; everything else is refused with its line."""

import subprocess
import sys
import tracemalloc
from collections.abc import Iterator

import pytest
import torch

from pairmi.tasks.sudoku.rules import to_text
from pairmi.types import PairmiError
from studies.sudoku_files import Record, read_puzzles, to_board

PUZZLE = "53..7....6..195....98....6.8...6...34..8.3..17...2...6.6....28....419..5....8..79"
SOLUTION = "534678912672195348198342567859761423426853791713924856961537284287419635345286179"
ROWS = [PUZZLE[start : start + 9] for start in range(0, 81, 9)]
TOKENS = torch.tensor([9 if letter == "." else int(letter) - 1 for letter in PUZZLE])
SOLVED = torch.tensor([int(letter) - 1 for letter in SOLUTION])
BOARD = """\
+---------+---------+---------+
| 5  3  . | .  7  . | .  .  . |
| 6  .  . | 1  9  5 | .  .  . |
| .  9  8 | .  .  . | .  6  . |
+---------+---------+---------+
| 8  .  . | .  6  . | .  .  3 |
| 4  .  . | 8  .  3 | .  .  1 |
| 7  .  . | .  2  . | .  .  6 |
+---------+---------+---------+
| .  6  . | .  .  . | 2  8  . |
| .  .  . | 4  1  9 | .  .  5 |
| .  .  . | .  8  . | .  7  9 |
+---------+---------+---------+"""


def read(text: str) -> list[Record]:
    return list(read_puzzles(text.splitlines(keepends=True)))


@pytest.mark.parametrize("blank", ".0_*xX")
def test_every_sign_for_empty(blank: str) -> None:
    (record,) = read(PUZZLE.replace(".", blank))
    assert torch.equal(record.canvas, TOKENS)
    assert record.canvas.dtype == torch.long
    assert record.solution is None


@pytest.mark.parametrize(
    "text",
    [
        "\n".join(ROWS),
        "\n\n".join(ROWS),
        BOARD,
        BOARD.replace("  ", " "),
        "\n".join(f"{row[:3]}|{row[3:6]}|{row[6:]}" for row in ROWS),
        "\n".join(" ".join(row.replace(".", "0")) for row in ROWS),
        "\r\n".join(ROWS) + "\r\n",
        "\n---+---+---\n".join(ROWS),
        "\n===========\n".join(ROWS),
        "\n# between\n".join(ROWS),
        "\t".join(PUZZLE),
        f"\ufeff{PUZZLE}",
        f"  {PUZZLE}  # the usual example",
    ],
)
def test_every_way_to_write_one_board(text: str) -> None:
    (record,) = read(text)
    assert torch.equal(record.canvas, TOKENS)


@pytest.mark.parametrize(
    "text",
    [
        f"{PUZZLE},{SOLUTION}",
        f"puzzle,solution\n{PUZZLE},{SOLUTION}",
        f"quizzes,solutions\n{PUZZLE.replace('.', '0')},{SOLUTION}\n",
        f"id,puzzle,solution,clues,difficulty\n1,{PUZZLE},{SOLUTION},30,0.0",
        f'source,question,answer,rating\n"a, b",{PUZZLE},{SOLUTION},0',
        f"Solution, Puzzle\n{SOLUTION}, {PUZZLE}",
        f'"{PUZZLE}","{SOLUTION}"',
    ],
)
def test_csv_with_and_without_a_header(text: str) -> None:
    (record,) = read(text)
    assert torch.equal(record.canvas, TOKENS)
    assert torch.equal(record.solution, SOLVED)


@pytest.mark.parametrize("text", [f"puzzle\n{PUZZLE}", f"{PUZZLE},", f"puzzle,solution\n{PUZZLE},", f"puzzle,solution\n{PUZZLE}"])
def test_a_solution_may_be_left_out(text: str) -> None:
    (record,) = read(text)
    assert torch.equal(record.canvas, TOKENS)
    assert record.solution is None


def test_records_name_their_first_line_and_formats_may_follow_each_other() -> None:
    records = read(f"# a file\n\n{PUZZLE}\n{BOARD}\n{PUZZLE},{SOLUTION}\n\n{SOLUTION}\n")
    assert [record.line for record in records] == [3, 5, 17, 19]
    assert [record.solution is None for record in records] == [True, True, False, True]
    assert torch.equal(records[3].canvas, SOLVED)


@pytest.mark.parametrize("text", ["", "\n\n", "# nothing\n", "puzzle,solution\n", "+---+\n"])
def test_no_puzzles(text: str) -> None:
    assert read(text) == []


def test_lines_are_read_one_by_one() -> None:
    taken = 0

    def lines() -> Iterator[str]:
        nonlocal taken
        while True:
            taken += 1
            yield PUZZLE

    records = read_puzzles(lines())
    assert [next(records).line for _ in range(3)] == [1, 2, 3]
    assert taken == 3


def test_memory_does_not_grow_with_the_file() -> None:
    tracemalloc.start()
    for record in read_puzzles(f"{PUZZLE},{SOLUTION}\n" for _ in range(600)):
        if record.line == 300:
            tracemalloc.reset_peak()
            before = tracemalloc.get_traced_memory()[0]
    grown = tracemalloc.get_traced_memory()[1] - before
    tracemalloc.stop()
    assert record.line == 600
    assert grown < 100_000


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f"{PUZZLE}\n{PUZZLE[:80]}", r"line 2: expected 81 cells, or 9 for a row of a board \(.*\), got 80: '53"),
        (f"{PUZZLE}1", "line 1: expected 81 cells, .* got 82"),
        (PUZZLE.replace(".", "-"), "line 1: expected 81 cells, .* got 30"),
        (f"\n\n{PUZZLE[:80]}a", r"line 3: 'a' is not a Sudoku cell; expected 1-9, and \. _ 0 \* x X for empty, got '53"),
        ("hello, world", "line 1: 'h' is not a Sudoku cell"),
        ("\n".join(ROWS[:7]), "line 1: expected a board of 9 rows, got 7 before the end"),
        ("\n".join([*ROWS[:7], PUZZLE]), r"line 8: expected row 8 of the board begun on line 1, got '53\.\."),
        ("\n".join([*ROWS[:2], "53"]), "line 3: expected row 3 of the board begun on line 1, got '53'"),
        ("\n".join([*ROWS[:2], "puzzle,solution"]), "line 3: expected row 3 of the board"),
        (f"{PUZZLE},{SOLUTION[:80]}", "line 1: expected 81 cells as solution, got 80"),
        (f"{PUZZLE[:80]},{SOLUTION}", "line 1: expected 81 cells as puzzle, got 80"),
        (f"id,puzzle\n{PUZZLE}", "line 2: expected the puzzle in column 2, got 1 columns"),
        (f"{PUZZLE},{SOLUTION[:79]}..", "line 1: expected a complete solution, got 2 empty cells in it"),
        (f"{PUZZLE},{'4' + SOLUTION[1:]}", "line 1: expected a solution of this puzzle, got 4 for the given 5 at r1c1"),
        (f"{PUZZLE},{SOLUTION[:2] + '1' + SOLUTION[3:]}", "line 1: expected a solution that follows the rules, got a digit twice"),
        ("1" * 200_000, r"line 1: expected a puzzle or a line of CSV, got '1+\.\.\.' \(field larger"),
        ("1" * 500, r"line 1: .* got 500: '1{87}\.\.\.'$"),
    ],
)
def test_errors_say_the_line_what_was_expected_and_what_came(text: str, message: str) -> None:
    with pytest.raises(PairmiError, match=message):
        read(text)


def test_what_stands_before_an_error_is_read() -> None:
    records = read_puzzles([PUZZLE, "wrong"])
    assert next(records).line == 1
    with pytest.raises(PairmiError, match="line 2: 'w' is not"):
        next(records)


def test_text_and_board_are_read_back() -> None:
    assert to_text(TOKENS) == PUZZLE
    assert to_text(SOLVED) == SOLUTION
    assert to_board(TOKENS) == BOARD
    for text in (to_text(TOKENS), to_board(TOKENS), to_board(TOKENS, {0, 40, 80})):
        assert torch.equal(read(text)[0].canvas, TOKENS)


def test_highlighted_cells_stand_in_brackets() -> None:
    lines = to_board(TOKENS, [0, 1, 80]).splitlines()
    assert lines[1] == "|[5][3] . | .  7  . | .  .  . |"
    assert lines[11] == "| .  .  . | .  8  . | .  7 [9]|"
    assert {len(line) for line in lines} == {31}
    assert to_board(TOKENS, []) == BOARD


def test_errors_of_the_writers() -> None:
    with pytest.raises(PairmiError, match=r"Sudoku: expected 81 tokens of 0\.\.9 \(9 = empty\), got \[10, "):
        to_text(torch.full((81,), 10))
    with pytest.raises(PairmiError, match=r"expected 81 tokens of 0\.\.9 .*, got \[-1, "):
        to_board(torch.full((81,), -1))
    with pytest.raises(PairmiError, match=r"to_board: expected cells 0\.\.80 to highlight, got \[3, 81\]"):
        to_board(TOKENS, {81, 3})


@pytest.mark.usefixtures("unchecked")
def test_another_length_is_refused() -> None:
    with pytest.raises(PairmiError, match=r"expected 81 tokens of 0\.\.9 \(9 = empty\), got \[0, 0, 0\]"):
        to_text(torch.zeros(3, dtype=torch.long))


def test_numba_is_not_needed() -> None:
    code = "import sys; import pairmi.tasks.sudoku.rules; sys.exit('numba' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
