"""Heads for anybody's backbone, at any size of the alphabet, wherever it lives."""

from dataclasses import replace

import pytest
import torch

import elsewhere
import pairmi
from elsewhere import DEVICE, Elsewhere, There
from heads import low_rank, pair_mlp
from pairmi.draw import Streams
from pairmi.loading import with_head
from pairmi.mi.head import LARGEST, LowRankConfig, LowRankHead, largest, row_chunks
from pairmi.mi.heads import reporting
from pairmi.mi.probe import Probe
from pairmi.model import Model
from pairmi.store import read_store
from pairmi.training.distill import Distill, DistillConfig, export_head, make_head
from pairmi.training.labels import label, make_labels
from pairmi.training.length_buckets import LengthBuckets
from pairmi.training.loop import fit
from pairmi.training.states import State
from pairmi.types import PairmiError, Prediction, Vocab

SIZES = {"inner": 12, "forms": 4, "rank": 4, "mixer": 8}


class Own(torch.nn.Module):
    """Somebody's network: any length, a single kind of hidden states, no word of layers."""

    length = None

    def __init__(self, symbols: int = 3, width: int = 12) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.vocab = Vocab(tuple(f"s{n}" for n in range(symbols)))
        self.embed = torch.nn.Embedding(symbols + 1, width)
        self.mix = torch.nn.GRU(width, width // 2, batch_first=True, bidirectional=True)
        self.out = torch.nn.Linear(width, symbols)
        self.requires_grad_(False).eval()

    def __call__(self, tokens: torch.Tensor) -> Prediction:
        hidden = 3 * self.mix(self.embed(tokens))[0]
        return Prediction(tokens, self.out(hidden).log_softmax(2), hidden)


class Weightless:
    """No module: it says itself who it is."""

    length, identity = 5, "weightless-1"

    def __init__(self, symbols: int = 3) -> None:
        self.own = Own(symbols)
        self.vocab = self.own.vocab

    def __call__(self, tokens: torch.Tensor) -> Prediction:
        return self.own(tokens)


class Masks:
    """Random sequences with half of them unknown."""

    def about(self) -> dict[str, str]:
        return {"name": "masks"}

    def draw(self, model: Model, seed: int, shard: int, count: int) -> list[State]:
        rng = torch.Generator().manual_seed(1000 * seed + shard)
        tokens = torch.randint(model.vocab.size, (count, 5), generator=rng)
        tokens[:, :3] = model.vocab.size
        return [State(row, "masks", "", f"{shard * count + n:08x}") for n, row in enumerate(tokens)]


@pytest.mark.parametrize("backbone", [Own(), Weightless(), Own(80)])
@pytest.mark.parametrize("kind", ["low-rank", "pair-mlp"])
def test_anybodys_backbone_gets_labels_a_head_and_a_decoding(backbone, kind, tmp_path) -> None:
    model = Model(backbone, "own")
    make_labels(model, Masks(), tmp_path / "labels", 60, probe=Probe(floor=0.0), shard=30, quiet=True)
    labels, settings = read_store(tmp_path / "labels")
    job = Distill(model, make_head(kind, model, [], SIZES, 0), [], labels, settings, DistillConfig(batch=16))
    schedule = {"steps": 8, "warmup": 1, "decay": 0.5, "save_every": 8, "evaluate_every": 8, "quiet": True}
    export_head(fit(job, tmp_path / "run", **schedule), tmp_path / "head.safetensors")
    ready = with_head(model, str(tmp_path / "head.safetensors"))
    tokens = torch.full((2, 5), model.vocab.size)
    found = pairmi.decode(ready, list(tokens), "mi-bound:budget=0.05")
    assert all(one.rows == one.passes and int(one.tokens.max()) < model.vocab.size for one in found)
    if kind == "low-rank":
        assert ready.head.config.symbols == (0 if model.vocab.size > 64 else model.vocab.size)


def test_hidden_states_beyond_float16_are_kept() -> None:
    class Loud(Own):
        def __call__(self, tokens: torch.Tensor) -> Prediction:
            quiet = super().__call__(tokens)
            return replace(quiet, hidden=1e6 * quiet.hidden)

    for backbone, rounded in ((Loud(), False), (Own(), True)):
        states = Masks().draw(Model(backbone), 0, 0, 4)
        labels = label(Model(backbone), states, Probe(floor=0.0))
        ((known, _, _),) = LengthBuckets(backbone, labels, half=True).among(torch.arange(4))
        assert torch.equal(known.hidden, backbone(labels.tokens).hidden) != rounded


def test_layers_are_for_those_who_offer_them() -> None:
    with pytest.raises(PairmiError, match=r"Own: offers no choice of layers \(no `reporting`\), got \[1\]; leave them out"):
        reporting(Own(), [1])


def test_a_backbone_without_hidden_states_is_refused() -> None:
    class Bare(Own):
        def __call__(self, tokens: torch.Tensor) -> Prediction:
            return replace(super().__call__(tokens), hidden=torch.zeros(*tokens.shape, 0))

    with pytest.raises(PairmiError, match=r"Bare reports no hidden states \(width 0\), and these are what a head reads"):
        make_head("low-rank", Model(Bare()), [], SIZES, 0)


@pytest.mark.parametrize("symbols", [3, 8, 5000])
def test_a_large_alphabet_is_shown_by_its_likeliest_symbols(symbols: int) -> None:
    log_probs = torch.randn(2, 6, symbols, generator=torch.Generator().manual_seed(0)).log_softmax(2)
    shown = largest(log_probs)
    assert shown.shape == (2, 6, LARGEST)
    true = log_probs.exp().sort(dim=2, descending=True).values[:, :, :LARGEST]
    torch.testing.assert_close(shown.exp()[:, :, : true.shape[2]], true)
    assert (shown.exp()[:, :, true.shape[2] :] == 0).all()
    torch.manual_seed(0)
    head = LowRankHead(LowRankConfig(12, 0, **SIZES))
    prediction = Prediction(torch.full((2, 6), symbols), log_probs, torch.randn(2, 6, 12))
    turned = replace(prediction, log_probs=log_probs.flip(2))  # which symbols they are does not count
    first, second = (head(one, Own(), Streams(0, torch.arange(2))) for one in (prediction, turned))
    torch.testing.assert_close(first, second, atol=1e-6, rtol=1e-5)  # entropies of large alphabets are sums in float32
    assert first.max() > 0


def predictions(count: int = 9, length: int = 40) -> Prediction:
    rng = torch.Generator().manual_seed(0)
    masked = torch.rand(count, length, generator=rng) < torch.rand(count, 1, generator=rng) * 1.3
    log_probs = torch.randn(count, length, 4, generator=rng).log_softmax(2)
    return Prediction(masked.long() * 4, log_probs, torch.randn(count, length, 16, generator=rng))


HEADS = {
    "plain": lambda: low_rank(length=40),
    "any length": lambda: low_rank(length=0),
    "hops": lambda: low_rank(length=40, hops=2),
    "large alphabet": lambda: low_rank(length=0, symbols=0, hops=1),
    "pair-mlp": pair_mlp,
}


@pytest.mark.parametrize("name", HEADS)
def test_a_head_gives_the_same_numbers_elsewhere_and_looks_back_once(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    prediction, head, looks = predictions(), HEADS[name]().requires_grad_(False), []
    here = head(prediction, Own(), Streams(0, torch.arange(9)))
    run, told = elsewhere._run, There.tolist

    def watched(func, args, kwargs):
        back = "_to_copy" in str(func) and isinstance(args[0], There) and kwargs.get("device") == elsewhere.HERE
        if back or "_local_scalar_dense" in str(func) or "nonzero" in str(func):
            looks.append(str(func))
        return run(func, args, kwargs)

    monkeypatch.setattr(elsewhere, "_run", watched)
    monkeypatch.setattr(There, "tolist", lambda self: looks.append("tolist") or told(self))
    with Elsewhere():
        there = head.to(DEVICE)(prediction.to(DEVICE), Own(), Streams(0, torch.arange(9)))
        assert isinstance(there, There)
        assert looks == ["tolist"]
        torch.testing.assert_close(there.cpu(), here, rtol=1e-5, atol=1e-6)


def test_rows_come_in_the_same_lots_elsewhere() -> None:
    queried = predictions().masked
    here = [(rows.tolist(), where.tolist()) for rows, where in row_chunks(queried)]
    with Elsewhere():
        there = [(rows.tolist(), where[: len(rows)].tolist()) for rows, where in row_chunks(queried.to(DEVICE))]
    assert {row: place for rows, places in here for row, place in zip(rows, places, strict=False)} == {
        row: place for rows, places in there for row, place in zip(rows, places, strict=True)
    }
