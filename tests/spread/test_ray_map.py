"""Maps on Ray are those of one process, byte by byte."""

from pathlib import Path

import pytest

from pairmi.cli import main
from proteins import opinionated_weights


@pytest.mark.usefixtures("cluster")
def test_the_same_bytes_on_ray(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    weights = opinionated_weights(tmp_path / "p.safetensors")
    (tmp_path / "some.fasta").write_text("".join(f">r{n}\n{'ACDEFGHIKLMNPQRSTVWY'[n : n + 5 + n % 3]}\n" for n in range(9)))
    command = ["map", "--backbone", weights, "--sequence", str(tmp_path / "some.fasta"), "--by", "jacobian", "--symbols", "3"]
    assert main([*command, "--out", str(tmp_path / "one")]) == 0
    assert main([*command, "--out", str(tmp_path / "ray"), "--engine", "ray", "--workers", "1"]) == 0
    assert capsys.readouterr().out.count("9 maps made in ") == 2
    one, ray = ({file.name: file.read_bytes() for file in (tmp_path / name).iterdir()} for name in ("one", "ray"))
    assert len(one) == 9
    assert one == ray
