"""Heads in files, and what `load`, rules, the public functions and the command line make of them."""

import json
from dataclasses import asdict
from pathlib import Path

import pytest
import torch

import pairmi
from heads import SHAPE, low_rank, pair_mlp, save_head, tiny
from pairmi import api
from pairmi.backbones.checkpoint import fingerprint, load_tensors, save_tensors
from pairmi.backbones.identity import identify
from pairmi.cli import main
from pairmi.draw import Streams
from pairmi.loading import EMBEDDED, HEAD_FILE, HEADED, equip, load, with_head
from pairmi.mi.heads import UNTRAINED
from pairmi.mi.probe import Probe
from pairmi.mi.proxies import Shuffled
from pairmi.model import Model
from pairmi.selectors.charge import Calibration
from pairmi.spec import rule
from pairmi.types import PairmiError, Prediction

MODEL = tiny()
STEEP = Calibration(-3.0, ((-5.0, 0.0), (-5.0, 0.0), (-5.0, 1.0), (0.0, 2.0), (0.0, 4.0)), ((2.0,), (1.0,), (0.5,), (0.7,), (-0.6,)))
TUNED = {"rule": "mi-bound:charge=calibrated,budget=0.2", "limit": 0.5}


@pytest.fixture
def files(tmp_path: Path) -> tuple[str, str]:
    """A backbone and a head that reads two of its layers."""
    save_tensors(tmp_path / "tiny.safetensors", MODEL.backbone.state_dict(), {"shape": asdict(SHAPE)})
    return str(tmp_path / "tiny.safetensors"), save_head(tmp_path / "head.safetensors", low_rank(layers=2), MODEL, (1, 2))


def test_a_head_comes_back_as_it_was_with_its_layers(files: tuple[str, str]) -> None:
    model = load(files[0], head=files[1])
    assert identify(model) == identify(MODEL)
    tokens = torch.full((3, 8), 4)
    prediction = model(tokens)
    assert prediction.hidden.shape == (3, 8, 32)
    matrix = model.head(prediction, model, Streams(0, torch.arange(3)))
    torch.testing.assert_close(matrix, low_rank(layers=2).estimate(MODEL.backbone.reporting([1, 2])(tokens)).detach().double())
    assert load(files[0]).head is None


def test_a_pair_mlp_too(tmp_path: Path) -> None:
    model = with_head(MODEL, save_head(tmp_path / "mlp", pair_mlp(), MODEL))
    assert model.head(model(torch.full((1, 8), 4)), model, Streams(0, torch.arange(1))).shape == (1, 8, 8)


def test_rules_take_the_head_if_there_is_one(files: tuple[str, str]) -> None:
    bare, guided = load(files[0]), load(files[0], head=files[1])
    assert isinstance(rule("mi-bound", bare).mi, Probe)
    assert rule("mi-bound", guided).mi is guided.head
    assert rule("mi-guided:mi=head", guided).mi is guided.head
    assert isinstance(rule("mi-bound:mi=probe", guided).mi, Probe)
    assert rule("mi-bound:floor=0.5", guided).mi == Probe(floor=0.5)  # who speaks of the floor means the probe
    assert rule("mi-bound:mi=shuffled", guided).mi == Shuffled(guided.head)
    assert isinstance(rule("mi-bound:mi=shuffled", bare).mi.mi, Probe)
    with pytest.raises(PairmiError, match=r"mi=head: model .* has no head; load\(..., head=FILE\), or choose another mi"):
        rule("mi-bound:mi=head", bare)


def test_decoding_with_a_head_costs_no_probes(files: tuple[str, str]) -> None:
    out = pairmi.decode(load(files[0], head=files[1]), ["........"] * 3, "mi-bound:mi=head,budget=0.5")
    assert all(set(one.text) <= set("abcd") and one.rows == one.passes for one in out)


def test_mutual_information_by_a_head(files: tuple[str, str]) -> None:
    model = load(files[0])
    several = pairmi.mutual_information(model, ["a.......", "abcd...."], head=files[1])
    one = pairmi.mutual_information(model, "a.......", head=files[1])
    assert torch.equal(one.matrix, several[0].matrix)
    assert one.rows == 1
    assert one.bound.isinf().all()  # an estimate certifies nothing
    assert one.conditional_entropies is one.asymmetry is one.inconsistency is None
    assert one.entropies[0] == 0
    assert len(one.strongest(3)) == 3
    with pytest.raises(PairmiError, match="has no head; load"):
        api.estimated(model, torch.full((1, 8), 4))


def test_the_command_line_knows_heads(files: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    common = ["mi", "--backbone", files[0], "--canvas", "a......."]
    assert main([*common, "--mi", "head", "--head", files[1], "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["mi"] == "head"
    assert told["results"][0]["bound"] is None
    assert main([*common, "--mi", "head", "--head", files[1]]) == 0
    assert "1 rows evaluated; an estimate" in capsys.readouterr().out
    assert main([*common, "--mi", "head"]) == 2
    assert "has no head" in capsys.readouterr().err
    assert main(["decode", "--backbone", files[0], "--canvas", "a.......", "--head", files[1], "--rule", "mi-bound:mi=head"]) == 0


def test_a_head_for_other_weights_is_refused(files: tuple[str, str]) -> None:
    other = tiny(seed=1)
    with pytest.raises(
        PairmiError, match=rf"was made for weights {identify(MODEL)}, but model 'tiny' has {identify(other)}; load the back"
    ):
        with_head(other, files[1])


def test_what_is_no_head_is_refused(files: tuple[str, str], tmp_path: Path) -> None:
    with pytest.raises(PairmiError, match=r"holds no head \(its description says kind=None\); train one with 'pairmi train head'"):
        with_head(MODEL, files[0])
    with pytest.raises(PairmiError, match="holds no head"):
        with_head(MODEL, save_head(tmp_path / "odd", low_rank(), MODEL, head="odd"))
    with pytest.raises(PairmiError, match="do not fit its own description; fetch or train it again"):
        with_head(MODEL, save_head(tmp_path / "wrong", low_rank(), MODEL, config=low_rank(rank=2).about()))
    with pytest.raises(PairmiError, match="no file at"):
        with_head(MODEL, str(tmp_path / "absent"))


def test_every_model_in_the_package_brings_its_head_unless_a_layer_is_asked_for() -> None:
    assert {"sudoku", "protein"} <= set(EMBEDDED) <= set(HEADED)
    for name in EMBEDDED:
        model = load(name)
        assert model.head is not None
        assert load(name, layer=1).head is None
        assert load(name, layer=1).backbone.layers == (1,) != model.backbone.layers


class Nameless:
    """A backbone by which nothing can be known."""

    vocab, length = MODEL.vocab, 8

    def __call__(self, tokens: torch.Tensor) -> Prediction:
        return MODEL(tokens)


def test_a_backbone_is_known_by_weights_table_or_identity() -> None:
    assert identify(load("sudoku4")) == identify(load("sudoku4")) != identify(load("xor"))
    assert identify(Model(MODEL.backbone)) == identify(MODEL.backbone)
    with pytest.raises(PairmiError, match=r"Nameless: has neither weights nor a table .*; give it an attribute `identity`"):
        identify(Nameless())
    named = Nameless()
    named.identity = "mine-1"
    assert identify(Model(named)) == "mine-1"


def test_the_heads_in_the_package_say_when_a_canvas_is_outside() -> None:
    told = {name: load(name).head.trained_on for name in EMBEDDED}
    assert {name: about.lengths for name, about in told.items()} == {"sudoku": (81, 81), "protein": (50, 100)}
    protein = load("protein")
    assert "trained on 50 to 100 positions, this canvas has 10" in protein.head.outside(protein.vocab.encode("MKT....VLA")[None])
    assert protein.head.outside(torch.full((1, 60), 20)) is None
    assert load("sudoku").head.outside(torch.full((1, 81), 9)) is None
    assert low_rank().outside(torch.full((1, 3), 4)) is None  # nothing is known of it


def test_a_head_brings_the_rule_that_it_was_tuned_to(files: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    before, _ = load_tensors(Path(files[1]))
    equip(Path(files[1]), Path(files[1]), STEEP, TUNED)
    after, about = load_tensors(Path(files[1]))  # which checks the new checksum
    assert fingerprint(after) == fingerprint(before)
    assert about["rule"] == TUNED
    model = load(files[0], head=str(Path(files[1]).parent))  # a folder is a head, too
    assert model.calibration == STEEP
    assert repr(model).endswith("with a head, tuned to mi-bound:charge=calibrated,budget=0.2)")
    filled = pairmi.decode(model, "." * 8)
    assert filled.text == pairmi.decode(model, "." * 8, TUNED["rule"]).text
    assert filled.passes == pairmi.decode(model, "." * 8, TUNED["rule"]).passes != pairmi.decode(model, "." * 8, "mi-guided").passes
    command = ["decode", "--backbone", files[0], "--canvas", "." * 8, "--json"]
    assert main([*command, "--head", files[1]]) == 0
    said = capsys.readouterr()
    assert json.loads(said.out)["rule"] == TUNED["rule"]
    assert said.err == "pairmi decode: by mi-bound:charge=calibrated,budget=0.2, to which the model was tuned\n"
    assert main(command) == 0
    said = capsys.readouterr()
    assert (json.loads(said.out)["rule"], said.err) == ("mi-guided", "")


def test_a_head_can_lose_its_calibration(files: tuple[str, str]) -> None:
    equip(Path(files[1]), Path(files[1]), STEEP, TUNED)
    equip(Path(files[1]), Path(files[1]), None, {"rule": "eb"})
    model = load(files[0], head=files[1])
    assert (model.calibration, model.rule) == (None, "eb")
    with pytest.raises(PairmiError, match=r"expected a head and a specification under 'rule', got .*tiny\.safetensors and \['rule'\]"):
        equip(Path(files[0]), Path(files[0]), None, {"rule": "eb"})


def test_a_file_without_tensors_has_a_calibration_and_a_rule_for_probes(tmp_path: Path) -> None:
    about = {"kind": "head", "head": UNTRAINED, "backbone": identify(MODEL), "rule": TUNED, "calibration": STEEP.about()}
    save_tensors(tmp_path / HEAD_FILE, {}, about)
    model = with_head(MODEL, str(tmp_path))
    assert model.head is None
    assert isinstance(rule(model.rule, model).mi, Probe)
    assert pairmi.decode(model, "." * 8).probe_rows > 0
