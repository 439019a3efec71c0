"""Tables through embeddings: what decoding computes, what is learnt from, and where the embeddings come from."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

import foreign
import pairmi
from heads import tiny
from pairmi.backbones.checkpoint import save_tensors
from pairmi.backbones.identity import identify
from pairmi.bench.exact import evaluate
from pairmi.commit import Sampling
from pairmi.counting import Counting
from pairmi.info import kl
from pairmi.loading import load, with_tables
from pairmi.mi.embedded_tables import EmbeddedConfig, EmbeddedTables
from pairmi.model import Model
from pairmi.selectors.top_k import TopK
from pairmi.selectors.wrappers import Coupled
from pairmi.spec import rule
from pairmi.tasks.tables import random_table
from pairmi.training.loop import export, fit
from pairmi.types import PairmiError
from studies import embedded_training as embedded
from studies.embedded_training import EmbeddedTraining, abridged, divergence, make_embedded, moved
from worlds import decode, generator, same_in_every_batch, tabular, unknown

MODEL = tiny()
CANVASES = torch.where(torch.rand(9, 8, generator=generator(1)) < 0.8, 4, 1)
SIZES = {"inner": 12, "forms": 3, "form_rank": 2, "reach": 3, "hidden": 10, "channels": 3, "pooled": 8}
TRAINING = EmbeddedTraining(batch=6, lots=8, judged=2, turns=1, lengths=(8, 8), masked=(0.6, 1.0))


def made(embeddings: torch.Tensor | None = None, **changes: Any) -> EmbeddedTables:
    """Tables that say something."""
    torch.manual_seed(0)
    known = {"embedding": 6, "learnt": True} if embeddings is None else {"embedding": embeddings.shape[1]}
    head = EmbeddedTables(EmbeddedConfig(**{"width": 16, "symbols": 4} | SIZES | known | changes), embeddings)
    torch.nn.init.normal_(head.shift.weight)
    return head.requires_grad_(False)


def job(folder: Path, model: Model = MODEL) -> embedded.FitEmbedded:
    sequences = list(torch.randint(model.vocab.size, (16, 8), generator=generator(2)))
    found = make_embedded(model, [2], sequences, TRAINING)
    found.read_labels(folder / "labels")
    return found


def test_training_computes_what_decoding_does(tmp_path: Path) -> None:
    """All prefixes at once by running pools, and one member after the other; the loss is the divergence from the model's conditionals."""
    head, one = made(), job(tmp_path)
    sets, tokens, meter = one.lots[0], one.canvases(one.train, 0), Counting(MODEL)
    state = head.begin(meter(tokens), sets.members, meter)
    with torch.no_grad():
        nats = divergence(head, sets, moved(head, sets))
    count, every, at = sets.members.shape[1], torch.arange(6), 0
    for rank in range(count - 1):
        state = head.after(state, torch.full((6,), rank), sets.drawn[:, rank], meter)
        tokens = tokens.scatter(1, sets.members[:, [rank]], sets.drawn[:, [rank]])
        truth = meter(tokens).log_probs
        for later in range(rank + 1, count):
            lost = kl(truth[every, sets.members[:, later]], head.shifted(state, torch.full((6,), later)))
            assert torch.allclose(lost.float(), nats[:, at], atol=5e-3)  # hidden states are kept in half precision
            at += 1
    assert at == nats.shape[1]
    assert float(nats.max()) > 0.1


def test_of_a_large_alphabet_the_likeliest_symbols_are_kept_and_the_rest_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedded, "KEPT", 12)
    monkeypatch.setattr(embedded, "OTHERS", 4000)
    before, after = torch.randn(2, 1, 3, 40, generator=generator(0)).mul(2).log_softmax(-1)
    symbols, was, became, others = abridged(before, after, generator(1))
    assert torch.allclose(torch.stack([was, became]).exp().sum(-1), torch.ones(2, 1, 3), atol=1e-5)
    assert not (symbols[:, :, :, None] == others[:, :, None]).any()
    head = made(symbols=40)
    ranks, padded = torch.arange(3)[None], [torch.nn.functional.pad(x, (0, 1), value=-80.0) for x in (before, after)]
    known = (torch.zeros(1, 3, 16), torch.zeros(1, 3, 2), torch.zeros(1, 3), ranks, ranks)
    whole = embedded.Filled(*known, torch.arange(40).expand(1, 3, -1), *padded, torch.zeros(1, 3, 1).int())
    some = replace(whole, symbols=symbols, before=was, after=became, others=others)
    by = torch.randn(1, 3, 6, generator=generator(3))
    full = kl(after, torch.log_softmax(before + by @ head.embeddings.t(), dim=-1)).float()
    assert torch.allclose(divergence(head, whole, by), full, atol=1e-4)
    near = divergence(head, some, by)
    assert bool((near < full + 0.02).all())  # what is put together can only hide a difference
    assert bool((near > 0.5 * full).all())


def test_it_learns_and_comes_back_from_its_file(tmp_path: Path) -> None:
    one = job(tmp_path)
    assert one.evaluate()["explained"] == pytest.approx(0, abs=1e-6)  # it begins as the marginals
    file = fit(one, tmp_path / "run", steps=40, warmup=5, decay=0.5, save_every=40, evaluate_every=40, quiet=True)
    assert one.evaluate()["explained"] > 0.1
    export(file, tmp_path / "tables.safetensors", "tables")
    model = with_tables(MODEL, tmp_path / "tables.safetensors")
    assert rule("top-k:k=3,draw=coupled", model) == Coupled(TopK(3), model.tables)
    assert torch.equal(model.tables.shift.weight, one.head.shift.weight)
    with pytest.raises(PairmiError, match="defer needs draw=coupled and learnt tables, which know what they lose"):
        rule("top-k:draw=coupled,defer=0.1", model)
    again = make_embedded(MODEL, [1], one.train, TRAINING)
    with pytest.raises(PairmiError, match=r"train tables: .*lot--002.safetensors was made in another way"):
        again.read_labels(tmp_path / "labels")


def test_embeddings_are_the_models_own_where_it_has_them(tmp_path: Path) -> None:
    model = load(foreign.made("letters", tmp_path))
    head = make_embedded(model, None, [torch.zeros(8, dtype=torch.long)], TRAINING).head
    assert head.config.layers == 2
    assert "embeddings" not in head.state_dict()  # they stay with the model
    own = model.backbone.network.get_output_embeddings().weight
    assert torch.allclose(head.embeddings * own.square().mean().sqrt(), own[list(model.backbone.translation.ids.values())], atol=0.02)
    saved = {"kind": "tables", "head": "embedded", "config": head.about(), "layers": [1, 3], "backbone": identify(model)}
    save_tensors(tmp_path / "tables.safetensors", head.state_dict(), saved)
    assert torch.equal(with_tables(model, tmp_path / "tables.safetensors").tables.embeddings, head.embeddings)
    with pytest.raises(PairmiError, match="expected embeddings of the backbone's, or learnt=True; got both or neither"):
        EmbeddedTables(replace(head.config, learnt=True), head.embeddings)
    with pytest.raises(PairmiError, match=r"EmbeddedTables: expected 5 embeddings of 32 numbers, got \(4, 32\)"):
        EmbeddedTables(head.config, head.embeddings[:4])
    with pytest.raises(PairmiError, match="EmbeddedConfig: sizes must be >= 1"):
        replace(head.config, reach=0)
    with pytest.raises(PairmiError, match="offers no choice of layers; take exact tables, draw=probed"):
        make_embedded(Model(tabular(random_table(4, 3, generator(3)))), None, [], TRAINING)


def test_what_a_symbol_does_alone_is_what_the_model_says(tmp_path: Path) -> None:
    """Its product with the embeddings is how log-probabilities move, but for what normalises them."""
    model = load(foreign.made("letters", tmp_path))
    one = job(tmp_path, model)
    head, size, span = one.head, model.vocab.size, 3
    empty = torch.full((1, 2 * span + 3), size)
    before, after = (model(x).log_probs[0] for x in (empty, empty.index_fill(1, torch.tensor([span + 1]), 2)))
    for distance in (-3, -1, 2):
        true = (after - before)[span + 1 + distance]
        said = head.embeddings @ head.alone[2, span + distance].float()
        assert float(true.abs().max()) > 0.05
        assert torch.allclose(true - true.mean(), said - said.mean(), atol=0.02)  # they are kept in half precision
    assert not head.alone[:, span].any()
    assert one.evaluate()["explained"] > 0.01  # what it lends helps before anything is learnt


def test_no_row_depends_on_its_batch() -> None:
    for verify in (False, True):
        selector, sampling = Coupled(TopK(5), made()), Sampling(3, verify=verify)
        whole = same_in_every_batch(MODEL, CANVASES, selector, sampling)
        assert not torch.equal(whole.tokens, decode(MODEL, CANVASES, TopK(5), sampling).tokens)


def test_verified_drafts_reproduce_the_joint_however_wrong_the_tables_are() -> None:
    world = tabular(random_table(4, 3, generator(3), sparsity=0.4, sharpness=2.0))
    selector = Coupled(TopK(4), made(width=world(unknown(world)).hidden.shape[2], symbols=3))
    assert evaluate(world, unknown(world)[0], selector, verify=True).kl < 1e-6  # the tables are in float32
    assert evaluate(world, unknown(world)[0], selector).kl > 0.01


def test_distances_in_a_block_are_those_of_the_canvas() -> None:
    """The block holds all that is unknown, at places that are apart in the canvas and side by side in its window."""
    model, canvas = replace(MODEL, tables=made()), torch.tensor([4, 1, 1, 1, 1, 4, 1, 4])
    whole, block = (pairmi.price(model, canvas, f"top-k:k=3,draw=coupled{options}").nats for options in ("", ",block=3"))
    assert whole == pytest.approx(block, abs=1e-6)
