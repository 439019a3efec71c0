from dataclasses import replace
from pathlib import Path

import pytest
import torch

import pairmi
from pairmi.backbones.checkpoint import load_tensors
from pairmi.backbones.transformer import Transformer
from pairmi.loading import head_file, load, with_head
from pairmi.types import PairmiError
from studies.former import taken_over


def test_a_head_is_taken_over_as_it_is(tmp_path: Path) -> None:
    model = load("sudoku")
    assert isinstance(model.backbone, Transformer)
    other = Transformer(model.backbone.config).eval()  # not the weights that the head was made for
    learnt = replace(model, backbone=other, head=None, tables=None, calibration=None, rule=None)
    with pytest.raises(PairmiError, match="weights"):
        with_head(learnt, head_file("sudoku"))
    file = taken_over(head_file("sudoku"), learnt, tmp_path)
    guided = with_head(learnt, file)
    assert file.stem == "former-sudoku-head"
    assert guided.calibration is None
    assert guided.rule is None
    (before, told), (after, _) = load_tensors(head_file("sudoku")), load_tensors(file)
    assert "calibration" in told
    assert all(torch.equal(before[name], after[name]) for name in before)
    assert (pairmi.mutual_information(learnt, 81 * ".", head=str(file)).matrix >= 0).all()
