"""The page about protein design, made of small structures; an interrupted run goes on where it stopped."""

import json
import runpy
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch
from torch import Tensor

from pairmi.backbones.checkpoint import load_tensors
from pairmi.commit import Sampling
from pairmi.decoding import decode
from pairmi.loading import load
from pairmi.mi.probed_tables import ProbedTables
from pairmi.selectors.wrappers import Coupled
from pairmi.spec import rule
from pairmi.types import Meter, PerRow, Prediction, State
from structures import cut

EXPERIMENT = Path(__file__).parents[1] / "experiments" / "protein_design.py"


def run(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> None:
    monkeypatch.syspath_prepend(EXPERIMENT.parent)  # as Python does for a script
    monkeypatch.setattr(sys, "argv", [str(EXPERIMENT), *arguments])
    runpy.run_path(str(EXPERIMENT), run_name="__main__")


def test_parts_one_after_the_other_make_the_page_and_a_head(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, records, out = tmp_path / "pdb", tmp_path / "records.jsonl", tmp_path / "docs" / "design.md"
    folder.mkdir()
    cut(folder / "one.pdb", A=(53, 60))
    cut(folder / "two.pdb", A=(90, 98))
    command = [
        "--folder",
        str(folder),
        "--work",
        str(tmp_path / "work"),
        "--states",
        "12",
        "--exact",
        "12",
        "--shard",
        "6",
        "--records",
        str(records),
    ]
    command += [
        "--out",
        str(out),
        *["--steps", "20", "--every", "1", "--calibrating", "4", "--designs", "2", "--round", "2", "--table", "one", "--proteins", "16"],
    ]
    for part in ("labels", "heads", "settings", "prices"):
        run(monkeypatch, *command, "--part", part)
    assert not out.exists()
    kept = records.read_text()
    run(monkeypatch, *command)
    text = out.read_text()
    assert records.read_text().startswith(kept)  # nothing was measured again
    for words in ("The aim was at most 12 passes", "2 structures", ", verified", "Noise floor", "| sequential ", "R2 and mean absolute"):
        assert words in text
    assert "so a price is another number:\n\n| rule" in text
    lines = [line for line in records.read_text().splitlines(keepends=True) if json.loads(line)["settings"]["what"] != "price"]
    priced = [line for line in records.read_text().splitlines(keepends=True) if '"temperature": 1.0' in line]
    (tmp_path / "warm.jsonl").write_text("".join(lines + priced))
    run(monkeypatch, *command, "--page", "--records", str(tmp_path / "warm.jsonl"), "--out", str(tmp_path / "warm.md"))
    assert "so a price is another number; it was not measured." in (tmp_path / "warm.md").read_text()
    for figure in ("design_prices", "design_table"):
        assert (out.parent / "figures" / f"{figure}.png").read_bytes().startswith(b"\x89PNG")
    head = tmp_path / "proteinmpnn-head.safetensors"
    run(monkeypatch, *command, "--page", "--ship", str(head))
    assert "calibration" in load_tensors(head)[1]
    assert load("proteinmpnn", structure=folder / "one.pdb", head=str(head)).calibration is not None
    folds = [load_tensors(tmp_path / f"records-head-{fold}.safetensors")[1]["trained_on"]["lengths"] for fold in (0, 1)]
    assert folds == [[9, 9], [8, 8]]  # each has learnt from the other fold alone


@dataclass(frozen=True)
class AtOnce:
    """Exact tables of every symbol of every member of one canvas, in one call, before anything is drawn."""

    calls: list[int]

    def begin(self, prediction: Prediction, members: Tensor, backbone: Meter) -> State:
        size, count = backbone.vocab.size, members.shape[1]
        rows = prediction.tokens.repeat_interleave(count * size, 0)
        rows[torch.arange(count * size), members[0].repeat_interleave(size)] = torch.arange(size).repeat(count)
        self.calls.append(len(rows))
        moved = backbone(rows).log_probs[:, members[0]].double()
        return dict(ProbedTables().begin(prediction, members, backbone)) | {"tables": moved.view(1, count, size, count, size)}

    def after(self, state: State, rank: PerRow, symbol: PerRow, backbone: Meter) -> State:
        shift = state["tables"][0, rank, symbol] - state["log_probs"]
        return dict(state) | {"low": torch.minimum(state["low"], shift), "high": torch.maximum(state["high"], shift)}

    def shifted(self, state: State, rank: PerRow) -> Tensor:
        return ProbedTables().shifted(state, rank)


def test_tables_of_all_symbols_in_a_second_call_a_set_draw_what_exact_tables_draw(tmp_path: Path) -> None:
    model = load("proteinmpnn", structure=cut(tmp_path / "one.pdb", A=(53, 61)))
    empty = torch.full((9,), model.vocab.size)
    for seed in range(3):
        calls: list[int] = []
        (ours,) = decode(model, [empty], Coupled(rule("top-k:k=4", model), AtOnce(calls)), Sampling(seed))
        (theirs,) = decode(model, [empty], rule("top-k:k=4,draw=probed", model), Sampling(seed))
        assert ours.text == theirs.text
        assert (ours.passes, theirs.passes, theirs.probe_rows, calls) == (3, 3, 6, [80, 80, 20])
