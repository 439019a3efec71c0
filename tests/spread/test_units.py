from itertools import count, islice

import pytest
import torch

from heads import RandomStates, tiny
from jobs import XOR, Squares, squares, units
from pairmi.backbones.identity import identify
from pairmi.backbones.tabular import Tabular
from pairmi.counting import Counting
from pairmi.loading import load
from pairmi.mi.probe import Probe
from pairmi.model import Model
from pairmi.spread.local import Local
from pairmi.spread.placed import from_here, placed
from pairmi.spread.units import (
    Engine,
    Failure,
    Incomplete,
    Job,
    Outcome,
    Unit,
    Worker,
    backbone_hash,
    bisect_failures,
    settled,
    task_name,
)  # fmt: skip
from pairmi.training.labels import Labelling
from pairmi.types import PairmiError
from worlds import Incoherent


def test_a_name_says_everything_that_a_unit_depends_on() -> None:
    unit = Unit("labels-0123abcd", 3, 256, 512, "f" * 16)
    assert unit.name == f"labels-0123abcd/seed3/256-512/{'f' * 16}"
    assert len(unit) == 256
    settings = {"floor": 0.1, "form": "kl"}
    names = {task_name("labels", settings | change) for change in ({}, {"floor": 0.2}, {"form": "joint"})}
    assert len(names) == 3
    assert task_name("labels", settings) == task_name("labels", dict(reversed(settings.items())))


def test_a_backbone_is_known_by_its_weights_or_its_table() -> None:
    model = tiny()
    assert backbone_hash(model) == backbone_hash(Counting(model)) == identify(model) != backbone_hash(tiny(seed=1))
    assert isinstance(XOR.backbone, Tabular)
    other = Tabular(XOR.backbone.support, torch.tensor([1.0, 1, 1, 2]), XOR.vocab.symbols)
    assert backbone_hash(XOR) == backbone_hash(load("xor")) != backbone_hash(other)
    with pytest.raises(PairmiError, match="Incoherent: has neither weights nor a table by which labels, heads and workers"):
        backbone_hash(Incoherent(2, 2, 0, 1.0))


def test_by_halves_finds_those_that_cannot_be_done() -> None:
    calls = []

    def work(numbers):
        calls.append(list(numbers))
        return [1000 // (number - 3) // (number - 6) for number in numbers]

    parts, failures = bisect_failures(work, range(8), str)
    assert [value for part in parts for value in part] == [1000 // (n - 3) // (n - 6) for n in range(8) if n not in (3, 6)]
    assert [failure.what for failure in failures] == ["3", "6"]
    assert str(failures[0]).startswith("3: ZeroDivisionError: ")
    assert calls[0] == list(range(8))
    calls.clear()
    assert bisect_failures(work, [0, 1, 2], str)[1] == []
    assert calls == [[0, 1, 2]]  # where nothing fails, nothing is done twice


def test_our_own_errors_are_told_without_their_type() -> None:
    def refuse(items):
        raise PairmiError("Transformer:\n  too long")

    assert bisect_failures(refuse, ["x"], str) == ([], [Failure("x", "Transformer: too long")])


def test_a_defect_is_not_taken_for_a_bad_canvas() -> None:
    with pytest.raises(AttributeError):
        bisect_failures(lambda items: items.nothing, ["x"], str)


def outcome(value: object, *failed: str) -> Outcome:
    return Outcome(next(units(1)), value, tuple(Failure(what, "no") for what in failed))


def test_failures_are_reported_and_the_end_says_so() -> None:
    seen: list[str] = []
    stream = settled([outcome(None, "a"), outcome([1], "b"), outcome([2])], lambda failure: seen.append(str(failure)))
    assert next(stream).value is None
    assert seen == []  # perhaps nothing will succeed
    assert next(stream).value == [1]
    assert seen == ["a: no", "b: no"]
    assert next(stream).value == [2]
    with pytest.raises(Incomplete, match="2 could not be done, named above; everything else is finished"):
        next(stream)
    assert len(list(settled([outcome([1]), outcome([2])], seen.append))) == 2


def test_a_run_in_which_nothing_succeeds_is_refused() -> None:
    seen: list[Failure] = []
    with pytest.raises(PairmiError, match=r"^a: no$") as one:
        list(settled([outcome(None, "a")], seen.append))
    assert not isinstance(one.value, Incomplete)
    with pytest.raises(PairmiError, match=r"^0: no \(the first of 7 that failed; none succeeded\)$"):
        list(settled((outcome(None, str(n)) for n in count()), seen.append, patience=7))  # without end
    assert seen == []


def test_here_units_are_done_one_by_one_as_they_are_asked_for() -> None:
    taken = []

    def watched():
        for unit in units(1000):
            taken.append(unit)
            yield unit

    assert squares(list(islice(Local().run(Squares(), watched()), 4))) == [n**2 for n in range(12)]
    assert len(taken) == 4


def test_units_of_another_backbone_are_refused() -> None:
    with pytest.raises(PairmiError, match=r"worker: its backbone is \w+, but squares/seed0/0-3/\w+ was cut for another one; let all"):
        list(Local().run(Squares(), units(1, backbone=tiny())))


def test_the_protocols_are_kept() -> None:
    assert isinstance(Local(), Engine)
    assert isinstance(Squares(), Job)
    assert isinstance(Labelling(tiny(), RandomStates(), Probe()), Job)


def test_a_network_can_be_elsewhere() -> None:
    model, tokens = tiny(attention=True), torch.tensor([[0, 1, 4, 4, 2, 4, 4, 3]])
    there = from_here(placed(model.backbone, "cpu"), "cpu")
    assert backbone_hash(there) == backbone_hash(model)
    assert (there.vocab, there.length) == (model.vocab, model.length)
    with torch.inference_mode():
        ours, theirs = model(tokens), there(tokens)
    assert torch.equal(ours.log_probs, theirs.log_probs)
    assert torch.equal(ours.attention, theirs.attention)
    assert placed(XOR.backbone, "cpu") is XOR.backbone
    moved = placed(model, "meta")
    assert isinstance(moved, Model)
    assert moved.backbone.position.device.type == "meta"


def test_a_worker_puts_the_model_of_its_job_on_its_device(monkeypatch: pytest.MonkeyPatch) -> None:
    model, asked, other = tiny(), list[str](), tiny()
    monkeypatch.setattr("pairmi.spread.units.placed", lambda moved, device: asked.append(device) or (other if moved is model else None))
    job = Labelling(model, RandomStates(), Probe())
    assert Worker(job).job is job
    assert Worker(job, "cuda").job.model is other
    assert asked == ["cuda"]
