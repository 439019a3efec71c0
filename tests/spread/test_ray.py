"""Units on a real Ray on this machine."""

import io
import os
import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
import ray

from heads import RandomStates, tiny
from jobs import XOR, Drifting, Nowhere, Patient, Squares, Touchy, squares, units
from pairmi.cli import main
from pairmi.commands.engine import results_alone
from pairmi.mi.probe import Probe
from pairmi.model import Model
from pairmi.spread.local import Local
from pairmi.spread.ray import WINDOW, Ray
from pairmi.spread.units import Engine, Outcome
from pairmi.training.labels import make_labels
from pairmi.types import PairmiError

pytestmark = pytest.mark.usefixtures("cluster")


def contents(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.glob("*.parquet")}


def make(folder: Path, engine: Engine) -> dict[str, bytes]:
    make_labels(tiny(), RandomStates(), folder, 40, seed=3, probe=Probe(floor=0.02), shard=4, engine=engine, quiet=True)
    return contents(folder)


def test_every_engine_gives_the_same_bytes(tmp_path: Path) -> None:
    expected = make(tmp_path / "local", Local())
    assert len(expected) == 10
    for workers in (1, 2, 4):
        assert make(tmp_path / str(workers), Ray(workers)) == expected


def test_outcomes_are_in_order_units_are_taken_as_needed_and_what_fails_is_named() -> None:
    taken = 0

    def watched() -> Iterator[Any]:
        nonlocal taken
        for unit in units(60):
            taken += 1
            yield unit

    outcomes: list[Outcome] = []
    for outcome in Ray(2).run(Squares(bad=(4, 100), pause=0.01), watched()):
        outcomes.append(outcome)
        assert taken - len(outcomes) < WINDOW * 2
    assert squares(outcomes) == [n**2 for n in range(180) if n not in (4, 100)]
    assert [str(failure) for outcome in outcomes for failure in outcome.failures] == [
        "number 4: ZeroDivisionError: 4 is bad",
        "number 100: ZeroDivisionError: 100 is bad",
    ]
    processes = {process for outcome in outcomes for _, process in outcome.value}
    assert len(processes) == 2
    assert os.getpid() not in processes


def test_as_they_come_a_long_one_holds_up_no_other(tmp_path: Path) -> None:
    count = 3 * WINDOW * 2  # more than may wait for the first

    def broken() -> Iterator[Any]:
        yield from units(count, size=1)
        raise PairmiError("line 25: no canvas")

    stream = Ray(2).run(Patient(count - 1, tmp_path), broken(), in_order=False)
    values = [outcome.value for outcome in islice(stream, count)]
    assert sorted(values) == list(range(count))
    assert values[0] != 0
    with pytest.raises(PairmiError, match="line 25: no canvas"):
        next(stream)


def test_a_worker_that_is_killed_is_replaced_and_nothing_is_lost_or_done_twice(tmp_path: Path) -> None:
    outcomes = list(Ray(2).run(Squares(deadly=(7,), dead=tmp_path), units(20)))
    assert squares(outcomes) == [n**2 for n in range(60)]
    assert (tmp_path / "7").exists()


def test_a_unit_that_kills_every_worker_is_given_up(capsys: pytest.CaptureFixture[str]) -> None:
    with results_alone() as file:
        outcomes = list(Ray(1).run(Squares(deadly=(4,)), units(4)))
        print("our own", file=file)
    assert capsys.readouterr().out == "our own\n"  # Ray prints a lot about its dead
    assert [outcome.unit.start for outcome in outcomes] == [0, 3, 6, 9]
    assert outcomes[1].value is None
    assert str(outcomes[1].failures[0]).startswith(f"{outcomes[1].unit.name}: its worker died, in 4 attempts (")
    assert squares(outcomes) == [n**2 for n in range(12) if n not in (3, 4, 5)]


def test_workers_with_another_backbone_are_refused() -> None:
    table: Any = XOR.backbone
    drifting = Drifting(table.support, table.weights, table.vocab.symbols)
    assert len(list(Local().run(Squares(drifting), units(1, backbone=drifting)))) == 1
    with pytest.raises(
        PairmiError, match=r"^worker: its backbone is \w+, but squares/seed0/0-3/\w+ was cut for another one; let all workers"
    ):
        list(Ray(1).run(Squares(drifting), units(1, backbone=drifting)))


def test_an_error_in_the_units_comes_after_what_was_before_it() -> None:
    def broken() -> Iterator[Any]:
        yield from units(3)
        raise PairmiError("line 4: no canvas")

    stream = Ray(1).run(Squares(pause=0.05), broken())
    assert squares([next(stream) for _ in range(3)]) == [n**2 for n in range(9)]
    with pytest.raises(PairmiError, match="line 4: no canvas"):
        next(stream)


def test_a_defect_of_the_job_ends_the_run() -> None:
    with pytest.raises(ray.exceptions.RayTaskError, match="AttributeError: 'NoneType' object has no attribute 'exists'"):
        list(Ray(1).run(Squares(deadly=(0,), dead=Nowhere()), units(1)))


def test_decoding_is_the_same_as_here(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    lines = ["1" + "." * 15, "." * 16, "11" + "." * 14, "." * 12 + "4321", "." * 15 + "2"] * 3
    printed = []
    for engine in (["--engine", "local"], ["--engine", "ray", "--workers", "1"]):
        monkeypatch.setattr("sys.stdin", io.StringIO("\n".join(lines)))
        arguments = ["--canvas", "-", "--backbone", "sudoku4", "--rule", "mi-bound", "--batch", "2", "--skip-invalid", "--json", "--trace"]
        assert main(["decode", *arguments, *engine]) == 1  # some were skipped
        printed.append(capsys.readouterr())
    assert printed[0] == printed[1]
    assert printed[0].out.count('"canvas"') == 12


@pytest.mark.parametrize("engine", [["--engine", "local"], ["--engine", "ray", "--workers", "1"]])
def test_a_canvas_that_cannot_be_decoded_is_named_and_the_exit_says_so(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, engine: list[str]
) -> None:
    table: Any = XOR.backbone
    touchy = Model(Touchy(table.support, table.weights, table.vocab.symbols), "touchy")
    monkeypatch.setattr("pairmi.commands.decode.load", lambda *names, **options: touchy)
    monkeypatch.setattr("sys.stdin", io.StringIO("1..\n2..\n12.\n"))
    assert main(["decode", "--canvas", "-", "--rule", "sequential", "--greedy", "--json", *engine]) == 1
    out, error = capsys.readouterr()
    assert out.count('"canvas"') == 2
    assert out.endswith("]}\n")
    assert error.splitlines() == [
        "pairmi decode: failed standard input, line 2: RuntimeError: the first position must not be 1",
        "pairmi decode: 1 could not be done, named above; everything else is finished",
    ]


def test_impossible_engines_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(PairmiError, match=r"Ray\(workers=0, gpus_per_worker=0.0\): expected at least one worker and no less than 0 GPUs"):
        Ray(0)
    assert main(["decode", "--backbone", "xor", "--canvas", "...", "--workers", "2"]) == 2
    assert capsys.readouterr().err == "pairmi decode: --workers and --gpus-per-worker are for --engine ray\n"


def test_without_ray_the_remedy_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(PairmiError, match=r"engine: ray is missing; pip install 'pairmi\[ray\]'"):
        list(Ray(1).run(Squares(), units(1)))
