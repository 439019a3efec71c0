"""One head for ProteinMPNN over several structures: labels, training that leaves structures out, loading."""

import json
from pathlib import Path

import pytest
import torch

import pairmi
from pairmi.backbones.proteinmpnn_features import ALONG, BASES
from pairmi.cli import main
from pairmi.loading import load
from pairmi.mi.head import LowRankConfig, LowRankHead
from pairmi.mi.heads import related
from pairmi.mi.probe import Probe
from pairmi.store import read_store, square
from pairmi.training.states import family_name
from pairmi.training.structures import load_structures, without
from pairmi.types import PairmiError
from structures import cut

NAMES = ("one", "three", "two")
SIZES = ["--inner", "16", "--forms", "4", "--rank", "4", "--mixer", "8"]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with structures, two of them of one length, labels for them and a head that has not seen `two`."""
    folder = tmp_path_factory.mktemp("structures")
    (folder / "pdb").mkdir()
    for name, span in zip(NAMES, ((53, 60), (70, 79), (90, 97)), strict=True):
        cut(folder / "pdb" / f"{name}.pdb", A=span)
    assert main(["labels", *structures(folder), "--out", str(folder / "labels"), "--states", "18", "--shard", "6", "--floor", "0"]) == 0
    train = ["train", "head", *structures(folder), "--labels", str(folder / "labels"), "--leave-out", "two", "--layers", "0", "3", *SIZES]
    assert main([*train, "--run", str(folder / "run"), "--steps", "30", "--batch", "8", "--out", str(folder / "head.safetensors")]) == 0
    return folder


def structures(folder: Path) -> list[str]:
    return ["--structures", str(folder / "pdb")]


def test_each_shard_is_of_one_structure_and_is_what_its_model_says(made: Path) -> None:
    found, settings = read_store(made / "labels")
    assert settings["length"] is None
    assert sorted(settings["states"]["structures"]) == sorted(NAMES)
    assert len(found) == 18
    for name in NAMES:
        model = load("proteinmpnn", structure=made / "pdb" / f"{name}.pdb")
        mine = found.pick(torch.tensor([n for n, grid in enumerate(found.grid) if grid == family_name(name)]))
        assert len(mine) == 6
        assert set(mine.source) == {"uniform", "generating"}
        tokens = mine.tokens[:, : model.length]
        true = Probe(floor=0.0).measure(model(tokens), model).matrix.clamp_min(0).float()
        told = square(mine.mi, mine.tokens.shape[1])[:, : model.length, : model.length]
        torch.testing.assert_close(told, true, atol=1e-5, rtol=1e-4)


def test_a_structure_that_is_left_out_is_validated_on_and_not_learnt_from(made: Path) -> None:
    found, _ = read_store(made / "labels")
    train, held_out = without(found, ["two"], load_structures(made / "pdb"))
    assert held_out is not None
    assert set(held_out.grid) == {family_name("two")}
    assert set(train.grid) == {family_name("one"), family_name("three")}
    assert without(found, [], {}) == (found, None)
    with pytest.raises(PairmiError, match=r"--leave-out four: no such structure; give --structures"):
        without(found, ["two", "four"], load_structures(made / "pdb"))


def test_the_head_learns_over_structures_and_is_loaded_for_any(made: Path) -> None:
    log = [json.loads(line) for line in (made / "run" / "log.jsonl").read_text().splitlines()]
    found, _ = read_store(made / "labels")
    _, held_out = without(found, ["two"], load_structures(made / "pdb"))
    assert held_out is not None
    assert log[-1]["mae"] < float(held_out.mi[held_out.known(20)].mean())  # what saying 0 everywhere comes to
    other = cut(made / "other.pdb", A=(53, 64))
    model = load("proteinmpnn", structure=other, head=str(made / "head.safetensors"))
    estimate = pairmi.mutual_information(model, "." * 12, head=str(made / "head.safetensors")).matrix
    assert estimate.shape == (12, 12)
    assert 0 < float(estimate.max()) < 3
    out = pairmi.decode(model, "." * 12, rule="mi-bound:budget=0.2", seed=1)
    assert out.passes < 12


def test_the_head_is_that_of_its_structure_by_what_it_says_of_pairs(made: Path) -> None:
    """Two structures of one length: the same canvas, hidden states and beliefs, and still another answer."""
    models = load_structures(made / "pdb")
    one, two = models[family_name("one")], models[family_name("two")]
    torch.manual_seed(0)
    head = LowRankHead(LowRankConfig(128, 20, relations=one.backbone.relation_width, inner=8, forms=2, rank=2))
    prediction = one(torch.full((3, 8), 20))
    first, second = (related(head, model).estimate(prediction) for model in (one, two))
    assert not torch.allclose(first, second)
    partly = one(torch.where(torch.arange(8) < 6, 20, 3).expand(3, 8))  # some known: other shapes inside, the same pairs
    assert torch.equal(related(head, one).estimate(partly)[0] > 0, pairs(6) > 0)
    with pytest.raises(PairmiError, match="reads what a backbone knows of pairs, and none has told it"):
        head.estimate(prediction)


def pairs(count: int) -> torch.Tensor:
    known = (torch.arange(8) < count).double()
    return torch.outer(known, known).fill_diagonal_(0)


def test_relations_are_edges_distances_and_steps(made: Path) -> None:
    backbone = load("proteinmpnn", structure=cut(made / "long.pdb", A=(53, 120))).backbone
    rows = torch.tensor([5, 40])
    found = backbone.relations(rows)
    assert found.shape == (2, 68, backbone.relation_width)
    edges, near, along = found.split([128, BASES, ALONG], dim=2)
    linked = (edges != 0).any(2)
    assert linked.sum(1).tolist() == [48, 48]  # more than 48 residues: some exchange no message
    assert torch.equal(edges[0, backbone.near[5, 7]], backbone.links[5, 7])
    assert torch.equal(near[0, 40], near[1, 5])
    assert along[0, :12].argmax(1).tolist() == [4, 4, 3, 2, 1, 0, 1, 2, 3, 4, 4, 4]
    chains = load("proteinmpnn", structure=cut(made / "chains.pdb", A=(53, 56), B=(57, 60))).backbone
    assert int(chains.relations(torch.tensor([3]))[0, 4, -ALONG:].argmax()) == ALONG - 1  # the next residue, but of another chain


def test_a_folder_without_structures_is_named(tmp_path: Path) -> None:
    with pytest.raises(PairmiError, match=r"structures: no PDB files in .*; expected \*\.pdb"):
        load_structures(tmp_path)
