"""`pairmi fit` whose labels are made by actors of a real Ray on this machine."""

from itertools import islice, permutations
from pathlib import Path

import pytest

import pairmi
from foreign import made
from heads import tiny
from pairmi.cli import main
from pairmi.fitting.data import read_data
from pairmi.fitting.learning import POSITIONS, SHARD
from pairmi.spread.ray import Ray
from pairmi.training.labels import Effort, make_labels

pytestmark = pytest.mark.usefixtures("cluster")
SEQUENCES = ["abcdabcd", "aabbccdd", "dcbadcba", "abababab", "cdcdcdcd", "adadbcbc"] * 4


def shards(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.glob("*.parquet")}


def test_a_fit_labels_on_ray_what_it_would_label_here(tmp_path: Path) -> None:
    model = tiny()
    fitted = pairmi.fit(model, SEQUENCES, tmp_path / "out", minutes=0.3, max_loss=0.2, engine=Ray(2), quiet=True)
    assert fitted.head is not None
    assert {file.name for file in (tmp_path / "out").iterdir()} >= {"head.safetensors", "report.html", "README.md"}
    assert pairmi.decode(fitted, "........").text == pairmi.decode(fitted, "........", fitted.rule).text
    found = shards(tmp_path / "out" / "work" / "labels")
    assert len(found) >= 8
    states = read_data(model, SEQUENCES).states
    make_labels(model, states, tmp_path / "here", SHARD * len(found), seed=0, effort=Effort(POSITIONS), shard=SHARD, quiet=True)
    assert shards(tmp_path / "here") == found


def test_a_folder_of_transformers_travels_to_workers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = made("letters", tmp_path)
    (tmp_path / "data.txt").write_text("\n".join("".join(letters) for letters in islice(permutations("aabbccabc"), 0, 300_000, 9_999)))
    command = ["fit", "--backbone", folder, "--data", str(tmp_path / "data.txt"), "--minutes", "0.2", "--out", str(tmp_path / "out")]
    assert main([*command, "--max-loss", "0.05", "--engine", "ray", "--workers", "2"]) == 0
    assert "with a head, tuned to " in capsys.readouterr().out
    assert main(["decode", "--backbone", folder, "--head", str(tmp_path / "out"), "--canvas", "□□□□□□"]) == 0
    assert "to which the model was tuned" in capsys.readouterr().err
