"""Labelling that is killed goes on and ends with the same bytes; also the command that the tests kill."""

import os
import random
import re
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch

sys.path.insert(0, str(Path(__file__).parents[1]))  # where `heads` is, for the process that is killed

from heads import SHAPE, RandomStates, labelled, sudoku, tiny
from pairmi.backbones.transformer import Transformer
from pairmi.cli import main
from pairmi.mi.probe import Probe
from pairmi.model import Model
from pairmi.spread.units import Incomplete
from pairmi.store import part_of, read_store, square, triangle
from pairmi.tasks.sudoku.rules import peers
from pairmi.training.labels import Effort, label, make_labels
from pairmi.training.states import State, SudokuStates
from pairmi.types import PairmiError, Prediction
from worlds import Linked

MODEL = tiny()


def make(folder: Path, pause: float = 0.0, count: int = 48, **changes: Any) -> None:
    options: dict[str, Any] = {"seed": 3, "probe": Probe(floor=0.02), "shard": 4, "quiet": True}
    make_labels(MODEL, RandomStates(pause), folder, count, **options | changes)


def contents(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.glob("*.parquet")}


def kill_often(folder: Path) -> None:
    """Start children, kill each at a random moment, say how many shards there are; let the last one finish."""
    chance = random.Random(0)
    for _ in range(8):
        child = os.fork()
        if not child:
            make(folder, pause=0.01)
            os._exit(0)
        time.sleep(chance.uniform(0.02, 0.15))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        print(len(contents(folder)), flush=True)
    make(folder)


def test_a_labelling_that_is_killed_ends_with_the_same_bytes(tmp_path: Path) -> None:
    run = subprocess.run(
        [sys.executable, __file__, str(tmp_path / "killed")],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    )
    assert run.returncode == 0, run.stderr
    done = [int(line) for line in run.stdout.splitlines()]
    assert len(done) == 8
    assert done == sorted(done)  # nothing finished is lost
    make(tmp_path / "whole")
    assert contents(tmp_path / "killed") == contents(tmp_path / "whole")
    found, _ = read_store(tmp_path / "killed")
    assert len(found) == 48
    assert len(set(found.grid)) == 48  # nothing was done twice (of the grids: little canvases may be equal by chance)


def test_finished_shards_are_left_alone_and_more_can_be_made(tmp_path: Path) -> None:
    make(tmp_path, count=6)
    before = {file: file.stat().st_mtime_ns for file in tmp_path.glob("*.parquet")}
    assert len(before) == 2
    make(tmp_path, count=8)
    make(tmp_path, count=12)
    assert all(file.stat().st_mtime_ns == moment for file, moment in before.items())
    assert len(contents(tmp_path)) == 3


def test_parts_share_the_work(tmp_path: Path) -> None:
    for k in (1, 0):
        make(tmp_path / "parts", count=20, part=(k, 2))
    make(tmp_path / "whole", count=20)
    assert contents(tmp_path / "parts") == contents(tmp_path / "whole")


@pytest.mark.parametrize(
    ("change", "name"),
    [({"seed": 4}, "seed"), ({"probe": Probe(floor=0.5)}, "floor"), ({"probe": Probe("kl", 0.02)}, "form"), ({"shard": 8}, "shard")],
)
def test_other_settings_are_refused(tmp_path: Path, change: dict[str, Any], name: str) -> None:
    make(tmp_path, count=4)
    with pytest.raises(PairmiError, match=rf"other weights or settings \(different: {name}\)"):
        make(tmp_path, **change)


def test_other_weights_are_refused(tmp_path: Path) -> None:
    make(tmp_path, count=4)
    with pytest.raises(PairmiError, match=r"other weights or settings \(different: backbone\); choose another --out"):
        make_labels(tiny(seed=1), RandomStates(), tmp_path, 8, seed=3, probe=Probe(floor=0.02), shard=4, quiet=True)


def test_labels_of_another_precision_are_refused(tmp_path: Path) -> None:
    make(tmp_path)
    half = Transformer(SHAPE, precision="bfloat16")
    half.load_state_dict(MODEL.backbone.state_dict())
    with pytest.raises(PairmiError, match="precision"):
        make_labels(Model(half, "tiny"), RandomStates(), tmp_path, 4, seed=3, probe=Probe(floor=0.02), shard=4, quiet=True)
    make_labels(Model(half, "tiny"), RandomStates(), tmp_path / "half", 4, seed=3, probe=Probe(floor=0.02), shard=4, quiet=True)
    (full, _), (lowered, about) = read_store(tmp_path, 4), read_store(tmp_path / "half")
    assert about["precision"] == "bfloat16"
    assert not torch.equal(full.mi[:4], lowered.mi)
    torch.testing.assert_close(full.mi[:4], lowered.mi, rtol=0.2, atol=0.01)


def test_impossible_requests_are_refused(tmp_path: Path) -> None:
    with pytest.raises(PairmiError, match="labels: expected at least one state and one in a shard, got 0 and 4"):
        make(tmp_path, count=0)
    with pytest.raises(PairmiError, match="labels: part 2/2 does not exist; expected 0/N to N-1/N"):
        make(tmp_path, part=(2, 2))


def test_labels_are_what_the_probe_says_of_each_state_alone() -> None:
    labels, _ = labelled(MODEL, 10)
    for row in range(10):
        alone = Probe(floor=0.0).measure(MODEL(labels.tokens[row : row + 1]), MODEL)
        torch.testing.assert_close(square(labels.mi[row : row + 1], 8), alone.matrix.float(), atol=1e-5, rtol=1e-4)
        assert int(labels.rows[row]) == 1 + int(alone.rows) == 1 + 4 * int(labels.masked[row])
    assert labels.bound.max() == 0


def test_pruned_labels_carry_their_certificate() -> None:
    states = RandomStates().draw(MODEL, 0, 0, 10)
    pruned, full = label(MODEL, states, Probe(floor=0.1)), label(MODEL, states, Probe(floor=0.0), together=3)
    assert 0 < pruned.bound.max() <= 0.2
    assert ((pruned.mi - full.mi).abs().amax(1) <= pruned.bound + 1e-6).all()
    assert (pruned.rows <= full.rows).all()


def test_a_few_positions_of_a_state_tell_what_they_share_with_all_others() -> None:
    states = RandomStates().draw(MODEL, 0, 0, 30)
    some, full = label(MODEL, states, Probe(floor=0.0), Effort(positions=2)), label(MODEL, states, Probe(floor=0.0))
    known, whole = some.known(MODEL.vocab.size), full.known(MODEL.vocab.size)
    open_, probed = full.masked, full.masked.clamp_max(2)
    assert torch.equal(known.sum(1), probed * (open_ - probed) + probed * (probed - 1) // 2)
    assert torch.equal(some.rows, 1 + 4 * probed)
    assert not (known & ~whole).any()
    assert some.mi[whole & ~known].isnan().all()
    assert (some.mi[~whole] == 0).all()
    off = (some.mi - full.mi).abs()
    assert (torch.where(known, off, 0).amax(1) <= some.bound + 1e-6).all()
    directed = Probe(floor=0.0).measure(MODEL(full.tokens), MODEL).directed  # one side of it, where the full probe takes the mean of both
    assert (some.mi[known] <= triangle(torch.maximum(directed, directed.transpose(1, 2)))[known] + 1e-5).all()
    assert off[known].mean() < 0.5 * full.mi[known].mean()
    assert (some.bound[open_ <= 2] == 0).all()  # all probed
    assert (some.bound[open_ > 2] > 0).all()


def test_which_positions_are_probed_depends_on_the_canvas_alone() -> None:
    states = RandomStates().draw(MODEL, 0, 0, 12)
    together, alone = (label(MODEL, states, Probe(floor=0.05), Effort(positions=2), together=n) for n in (12, 1))
    assert torch.equal(together.mi.isnan(), alone.mi.isnan())
    assert len({tuple(row) for row in together.mi.isnan().tolist()}) > 5


def test_only_the_grids_of_one_part_are_labelled(tmp_path: Path) -> None:
    make(tmp_path, shard=48, effort=Effort(part="test"))
    labels, settings = read_store(tmp_path)
    assert 0 < len(labels) < 20
    assert {part_of(grid) for grid in labels.grid} == {"test"}
    assert (settings["part"], settings["positions"]) == ("test", 0)
    with pytest.raises(PairmiError, match=r"other weights or settings \(different: part\)"):
        make(tmp_path, shard=48)


def test_impossible_efforts_are_refused() -> None:
    with pytest.raises(PairmiError, match=r"labels: expected positions >= 0 \(0 = all\), got -1"):
        Effort(-1)
    with pytest.raises(PairmiError, match="labels: none of 1 states is of a test grid; put more into a shard"):
        Effort(part="test").wanted([State(torch.zeros(8, dtype=torch.long), "uniform", "", "f" * 16)])


class Touchy(Transformer):
    """Cannot take canvases that end with six d."""

    def forward(self, tokens: torch.Tensor) -> Prediction:
        if bool((tokens[:, 2:] == 3).all(1).any()):
            raise RuntimeError("not so many d, please")
        return super().forward(tokens)


@dataclass(frozen=True)
class OneBad(RandomStates):
    """The second shard has a state that ends with six d, the third has none at all."""

    def draw(self, model: Model, seed: int, shard: int, count: int) -> list[State]:
        drawn = super().draw(model, seed, shard, count)
        if shard == 1:
            drawn[2].tokens[2:] = 3
        if shard == 2:
            raise KeyError("no states")
        return drawn


def test_a_state_that_cannot_be_labelled_is_named_and_the_other_shards_are_made(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    backbone = Touchy(SHAPE).eval().requires_grad_(False)
    backbone.load_state_dict(MODEL.backbone.state_dict())
    with pytest.raises(Incomplete, match="2 could not be done, named above; everything else is finished"):
        make_labels(Model(backbone), OneBad(), tmp_path, 16, seed=3, probe=Probe(floor=0.02), shard=4, quiet=True)
    assert sorted(contents(tmp_path)) == ["000000.parquet", "000003.parquet"]
    first, second = capsys.readouterr().err.splitlines()
    assert re.fullmatch(r"labels: labels-\w{8}/seed3/4-8/\w{16}: uniform canvas [.][.]dddddd: RuntimeError: not so many d, please", first)
    assert re.fullmatch(r"labels: labels-\w{8}/seed3/8-12/\w{16}: KeyError: 'no states'", second)


class OnceFull(Transformer):
    """Has room for a few rows only, at first."""

    refusals = 1

    def forward(self, tokens: torch.Tensor) -> Prediction:
        if len(tokens) > 8 and OnceFull.refusals:
            OnceFull.refusals -= 1
            raise RuntimeError("out of memory")
        return super().forward(tokens)


def test_a_shard_whose_halves_succeed_is_whole(tmp_path: Path) -> None:
    backbone = OnceFull(SHAPE).eval().requires_grad_(False)
    backbone.load_state_dict(MODEL.backbone.state_dict())
    make_labels(Model(backbone), RandomStates(), tmp_path / "halves", 16, seed=3, probe=Probe(floor=0.02), shard=16, quiet=True)
    make(tmp_path / "whole", shard=16, count=16)
    assert OnceFull.refusals == 0
    found, whole = read_store(tmp_path / "halves")[0], read_store(tmp_path / "whole")[0]
    assert len(found) == len(whole) == 16
    assert torch.equal(found.tokens, whole.tokens)
    torch.testing.assert_close(found.mi, whole.mi)


def test_a_deleted_shard_is_named_and_made_again(tmp_path: Path) -> None:
    make(tmp_path, count=12)
    before = contents(tmp_path)
    (tmp_path / "000001.parquet").unlink()
    with pytest.raises(PairmiError, match=r"has lost 000001\.parquet; repeat the 'pairmi labels' that made it"):
        read_store(tmp_path)
    make(tmp_path, count=12)
    assert contents(tmp_path) == before
    assert len(read_store(tmp_path)[0]) == 12


def test_an_out_that_cannot_be_written_is_refused_before_the_work(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setattr("pairmi.commands.labels.load", lambda *what, **how: pytest.fail("loaded"))
    assert main(["labels", "--out", str(tmp_path / "file"), "--states", "4", "--backbone", "sudoku"]) == 2
    assert "is no folder that can be written" in capsys.readouterr().err


def test_sudoku_states_are_labelled(tmp_path: Path) -> None:
    model = Model(sudoku().backbone, task=Linked(peers()))
    states = SudokuStates(rules=("top-k:k=30",))
    make_labels(model, states, tmp_path, 8, probe=Probe(floor=1.0), shard=8, quiet=True)
    found, settings = read_store(tmp_path)
    assert set(found.source) == {"uniform", "solving", "generating"}
    assert settings["states"]["rules"] == ["top-k:k=30"]
    assert found.mi.shape == (8, 3240)


def test_the_command_line_refuses_what_is_no_part_and_no_sudoku(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    common = ["labels", "--out", str(tmp_path), "--states", "4"]
    assert main([*common, "--part", "x", "--backbone", "sudoku4"]) == 2
    assert "--part x: expected K/N, such as 0/2" in capsys.readouterr().err
    assert main([*common, "--backbone", "sudoku4"]) == 2
    assert "sudoku4 is no 9x9 Sudoku model and none of proteins or of text; states can be drawn for these only" in capsys.readouterr().err


if __name__ == "__main__":
    torch.set_num_threads(1)
    kill_often(Path(sys.argv[1]))
