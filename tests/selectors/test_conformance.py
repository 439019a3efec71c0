"""Laws that every rule of the catalogue obeys: a new rule is tested here without a line being added."""

from dataclasses import is_dataclass

import pytest
import torch

from pairmi.backbones.transformer import TransformerConfig
from pairmi.commit import Sampling
from pairmi.decoding import iter_decode
from pairmi.model import Model
from pairmi.selectors.catalogue import CATALOGUE
from pairmi.spec import rule
from pairmi.tasks.tables import parity, permutations, random_table
from pairmi.types import Reason, Selector, Tokens
from rules import PAIRWISE, opinionated, partly_given, reckless, singly, varieties
from worlds import Linked, decode, generator, tabular

TABLE = Model(tabular(random_table(5, 3, generator(1), sparsity=0.4, sharpness=1.5)), task=Linked(torch.ones(5, 5).double().triu(3)))
WORLDS = {
    "table": TABLE,
    "permutations": Model(tabular(permutations(4))),
    "parity": Model(tabular(parity(5))),
    "transformer": opinionated(TransformerConfig("abcd", "._", length=7, width=16, depth=2, heads=2), attention=True),
}
SPECS = [spec for name in CATALOGUE for spec in varieties(name)]
CONTROLS = [f"{name}:mi={mi}" for name in PAIRWISE for mi in ("shuffled", "random", "structural")]
CASES = [(world, spec) for world in ("table", "transformer") for spec in SPECS]
CASES += [(world, name) for world in ("permutations", "parity") for name in CATALOGUE]
CASES += [("table", singly(reckless(name))) for name in CATALOGUE]
CASES += [("table", spec) for spec in CONTROLS] + [("transformer", f"{name}:mi=attention") for name in PAIRWISE]


def canvases(model: Model, rows: int = 5) -> Tokens:
    """From almost full to empty, consistent with the world where it has a support."""
    support = getattr(model.backbone, "support", None)
    if support is None:
        own = torch.randint(model.vocab.size, (rows, model.length), generator=generator(0))
    else:
        own = support[torch.randint(len(support), (rows,), generator=generator(0))]
    return partly_given(own, model.vocab.size)


@pytest.mark.parametrize("name", CATALOGUE)
def test_a_catalogue_entry_says_what_it_is(name: str) -> None:
    kind = CATALOGUE[name]
    assert is_dataclass(kind)
    assert kind.__dataclass_params__.frozen
    assert kind.__doc__.splitlines()[0].endswith(".")
    assert kind.reference
    assert isinstance(rule(name, TABLE), Selector)


@pytest.mark.parametrize("verify", [False, True])
@pytest.mark.parametrize(("world", "spec"), CASES)
def test_every_pass_fills_some_unknowns_and_explains_the_rest(world: str, spec: str, verify: bool) -> None:
    model = WORLDS[world]
    tokens = start = canvases(model)
    unknown = (start == model.vocab.size).sum(1)
    passes = torch.zeros_like(unknown)
    for step in iter_decode(model, start, rule(spec, model), Sampling(seed=1, verify=verify)):
        before, masked, chosen = tokens[step.rows], tokens[step.rows] == model.vocab.size, step.waiting.reason == Reason.FILLED
        assert not (chosen & ~masked).any()
        assert not (step.committed & ~chosen).any()
        assert step.committed.any(1).all()
        assert torch.equal(step.tokens != before, step.committed)
        assert torch.equal(step.drafted, chosen.sum(1))
        reason = step.waiting.reason
        assert torch.equal(reason == Reason.GIVEN, ~masked)
        blocker = step.waiting.blocker
        assert torch.equal(blocker >= 0, reason == Reason.DEPENDENT)
        assert chosen.gather(1, blocker.clamp_min(0))[blocker >= 0].all()
        assert not step.waiting.amount.isnan().any()
        tokens = tokens.index_copy(0, step.rows, step.tokens)
        passes[step.rows] = step.passes
    assert not (tokens == model.vocab.size).any()
    assert torch.equal(tokens[start != model.vocab.size], start[start != model.vocab.size])
    assert (passes <= (2 if verify else 1) * unknown).all()  # a rejected draft costs the next prediction again
    assert (passes >= 1).all()


@pytest.mark.parametrize(("verify", "greedy"), [(False, False), (True, False), (True, True)])
@pytest.mark.parametrize("world", ["table", "transformer"])
@pytest.mark.parametrize("spec", [spec for name in CATALOGUE for spec in dict.fromkeys((name, reckless(name)))])
def test_a_row_is_the_same_alone_in_any_batch_and_in_any_order(world: str, spec: str, verify: bool, greedy: bool) -> None:
    model, sampling = WORLDS[world], Sampling(seed=5, verify=verify, greedy=greedy)
    tokens, selector = canvases(model), rule(spec, model)
    whole = decode(model, tokens, selector, sampling)
    order = torch.tensor([3, 0, 1, 4, 2])
    shuffled = decode(model, tokens[order], selector, sampling, index=order, batch_size=3)
    alone = decode(model, tokens[[2, 4]], selector, sampling, index=torch.tensor([2, 4]), batch_size=1)
    for part, place in ((shuffled, order), (alone, torch.tensor([2, 4]))):
        assert torch.equal(part.tokens, whole.tokens[place])
        assert torch.equal(part.passes, whole.passes[place])
        assert torch.equal(part.rows, whole.rows[place])


@pytest.mark.parametrize("verify", [False, True])
@pytest.mark.parametrize("spec", CATALOGUE)
def test_the_seed_decides(spec: str, verify: bool) -> None:
    model = WORLDS["transformer"]
    tokens = torch.full((4, 7), 4)
    first, again, other = (decode(model, tokens, rule(spec, model), Sampling(seed, verify=verify)).tokens for seed in (0, 0, 1))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
    assert len(first.unique(dim=0)) > 1  # each row has its own stream


@pytest.mark.parametrize("spec", [*CATALOGUE, *CONTROLS])
def test_the_choice_is_made_row_by_row(spec: str) -> None:
    model = TABLE
    selector, sampling = rule(spec, model), Sampling(seed=2)
    tokens = canvases(model)
    steps = list(iter_decode(model, tokens, selector, sampling))
    for number in (2, 4):
        together = [step for step in steps if number in step.rows]
        single = list(iter_decode(model, tokens[[number]], selector, sampling, torch.tensor([number])))
        assert len(together) == len(single)
        for many, one in zip(together, single, strict=True):
            place = int((many.rows == number).nonzero()[0, 0])
            for field in ("tokens", "committed", "drafted", "passes", "evaluated", "probe_rows"):
                assert torch.equal(getattr(many, field)[place], getattr(one, field)[0])
            for field in ("reason", "blocker", "amount"):
                assert torch.equal(getattr(many.waiting, field)[place], getattr(one.waiting, field)[0])
