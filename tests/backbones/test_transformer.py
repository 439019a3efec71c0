from dataclasses import asdict
from pathlib import Path

import pytest
import torch

from pairmi.backbones.checkpoint import save_tensors
from pairmi.backbones.products import Rowwise
from pairmi.backbones.transformer import Transformer, TransformerConfig, attend
from pairmi.loading import load
from pairmi.types import Backbone, PairmiError

SMALL = TransformerConfig(symbols="abcde", length=12, width=32, depth=2, heads=4)


def transformer(config: TransformerConfig = SMALL, attention: bool = False) -> Transformer:
    """With random weights everywhere: a fresh one has zeros where it adds to the stream, and predicts the same everywhere."""
    torch.manual_seed(0)
    model = Transformer(config, attention).eval()
    for parameter in model.parameters():
        if parameter.ndim == 2:
            torch.nn.init.normal_(parameter, std=0.3)
    return model


def canvases(model: Transformer, rows: int, seed: int = 0) -> torch.Tensor:
    rng = torch.Generator().manual_seed(seed)
    return torch.randint(model.vocab.size + 1, (rows, model.length), generator=rng)


def test_the_default_is_smaller_than_the_papers() -> None:
    count = sum(parameter.numel() for parameter in Transformer(TransformerConfig()).parameters())
    assert count == 1_587_872
    assert count <= 4_158_346


def test_it_is_a_backbone_with_the_shapes_of_its_config() -> None:
    model = transformer()
    tokens = canvases(model, 3)
    prediction = model(tokens)
    assert isinstance(model, Backbone)
    assert (model.length, model.vocab.size, model.vocab.blanks) == (12, 5, "._0")
    assert prediction.tokens is tokens
    assert prediction.log_probs.shape == (3, 12, 5)
    assert prediction.hidden.shape == (3, 12, 32)
    assert prediction.attention is None
    assert torch.equal(prediction.masked, tokens == 5)
    assert [tuple(stream.shape) for stream in model.streams(tokens)] == [(3, 12, 32)] * 3


def test_the_sudoku_alphabet_reads_dots_underscores_and_zeros() -> None:
    vocab = Transformer(TransformerConfig(width=8, depth=1, heads=1)).vocab
    assert vocab.encode("1.9_0").tolist() == [0, 9, 8, 9, 9]


def test_log_probs_are_normalised_and_finite() -> None:
    model = transformer()
    for grad in (True, False):
        with torch.set_grad_enabled(grad):
            log_probs = model(canvases(model, 20)).log_probs
        assert log_probs.isfinite().all()
        assert (log_probs.exp().sum(-1) - 1).abs().max() < 1e-5


def test_a_fresh_model_knows_nothing() -> None:
    torch.manual_seed(1)
    model = Transformer(SMALL)
    log_probs = model(canvases(model, 4)).log_probs
    torch.testing.assert_close(log_probs, torch.full_like(log_probs, 1 / 5).log())


def test_every_position_sees_every_other() -> None:
    model = transformer()
    tokens = torch.full((1, 12), 5)
    with torch.inference_mode():
        before = model(tokens).log_probs
        for place in (0, 11):
            changed = tokens.clone()
            changed[0, place] = 2
            assert ((model(changed).log_probs - before).abs().amax(2) > 1e-6).all()


@pytest.mark.parametrize("config", [SMALL, TransformerConfig(width=64, depth=3), TransformerConfig()])
def test_a_row_does_not_depend_on_the_size_of_its_batch(config: TransformerConfig) -> None:
    model = transformer(config, attention=True)
    tokens = canvases(model, 64)
    with torch.inference_mode():
        alone = [model(row[None]) for row in tokens]
        for batch in (7, 64):
            together = [model(piece) for piece in tokens.split(batch)]
            for field in ("log_probs", "hidden", "attention"):
                whole = torch.cat([getattr(some, field) for some in together])
                assert torch.equal(whole, torch.cat([getattr(one, field) for one in alone]))


def test_a_row_does_not_depend_on_its_place_or_its_mates() -> None:
    model = transformer(TransformerConfig(depth=2))
    tokens = canvases(model, 40)
    order = torch.randperm(40, generator=torch.Generator().manual_seed(1))
    with torch.inference_mode():
        assert torch.equal(model(tokens[order]).log_probs, model(tokens).log_probs[order])
        mixed = torch.cat([tokens[:3], canvases(model, 10, seed=9)])
        assert torch.equal(model(mixed).log_probs[:3], model(tokens).log_probs[:3])


def test_training_and_inference_agree() -> None:
    model = transformer(TransformerConfig(width=64, depth=4))
    tokens = canvases(model, 9)
    training = model(tokens)
    with torch.no_grad():
        inference = model(tokens)
    assert training.log_probs.requires_grad
    assert not inference.log_probs.requires_grad
    torch.testing.assert_close(training.log_probs, inference.log_probs, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(training.hidden, inference.hidden, rtol=1e-5, atol=1e-5)


def test_the_linear_map_is_a_linear_map() -> None:
    torch.manual_seed(0)
    layer, x = Rowwise(6, 4, bias=False), torch.randn(3, 5, 6)
    plain = torch.einsum("bli,oi->blo", x, layer.weight)
    torch.testing.assert_close(layer(x), plain)
    with torch.no_grad():
        torch.testing.assert_close(layer(x), plain)
    assert layer.bias is None


def test_attention_written_out_is_the_fused_one() -> None:
    q, k, v = torch.randn(3, 5, 2, 7, 4, generator=torch.Generator().manual_seed(0))
    with torch.autocast("cpu", torch.bfloat16):
        written_out = attend(q, k, v)
    assert written_out.dtype == torch.bfloat16
    torch.testing.assert_close(written_out.float(), attend(q, k, v), rtol=0.02, atol=0.02)


def test_beliefs_are_in_float32_whatever_the_precision_of_the_blocks() -> None:
    model, tokens = Transformer(TransformerConfig(width=16, depth=2, heads=2)), torch.full((3, 81), 9)
    torch.nn.init.normal_(model.readout.weight)
    with torch.autocast("cpu", torch.bfloat16):
        log_probs = model(tokens).log_probs
    assert log_probs.dtype == torch.float32
    torch.testing.assert_close(log_probs.double().exp().sum(2), torch.ones(3, 81, dtype=torch.double), rtol=0, atol=1e-6)


def test_in_half_precision_the_linear_map_takes_the_whole_batch_at_once() -> None:
    layer, x = Rowwise(8, 5), torch.randn(3, 4, 8)
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
        assert torch.equal(layer(x), torch.nn.functional.linear(x, layer.weight, layer.bias))
        assert layer(x).dtype == torch.bfloat16


def test_reported_attention_is_the_attention_of_the_blocks() -> None:
    model, silent = transformer(attention=True), transformer()
    tokens = canvases(model, 4)
    prediction = model(tokens)
    attention = prediction.attention
    assert attention.shape == (4, 12, 12)
    assert (attention >= 0).all()
    torch.testing.assert_close(attention.sum(-1), torch.ones(4, 12))
    assert torch.equal(prediction.log_probs, silent(tokens).log_probs)  # to look changes nothing
    plain = torch.zeros(4, 12, 12)
    for block, x in zip(model.blocks, model.streams(tokens), strict=False):
        q, k, _ = block.queries_keys_values(x)
        weights = torch.softmax(torch.einsum("bhid,bhjd->bhij", q, k) / 8**0.5, -1)
        plain += weights.mean(1) / len(model.blocks)
    torch.testing.assert_close(attention, plain)


def test_queries_and_keys_have_unit_scale() -> None:
    model = transformer()
    q, k, _ = model.blocks[0].queries_keys_values(model.streams(canvases(model, 3))[0])
    assert (k.square().mean(-1) - 1).abs().max() < 1e-3
    assert (q.square().mean(-1).sqrt() - model.blocks[0].sharpness[:, :, 0]).abs().max() < 1e-3


def test_a_block_is_what_its_docstring_says() -> None:
    model = transformer()
    block, x = model.blocks[0], torch.randn(2, 12, 32, generator=torch.Generator().manual_seed(3))
    q, k, v = block.queries_keys_values(x)
    weights = torch.softmax(torch.einsum("bhid,bhjd->bhij", q, k) / 8**0.5, -1)
    y = x + torch.einsum("bhij,bhjd->bihd", weights, v).flatten(2) @ block.mix.weight.t()
    up = torch.nn.functional.layer_norm(y, (32,), block.mlp_norm.weight) @ block.up.weight.t()
    plain = y + (up * (1 + torch.erf(up / 2**0.5)) / 2) @ block.down.weight.t()
    torch.testing.assert_close(block(x), plain, rtol=1e-4, atol=1e-4)


def test_another_length_is_refused() -> None:
    with pytest.raises(PairmiError, match="Transformer: expected canvases of 12 positions, got 11"):
        transformer()(torch.zeros(2, 11, dtype=torch.long))


@pytest.mark.parametrize("wrong", [{"width": 30}, {"width": 0}, {"depth": 0}, {"heads": 0}, {"length": 0}])
def test_impossible_shapes_are_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(PairmiError, match=rf"sizes must be >= 1 and width a multiple of heads, got .*{next(iter(wrong))}"):
        TransformerConfig(**wrong)


def test_weights_that_were_trained_on_something_unknown_are_refused(tmp_path: Path) -> None:
    network, file = Transformer(TransformerConfig(width=8, depth=1, heads=1)), tmp_path / "strange.safetensors"
    save_tensors(file, network.state_dict(), {"shape": asdict(network.config), "corpus": {"name": "sudoko"}})
    with pytest.raises(PairmiError, match=r"was trained on 'sudoko', of which nothing is known here; did you mean 'sudoku'\?"):
        load(str(file))
