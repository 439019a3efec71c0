import json
import math
from collections import Counter
from pathlib import Path

import pytest
import torch

from denoiser import main
from pairmi.backbones.checkpoint import load_tensors
from pairmi.loading import load
from pairmi.tasks.protein.fasta import Record
from pairmi.types import PairmiError
from proteins import family_members, write_fasta
from studies.denoise import Corpus
from studies.protein_corpus import LEVELS, ProteinCorpus, read_corpus


def records(*members: tuple[str, str]) -> list[Record]:
    return [Record(f"p{n}", f"p{n} cluster={family}", text) for n, (family, text) in enumerate(members)]


def test_a_batch_has_one_length_and_all_lengths_come_as_often_as_they_weigh() -> None:
    corpus = ProteinCorpus(records(*[("big", "ACDE")] * 4, ("one", "GGGGG")), records(("other", "AC")))
    assert isinstance(corpus, Corpus)
    rng = torch.Generator().manual_seed(0)
    lengths = Counter(corpus.draw(2, rng).shape[1] for _ in range(600))
    assert lengths[4] / 600 == pytest.approx(2 / 3, abs=0.06)  # a family of 4 counts 4^(1/2) times
    plain = ProteinCorpus(corpus.training, corpus.validation, balance=0.0)
    lengths = Counter(plain.draw(2, rng).shape[1] for _ in range(600))
    assert lengths[4] / 600 == pytest.approx(4 / 5, abs=0.06)


def test_no_family_may_be_on_both_sides() -> None:
    with pytest.raises(PairmiError, match=r"family F is in the training and in the validation file \(1 in all\)"):
        ProteinCorpus(records(("F", "ACD")), records(("F", "ACE")))


def test_from_one_file_whole_families_are_put_aside(tmp_path: Path) -> None:
    corpus = read_corpus(write_fasta(tmp_path / "a.fasta", family_members(20, 3)), None)
    assert (len(corpus.training), len(corpus.validation)) == (54, 6)
    with pytest.raises(PairmiError, match="holds one family only; give more, or --validation FILE"):
        read_corpus(write_fasta(tmp_path / "b.fasta", family_members(1, 3)), None)


def test_the_result_depends_on_the_sequences() -> None:
    one, other = (ProteinCorpus(records(("F", text)), records(("G", "ACD"))).about() for text in ("ACD", "ACE"))
    assert one["fingerprint"] != other["fingerprint"]
    assert one["unigram"] == pytest.approx(3)


def test_the_command_learns_and_writes_weights_that_load(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = write_fasta(tmp_path / "train.fasta", family_members(3, 40))
    held_out = write_fasta(tmp_path / "validation.fasta", [(f"other {family}", text) for family, text in family_members(3, 5)])
    out = tmp_path / "p.safetensors"
    command = ["--task", "protein", "--data", str(data), "--validation", str(held_out), "--run", str(tmp_path / "run")]
    tiny = ["--width", "16", "--depth", "1", "--heads", "2", "--batch", "32", "--steps", "60", "--decay", "0.2"]
    assert main([*command, *tiny, "--out", str(out)]) == 0
    record = json.loads((tmp_path / "run" / "log.jsonl").read_text().splitlines()[-1])
    weights, about = load_tensors(out)
    assert record["perplexity_15"] < 0.7 * about["corpus"]["unigram"]  # the same families under other names
    assert {f"perplexity_{round(100 * level)}" for level in LEVELS} <= record.keys()
    assert about["kind"] == about["shape"]["architecture"] == "esmc"
    assert about["training"]["levels"]["share"] == 0
    assert {tensor.dtype for tensor in weights.values()} == {torch.float16}
    model = load(str(out))
    assert (model.length, model.longest) == (None, 1022)
    assert "".join(model.vocab.symbols) == "LAGVSERTIDPKQNFYMHWC"
    assert not any(parameter.requires_grad for parameter in model.backbone.parameters())
    for length in (5, 40):
        assert model(torch.full((2, length), 20)).log_probs.exp().sum(-1).sub(1).abs().max() < 1e-5
    assert math.isfinite(record["loss"])
    assert main([*command, *tiny]) == 0  # finished: it is read back, and nothing is trained again


@pytest.mark.parametrize(
    ("extra", "message"),
    [((), "--task protein needs --data FILE, a FASTA file"), (("--data", "x", "--start", "y"), "--start is for Sudoku")],
)
def test_what_a_protein_run_needs(tmp_path: Path, capsys: pytest.CaptureFixture[str], extra: tuple[str, ...], message: str) -> None:
    assert main(["--task", "protein", "--run", str(tmp_path), *extra]) == 2
    assert message in capsys.readouterr().err
