"""One call from a model and sequences to a head with a calibration and a rule."""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
import torch

import pairmi
from foreign import made
from heads import tiny
from pairmi.backbones.checkpoint import load_tensors
from pairmi.cli import main
from pairmi.fitting import learning, run, stages
from pairmi.fitting.clock import Clock
from pairmi.fitting.data import read_data
from pairmi.fitting.job import Fit
from pairmi.loading import load
from pairmi.mi.probe import Probe
from pairmi.pricing.interval import unseen_loss
from pairmi.spec import rule
from pairmi.training.sequences import SequenceStates
from pairmi.types import PairmiError, Prediction, Tokens, Vocab
from worlds import Incoherent

MINUTES = 0.2


def letters(count: int, length: int, alphabet: str = "abcd", seed: int = 0) -> list[str]:
    rng = torch.Generator().manual_seed(seed)
    return ["".join(alphabet[n] for n in torch.randint(len(alphabet), (length,), generator=rng).tolist()) for _ in range(count)]


def test_a_folder_with_all_that_a_model_needs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = tiny()
    fitted = pairmi.fit(model, letters(40, 8), tmp_path / "out", minutes=MINUTES, max_loss=0.2)
    assert fitted.head is not None
    assert fitted.calibration is not None
    again = run.with_head(model, str(tmp_path / "out"))
    assert (again.rule, again.calibration) == (fitted.rule, fitted.calibration)
    told = load_tensors(tmp_path / "out" / "head.safetensors")[1]["rule"]
    assert told["rule"] == fitted.rule
    assert told["interval"][0] <= told["loss"] <= told["interval"][1]
    assert pairmi.decode(fitted, "........").text == pairmi.decode(fitted, "........", fitted.rule).text
    page = (tmp_path / "out" / "report.html").read_text()
    assert page.count("data:image/png;base64,") == 5  # frontier, reliability, fidelity, two maps
    assert not re.search(r"(src|href)='(?!data:)", page)  # nothing from elsewhere
    assert told["words"] in (tmp_path / "out" / "README.md").read_text()
    said = capsys.readouterr().err
    for stage in ("labels: ", "head: ", "calibrate: ", "tune: ", "check: ", "price: ", "done: "):
        assert re.search(rf"pairmi fit: {stage}.* of 0\.2 minutes left\)", said)
    spent = sum(json.loads((tmp_path / "out" / "work" / "clock.json").read_text()).values())
    pairmi.fit(model, letters(40, 8), tmp_path / "out", minutes=MINUTES, max_loss=0.2, quiet=True)  # only the report again
    assert sum(json.loads((tmp_path / "out" / "work" / "clock.json").read_text()).values()) < spent + 30
    with pytest.raises(PairmiError, match=r"holds another fit \(different: seed\); choose another --out"):
        pairmi.fit(model, letters(40, 8), tmp_path / "out", minutes=MINUTES, max_loss=0.2, seed=1)


class Killed(Exception):
    pass


@pytest.mark.parametrize("stage", ["train", "tuned", "priced"])
def test_a_killed_fit_goes_on(stage: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def end(*_: object) -> None:
        raise Killed

    model, how = tiny(), {"minutes": 0.1, "max_loss": 0.2, "quiet": True}
    with monkeypatch.context() as patch:
        patch.setattr(learning if stage == "train" else stages, stage, end)
        with pytest.raises(Killed):
            pairmi.fit(model, letters(40, 8), tmp_path, **how)
    before, labelled = Clock(tmp_path / "work" / "clock.json", 0.1), len(list((tmp_path / "work" / "labels").glob("*.parquet")))
    assert before.spent > 0
    assert pairmi.fit(model, letters(40, 8), tmp_path, **how).rule is not None
    after = Clock(tmp_path / "work" / "clock.json", 0.1)
    assert after.seconds["labels"] == before.seconds["labels"]  # nothing was labelled again
    assert len(list((tmp_path / "work" / "labels").glob("*.parquet"))) == labelled


def test_a_folder_of_transformers_from_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = made("letters", tmp_path)
    (tmp_path / "data.txt").write_text("# three letters\n" + "\n".join(letters(30, 9, "abc") + letters(30, 6, "abc", 1)))
    command = ["fit", "--backbone", folder, "--data", str(tmp_path / "data.txt"), "--minutes", "0.1", "--out", str(tmp_path / "out")]
    assert main([*command, "--max-loss", "0.05"]) == 0
    assert "with a head, tuned to " in capsys.readouterr().out
    assert main(["decode", "--backbone", folder, "--head", str(tmp_path / "out"), "--canvas", "□□□□□□"]) == 0
    assert "to which the model was tuned" in capsys.readouterr().err
    (tmp_path / "bad.txt").write_text("abcab\nabz\n")
    assert main([*command[:4], str(tmp_path / "bad.txt"), *command[5:]]) == 2
    assert re.search(r"bad\.txt, line 2: 'z' at position 3 is not in the alphabet", capsys.readouterr().err)


@dataclass(frozen=True)
class Own:
    """A user's class: four bits, the second two copy the first two; no hidden states."""

    vocab = Vocab(("0", "1"))
    length = 4
    identity: str = "copies"

    def __call__(self, tokens: Tokens) -> Prediction:
        other = tokens[:, [2, 3, 0, 1]]
        ones = torch.where(other == 2, 0.5, torch.where(other == 1, 0.98, 0.02))
        return Prediction(tokens, torch.stack([1 - ones, ones], dim=2).log(), torch.zeros(*tokens.shape, 0))


def test_without_hidden_states_rules_probe(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fitted = pairmi.fit(Own(), ["0101", "1111", "0000"], tmp_path, minutes=MINUTES, max_loss=0.1)
    assert fitted.head is None
    assert isinstance(rule(fitted.rule, fitted).mi, Probe)
    assert "reports no hidden states: no head is trained, rules probe" in capsys.readouterr().err
    assert "there is no head: rules probe" in (tmp_path / "report.html").read_text()
    assert pairmi.decode(fitted, "....").passes == 2


def test_a_limit_that_no_setting_keeps_means_sequential(tmp_path: Path) -> None:
    fitted = pairmi.fit(Own(), ["0101"], tmp_path, minutes=0.05, max_loss=0.0, quiet=True)
    assert fitted.rule == "sequential"
    assert "no setting loses at most 0 nats a position" in (tmp_path / "README.md").read_text()
    assert pairmi.decode(fitted, "....").passes == 4


def test_what_nothing_is_lost_on_is_not_calibrated(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fitted = pairmi.fit(Own(), ["0..1", "1..1"], tmp_path, minutes=0.05, max_loss=0.3)
    assert fitted.calibration is None
    assert fitted.rule.startswith("mi-bound:budget=")
    assert "not calibrated: calibrate: " in capsys.readouterr().err
    assert pairmi.decode(fitted, "0..1").passes == 1


def test_data_becomes_sequences_and_canvases(tmp_path: Path) -> None:
    model = tiny()
    found = read_data(model, ["abcdabcd", "ab..abcd", ".bcdabcd", [0, 1, 2, 3, 4, 4, 4, 4]])
    assert [model.vocab.decode(canvas) for canvas in found.canvases] == ["ab..abcd", "abcd...."]
    assert found.described == "1 sequences and 2 canvases"
    assert [model.vocab.decode(canvas) for canvas in read_data(model, ["abcdabcd"]).canvases] == ["........"]
    (tmp_path / "a.fasta").write_text(">x\nabcd\nabcd\n")
    assert read_data(model, str(tmp_path / "a.fasta")).described == "1 sequences and 0 canvases"
    protein = load("protein")
    (tmp_path / "p.fasta").write_text(">x cluster=1\nACDEFGHIK\n>y\nACDEF\n")
    found = read_data(protein, tmp_path / "p.fasta")
    assert found.states.about()["name"] == "protein"
    assert sorted(len(canvas) for canvas in found.canvases) == [5, 9]
    (tmp_path / "q.fasta").write_text(">x cluster=1\nACDEFGHIK\n>y\nMK..YIAKQ\n>z\nAC\n")
    found = read_data(protein, tmp_path / "q.fasta")
    assert [protein.vocab.decode(canvas) for canvas in found.canvases] == ["MK..YIAKQ"]
    assert found.described == "1 sequences and 1 canvases"
    assert found.states.about()["sequences"] == 1
    assert found.states.about()["name"] == "protein"
    (tmp_path / "r.fasta").write_text(">y\nMK..YIAKQ\n")
    assert read_data(protein, tmp_path / "r.fasta").states.about()["name"] == "sequences"
    assert read_data(load("sudoku"), None).states.about()["name"] == "sudoku"


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (["abcdabcx"], "sequence 0: 'x' at position 8 is not in the alphabet"),
        (["abcd"], "sequence 0: expected 8 positions, got 4"),
        ([[0, 1, 2, 3, 0, 1, 2, 9]], r"sequence 0: token ids must be 0\.\.4"),
        ([[-1, 1, 2, 3, 0, 1, 2, 2]], r"sequence 0: token ids must be 0\.\.4"),
        (["abcdabc.", ".bcdabcd"], "none of 2 sequences has two unknown positions, or is complete with at least 3: nothing can be filled"),
        (None, "model 'tiny' needs data: a file with one sequence a line, FASTA, or a list of sequences"),
    ],
)
def test_bad_data_is_named(data: list[str] | None, message: str, tmp_path: Path) -> None:
    with pytest.raises(PairmiError, match=message):
        pairmi.fit(tiny(), data, tmp_path)


def test_other_bad_input_is_named(tmp_path: Path) -> None:
    (tmp_path / "empty.txt").write_text("# nothing\n\n")
    with pytest.raises(PairmiError, match=r"empty\.txt holds no sequence"):
        pairmi.fit(tiny(), tmp_path / "empty.txt", tmp_path)
    with pytest.raises(PairmiError, match=r"minutes=0\.0: must be above 0"):
        pairmi.fit(tiny(), ["abcdabcd"], tmp_path, minutes=0.0)
    with pytest.raises(PairmiError, match="Incoherent: has neither weights nor a table by which labels, heads and workers could know it"):
        pairmi.fit(Incoherent(3, 2, 0, 1.0), ["121"], tmp_path)


def test_a_clock_remembers_over_kills(tmp_path: Path) -> None:
    clock = Clock(tmp_path / "clock.json", 1.0)
    with clock.stage("a"):
        pass
    with pytest.raises(Killed), clock.stage("b"):
        raise Killed
    again = Clock(tmp_path / "clock.json", 1.0)
    assert again.seconds == clock.seconds
    assert set(again.seconds) == {"a", "b"}
    again.add("start", 5.0)
    again.add("start", 2.0)
    assert Clock(tmp_path / "clock.json", 1.0).seconds["start"] == 7.0
    assert again.left == pytest.approx(53, abs=1)
    assert again.words() == "0.9 of 1 minutes left"


def fitting(folder: Path, minutes: float, said: list[str]) -> Fit:
    model = tiny()
    clock = Clock(folder / "clock.json", minutes)
    return Fit(model, read_data(model, ["abcdabcd", "dcbadcba"]), folder, clock, 0, said.append)


def test_settings_are_measured_as_long_as_their_stage_has_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said, now = list[str](), [0.0]
    job = fitting(tmp_path, 1.0, said)
    monkeypatch.setattr(stages, "monotonic", lambda: now[0])
    done = []
    for one in stages.in_time(job, "tune", "abcdef"):
        done.append(one)
        now[0] += 16
        job.clock.seconds["tune"] = now[0]  # 49 seconds until tuning should end: after three there is no time for one more
    assert done == ["a", "b", "c"]
    assert said == ["tune: no time for 3 of 6 settings"]
    assert list(stages.in_time(job, "labels", "ab")) == ["a"]  # late as it is, one is measured


def test_a_calibration_that_takes_long_has_fewer_rounds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from pairmi.pricing import calibrate as fitter

    now, seen = [0.0], list[tuple[int, int]]()
    real = fitter.measure

    def slow(backbone: object, canvases: list, *args: object, **kwargs: object) -> object:
        now[0] += len(canvases)
        seen.append((len(canvases), kwargs["seed"]))
        return real(backbone, canvases, *args, **kwargs)

    monkeypatch.setattr(fitter, "measure", slow)
    monkeypatch.setattr(fitter.time, "monotonic", lambda: now[0])
    model = tiny()
    how = (model, [torch.full((8,), 4)] * 12, Probe(), stages.tuning.calibrated_rule, (0.1, 0.3))
    fitter.calibrate(*how, rounds=4, seconds=1000.0)
    assert seen == [(12, 0), (12, 1), (12, 2), (12, 3)]
    seen.clear()
    fitter.calibrate(*how, rounds=4, seconds=40.0)  # a third would end at 36 seconds, and leave no time for the last
    assert seen == [(12, 0), (12, 1), (12, 3)]
    seen.clear()
    fitter.calibrate(*how, rounds=4, seconds=22.5)  # after one round there is time for ten canvases
    assert seen == [(12, 0), (10, 3)]
    seen.clear()
    fitter.calibrate(*how, rounds=4, seconds=-5.0)
    assert seen == [(12, 0), (8, 3)]


@pytest.mark.parametrize(("seconds", "size"), [(0.01, 16), (0.5, 4), (60.0, 2)])
def test_where_a_state_takes_long_shards_are_small(seconds: float, size: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]

    def slow(*_: object, **how: object) -> None:
        assert how["shard"] == 1
        now[0] += 1000.0 if not now[0] else seconds  # the first one also does what is done once

    monkeypatch.setattr(learning, "make_labels", slow)
    monkeypatch.setattr(learning, "monotonic", lambda: now[0])
    assert learning.shard_of(fitting(tmp_path, 1.0, [])) == size


def test_small_shards_end_where_a_rule_fills_all_at_once() -> None:
    model, states = tiny(), SequenceStates([torch.tensor([0, 1, 2, 3] * 2)] * 4, rules=("top-k:k=8",))
    found = states.draw(model, 0, 3, 7)  # three of them should be what the rule sees, which is nothing
    assert [state.source for state in found] == ["uniform"] * 7


class Slow(Clock):
    """On which a shard of labels takes ten seconds."""

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        before = len(learning.shards(self.file.parent / "labels"))
        yield
        self.add(name, 10.0 * (len(learning.shards(self.file.parent / "labels")) - before))


def test_labels_that_take_longer_than_they_may_are_fewer(tmp_path: Path) -> None:
    said = list[str]()
    job = replace(fitting(tmp_path, 1.0, said), clock=Slow(tmp_path / "clock.json", 1.0))
    (tmp_path / "plan.json").write_text(json.dumps({"shard": 4}))
    assert learning.label(job) == 12  # 22.8 seconds are theirs, a fifth more is borne
    assert said == [f"labels: 4 more states of {done}" for done in (0, 4, 8)]
    labels, _ = learning.read_store(tmp_path / "labels")
    assert learning.parted(labels, job.model.vocab.size) is not None


def test_where_no_sequence_is_for_validation_the_last_states_are(tmp_path: Path) -> None:
    job = fitting(tmp_path, 1.0, [])  # two sequences
    learning.make_labels(job.model, job.data.states, tmp_path / "labels", 16, effort=learning.Effort(4), shard=16, quiet=True)
    labels, mask = learning.read_store(tmp_path / "labels")[0], job.model.vocab.size
    assert not len(labels.split("validation"))
    parts = learning.parted(labels, mask)
    assert parts is not None
    assert [len(part) for part in parts] == [12, 4]
    assert torch.equal(parts[1].tokens, labels.tokens[12:])
    complete = replace(labels, tokens=labels.tokens.clamp_max(mask - 1))
    assert learning.parted(complete, mask) is None


def test_where_a_sequence_takes_long_there_are_fewer_budgets_and_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said = list[str]()
    job = fitting(tmp_path, 1.0, said)
    job.clock.add("head", 33.0)  # 9 seconds until calibrations should end
    monkeypatch.setattr(stages, "walk_seconds", lambda _: 0.5)
    job = stages.calibrated(job)
    (size,) = {len(one) for one in job.data.canvases}
    assert said[0] == f"calibrate: 2 budgets, up to 4 times {max(3, 100 // size)} sequences"
    job.clock.add("calibrate", max(0.0, job.until("tune") - 7.0))
    stages.tuned(job, 0.1, "position")
    tested = [one["rule"].rpartition("=")[2] for record in job.ledger.found.values() for one in record.get("tested", ())]
    assert tested[0] == "0.04"
    assert [stages.spaced(job.family, 3, limit)[:2] for limit in (0.1, 0.001)] == [
        [f"mi-bound:charge=calibrated,budget={budget}" for budget in budgets] for budgets in ((0.04, 0.2), (0.005, 0.04))
    ]
    assert stages.spaced(job.family, 1, 0.1) == job.family


def test_a_promise_needs_sequences_more_than_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said = list[str]()
    job = stages.calibrated(fitting(tmp_path, 1.0, said))
    (canvas,) = {tuple(one.tolist()) for one in job.data.canvases}
    size = len(canvas)
    assert stages.per_position(job, 0.05, "position") == (0.05, pytest.approx(1 / size))
    assert stages.per_position(job, 0.05 * size, "sequence") == (pytest.approx(0.05), pytest.approx(1 / size))
    needed = stages.needed_for(0.05, 1 / size)
    assert unseen_loss(needed) / size <= 0.05 / 4 < unseen_loss(needed - 1) / size
    assert (stages.needed_for(10.0, 1 / size), stages.needed_for(1e-9, 1 / size)) == (stages.FEWEST, stages.MOST)
    monkeypatch.setattr(stages, "walk_seconds", lambda _: job.until("tune") / (needed + 1))  # time for one setting on so many
    stages.tuned(job, 0.05, "position")
    assert re.search(rf"tune: up to \d settings on {needed} sequences", said[-2])
