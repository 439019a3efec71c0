from collections import Counter

import numpy as np
import pytest
import torch

from pairmi.loading import load
from pairmi.model import Model
from pairmi.tasks.protein.fasta import Record, read_proteins
from pairmi.training.states import ProteinStates, States, family_name, length_of
from pairmi.types import PairmiError
from proteins import family_members, opinionated_weights, write_fasta

RULES = ("top-k:k=4", "eb:budget=8")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Model:
    return load(opinionated_weights(tmp_path_factory.mktemp("weights") / "p.safetensors"))


@pytest.fixture(scope="module")
def states(tmp_path_factory: pytest.TempPathFactory) -> ProteinStates:
    file = write_fasta(tmp_path_factory.mktemp("data") / "p.fasta", family_members(12, 6))
    return ProteinStates(read_proteins(file), rules=RULES)


def test_states_are_a_function_of_seed_and_shard(model: Model, states: ProteinStates) -> None:
    assert isinstance(states, States)
    first, again, other, later = (states.draw(model, seed, shard, 10) for seed, shard in ((0, 0), (0, 0), (1, 0), (0, 1)))
    assert [(s.tokens.tolist(), s.source, s.rule, s.grid) for s in first] == [(s.tokens.tolist(), s.source, s.rule, s.grid) for s in again]
    for different in (other, later):
        assert not {tuple(s.tokens.tolist()) for s in first} & {tuple(s.tokens.tolist()) for s in different}


def test_a_shard_has_one_length_both_sources_and_no_state_twice(model: Model, states: ProteinStates) -> None:
    drawn = states.draw(model, 0, 3, 20)
    assert {len(state.tokens) for state in drawn} == {length_of(map(len, (record.text for record in states.records)), 0, 3)}
    assert len({tuple(state.tokens.tolist()) for state in drawn}) == len(drawn) == 20
    assert Counter(state.source for state in drawn)["generating"] == 8
    assert {state.rule for state in drawn} == {"", *RULES}
    for state in drawn:
        assert 2 <= int((state.tokens == 20).sum()) < len(state.tokens)  # a pair to measure, and not the same empty canvas in two parts


def test_masked_sequences_are_named_by_their_family(model: Model, states: ProteinStates) -> None:
    families = {family_name(record.cluster): record.cluster for record in states.records}
    for state in states.draw(model, 0, 0, 12):
        if state.source == "generating":
            assert state.grid not in families
            continue
        shown = [(n, letter) for n, letter in enumerate(model.vocab.decode(state.tokens)) if letter != "."]
        members = [r.text for r in states.records if r.cluster == families[state.grid] and len(r.text) == len(state.tokens)]
        assert any(all(text[n] == letter for n, letter in shown) for text in members)


def test_lengths_come_as_often_as_among_the_sequences() -> None:
    lengths = [10] * 50 + [20] * 30 + [30] * 20
    for shards, error in ((10, 0.11), (200, 0.02)):
        found = Counter(length_of(lengths, 5, shard) for shard in range(shards))
        assert np.allclose([found[length] / shards for length in (10, 20, 30)], [0.5, 0.3, 0.2], atol=error)


def test_large_families_do_not_drown_the_small(model: Model) -> None:
    records = [Record(f"p{n}", f"p{n} cluster=big", "ACDEFGHIKLMN") for n in range(90)]
    records += [Record(f"q{n}", f"q{n} cluster=small{n}", "MNPQRSTVWYAC") for n in range(10)]
    drawn = ProteinStates(records, generating=0.0).draw(model, 0, 0, 200)
    share = sum(state.grid == family_name("big") for state in drawn) / 200
    assert share == pytest.approx(90**0.5 / (90**0.5 + 10), abs=0.12)


def test_the_settings_know_the_sequences(states: ProteinStates) -> None:
    about = states.about()
    assert (about["name"], about["sequences"], about["rules"]) == ("protein", 72, RULES)
    assert ProteinStates(states.records[1:]).about()["fingerprint"] != about["fingerprint"]


def test_too_few_different_states_are_refused(model: Model) -> None:
    with pytest.raises(PairmiError, match=r"sequences of 3 residues give \d different states, 30 are wanted; give more or longer seq"):
        ProteinStates([Record("p", "p", "ACD")], generating=0.0).draw(model, 0, 0, 30)


def test_tokens_are_those_of_the_model(model: Model, states: ProteinStates) -> None:
    assert all(int(state.tokens.min()) >= 0 and int(state.tokens.max()) <= 20 for state in states.draw(model, 2, 0, 6))
    assert states.draw(model, 2, 0, 6)[0].tokens.dtype == torch.long
