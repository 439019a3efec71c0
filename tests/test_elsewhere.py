"""Decoding, probing and heads on another device than the CPU: nothing is misplaced, and the host waits once a pass."""

from pathlib import Path

import pytest
import torch

import pairmi
from elsewhere import DEVICE, WAITED, Elsewhere
from pairmi.backbones.transformer import Transformer, TransformerConfig
from pairmi.commit import Sampling
from pairmi.counting import Counting
from pairmi.decoding import iter_decode
from pairmi.draw import Streams
from pairmi.loading import load
from pairmi.mi.probe import Probe
from pairmi.model import Model, device_of
from pairmi.selectors.catalogue import CATALOGUE
from pairmi.spec import rule
from pairmi.types import PairmiError, Prediction, Tokens
from rules import opinionated, partly_given, reckless
from worlds import Linked, generator

SHAPE = TransformerConfig("abcd", "._", length=9, width=16, depth=2, heads=2)
CANVASES = partly_given(torch.randint(4, (6, 9), generator=generator(0)), 4)
MODES = {
    "drawn": {},
    "greedy": {"greedy": True},
    "verified": {"verify": True},
    "verified-greedy": {"verify": True, "greedy": True, "accept": 0.3},
}
MEMORY = {"klass": "klass:threshold=0.2,drift=5,history=1"}


def spec_of(name: str) -> str:
    """A setting in which several positions are filled at once, with exact MI where the rule looks at pairs."""
    if "mi" in CATALOGUE[name].__dataclass_fields__:
        return f"{name}:mi=probe,floor=0"
    return MEMORY.get(name) or reckless(name).replace("=16", "=3")


def moved(model: Model) -> Model:
    """A fresh copy of the network, over there."""
    there = Transformer(model.backbone.config)
    there.load_state_dict(model.backbone.state_dict())
    return Model(there.eval().requires_grad_(False).to(DEVICE), task=Linked(torch.ones(9, 9).double()))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", CATALOGUE)
def test_every_rule_decodes_elsewhere_as_here(name: str, mode: str) -> None:
    here, spec = opinionated(SHAPE), spec_of(name)
    expected = pairmi.decode(here, CANVASES, spec, seed=1, **MODES[mode])
    with Elsewhere():
        there = moved(here)
        assert device_of(there).type == DEVICE
        found = pairmi.decode(there, CANVASES, spec, seed=1, steps=True, **MODES[mode])
        text = pairmi.decode(there, [here.vocab.decode(CANVASES[-1])], spec, index=[5], seed=1, **MODES[mode])
    assert [one.text for one in found] == [one.text for one in expected]
    assert [(one.passes, one.rows, one.probe_rows) for one in found] == [(one.passes, one.rows, one.probe_rows) for one in expected]
    assert text[0].text == expected[5].text
    assert all(one.tokens.device.type == "cpu" for one in found)


@pytest.mark.parametrize("commit", ["all", "one"])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", CATALOGUE)
def test_the_host_waits_once_a_pass(name: str, mode: str, commit: str) -> None:
    """With MI that is there: once for what was chosen, and under verification once more for what was right."""
    spec = spec_of(name).replace("mi=probe,floor=0", "mi=structural")
    sampling = Sampling(1, **MODES[mode])
    with Elsewhere():
        there = moved(opinionated(SHAPE))
        steps = iter_decode(there, CANVASES, rule(f"{spec}{',' if ':' in spec else ':'}commit={commit}", there), sampling)
        next(steps)  # moves the canvases there
        for _ in range(3):
            WAITED.clear()
            if next(steps, None) is None:
                break
            assert len(WAITED) <= 1 + sampling.verify, WAITED


@pytest.mark.parametrize("form", ["joint", "kl", "entropy"])
def test_probes_measure_elsewhere_what_they_measure_here(form: str) -> None:
    here = opinionated(SHAPE)
    expected = pairmi.mutual_information(here, CANVASES, form=form)
    with Elsewhere():
        there = moved(here)
        found = pairmi.mutual_information(there, CANVASES, form=form)
        meter = Counting(there)
        prediction = meter(CANVASES.to(DEVICE))
        WAITED.clear()
        Probe(form, 0.0, 4)(prediction, meter, Streams(0, torch.arange(6)))
        assert meter.calls > 20
        assert len(WAITED) <= 4, WAITED  # to learn what is to be probed, not for each call
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one.matrix, other.matrix, atol=1e-5, rtol=1e-3)  # products are taken otherwise there
        assert one.matrix.device.type == "cpu"


@pytest.mark.parametrize("name", ["sudoku4", "markov"])
def test_exact_worlds_move_too(name: str) -> None:
    expected = pairmi.decode(load(name), load(name).length * ".", "mi-bound:mi=probe")
    with Elsewhere():
        assert pairmi.decode(load(name, device=DEVICE), load(name).length * ".", "mi-bound:mi=probe").text == expected.text


def test_the_embedded_models_and_their_heads_move(tmp_path: Path) -> None:
    canvas = "53..7....6..195....98....6.8...6...34..8.3..17...2...6.6....28....419..5....8..79"
    for rule_ in ("mi-guided", "mi-bound:mi=structural"):
        expected = pairmi.decode(load("sudoku"), canvas, rule_, greedy=True)
        with Elsewhere():
            model = load("sudoku", device=DEVICE)
            found = pairmi.decode(model, canvas, rule_, greedy=True)
        assert (found.text, found.passes) == (expected.text, expected.passes)


class Nonsense:
    """A backbone over there whose predictions are not normalised."""

    vocab, length = opinionated(SHAPE).vocab, None

    def __call__(self, tokens: Tokens) -> Prediction:
        return Prediction(tokens, torch.zeros(*tokens.shape, 4, device=tokens.device), torch.zeros(*tokens.shape, 1, device=tokens.device))


@pytest.mark.parametrize("mode", MODES)
def test_what_is_not_normalised_is_refused_there_as_well(mode: str) -> None:
    with Elsewhere(), pytest.raises(PairmiError, match=r"^Nonsense: log-probabilities of row 0, position 0 sum to 4, expected 1"):
        pairmi.decode(Model(Nonsense(), device=torch.device(DEVICE)), 9 * ".", "top-k", **MODES[mode])


def test_a_backbone_that_answers_from_somewhere_else_is_told_what_to_do() -> None:
    class Lost(Nonsense):
        def __call__(self, tokens: Tokens) -> Prediction:
            return super().__call__(tokens.to(DEVICE))

    with (
        Elsewhere(),
        pytest.raises(PairmiError, match=r"^Lost: was given tokens on cpu and answers on lazy.*pairmi\.Model\(backbone, device='lazy"),
    ):
        pairmi.decode(Lost(), 9 * ".", "top-k")
