import json
from dataclasses import asdict, replace
from pathlib import Path

import pytest
import torch

from heads import labelled, low_rank, pair_mlp, save_head, sudoku, tiny
from pairmi.backbones.checkpoint import save_tensors
from pairmi.backbones.identity import identify
from pairmi.backbones.transformer import Transformer, TransformerConfig
from pairmi.bench import head as bench
from pairmi.bench import head_cost, probing
from pairmi.cli import main
from pairmi.mi.head import LowRankConfig, LowRankHead
from pairmi.mi.pair_mlp import PairMLPConfig, PairMLPHead
from pairmi.mi.probe import Probe
from pairmi.store import shard_file, write_shard
from pairmi.types import PairmiError
from worlds import Linked

GRAPH = (torch.arange(8)[:, None] // 4 == torch.arange(8) // 4).double().fill_diagonal_(0)
MODEL = replace(tiny(attention=True), task=Linked(GRAPH))
LABELS, SETTINGS = labelled(MODEL, 60)


def test_every_estimate_is_scored_in_every_group(tmp_path: Path) -> None:
    heads = [save_head(tmp_path / "ours.safetensors", low_rank(), MODEL), save_head(tmp_path / "mlp.safetensors", pair_mlp(), MODEL)]
    records = bench.fidelity_records(MODEL, LABELS, SETTINGS, heads)
    estimates = {record["estimate"] for record in records}
    controls = {"constant", "entropy product", "attention", "structural"}
    assert estimates == {"probe", "ours", "ours, shuffled", "mlp", "mlp, shuffled", *controls}
    everything = {record["estimate"]: record for record in records if record["group"] == "all"}
    assert everything["probe"]["r2"] == everything["probe"]["spearman"] == 1
    assert everything["probe"]["mae"] == 0
    assert everything["structural"]["auroc"] > 0.99
    assert all(set(bench.COLUMNS) <= record.keys() for record in records)
    assert {"all", "uniform", "solving"} < {record["group"] for record in records}
    curves = bench.calibration_curves(MODEL, LABELS, heads)
    bench.draw_calibration(curves, tmp_path / "deep" / "calibration.png")
    assert (tmp_path / "deep" / "calibration.png").stat().st_size > 1000


def test_groups_are_by_source_and_by_masked_fraction() -> None:
    found = bench.groups(LABELS)
    levels = [mask for name, mask in found.items() if name.startswith("masked")]
    assert torch.equal(torch.stack(levels).sum(0), torch.ones(60, dtype=torch.long))
    assert torch.equal(found["masked 0.9-1.0"], LABELS.masked == 8)
    assert int(found["uniform"].sum()) == int(found["solving"].sum()) == 30


def test_other_weights_and_no_states_are_refused() -> None:
    with pytest.raises(PairmiError, match=r"bench head: the labels were made by weights .*, but the model has"):
        bench.fidelity_records(tiny(seed=1), LABELS, SETTINGS, [])
    with pytest.raises(PairmiError, match="bench head: no labelled state of a test grid; make more labels"):
        bench.fidelity_records(MODEL, LABELS.pick(torch.arange(0)), SETTINGS, [])


def test_costs_are_shares_of_a_pass() -> None:
    shape = TransformerConfig()
    backbone = Transformer(shape).eval()
    ours, theirs = LowRankHead(LowRankConfig(128, 9, length=81)), PairMLPHead(PairMLPConfig(128))
    tokens = torch.full((4, 81), 9)
    first, second = head_cost.cost_records({"ours": (backbone, ours), "mlp": (backbone, theirs)}, tokens, rounds=1)
    positions, pairs = 81 * (138 * 96 + 96 * 256), 81 * 81 * (256 + 18 * 16 + 4 * 16 / 2 + 16)  # places once for both rows
    assert first["head_mflop"] == pytest.approx(2 * (positions + pairs) / 1e6, rel=0.02)
    assert first["flop_share"] < 0.06
    assert second["flop_share"] > 1
    assert second["head_mflop"] == pytest.approx(2 * 81 * 81 * (256 * 128 + 128 * 256 + 256) / 1e6, rel=0.01)
    assert first["parameters"] == sum(p.numel() for p in ours.parameters())


def test_costs_are_shown_where_hops_are_still_taken() -> None:
    backbone = Transformer(TransformerConfig()).eval()
    heads = {"near": (backbone, LowRankHead(LowRankConfig(128, 9, length=81, hops=1, reach=64)))}
    states = torch.full((4, 81), 9)
    states[:, 40:] = 0
    records = {record["canvases"]: record for record in head_cost.cost_table(heads, states, 9, rows=4)}
    assert set(records) == {"empty", "test states", "64 open"}
    assert records["64 open"]["head_mflop"] > max(records["empty"]["head_mflop"], records["test states"]["head_mflop"])


def test_pruning_is_reported_and_confirmed() -> None:
    records = probing.rows_records(LABELS, SETTINGS)
    assert records[0]["group"] == "all"
    assert records[0]["rows"] == records[0]["full"]  # nothing was pruned here
    assert records[0]["paper"] == 1 + 8 * 4  # whatever is known already
    assert records[0]["fewer_than_paper"] == pytest.approx(33 / records[0]["rows"])
    found = probing.confirmed(MODEL, LABELS.tokens[:6], Probe(floor=0.1))
    assert found["broken"] == 0
    assert found["rows"] < found["full_rows"]
    assert found["largest_difference"] <= found["largest_certificate"]
    rates = probing.throughput(MODEL, LABELS.tokens[:6], Probe(floor=0.1, batch_rows=16), rounds=1)
    assert rates["share"] > 0


def test_the_commands(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = sudoku()
    backbone, labels = str(tmp_path / "b.safetensors"), tmp_path / "labels"
    save_tensors(Path(backbone), model.backbone.state_dict(), {"shape": asdict(model.backbone.config)})
    rng = torch.Generator().manual_seed(1)
    tokens = torch.where(torch.rand(60, 81, generator=rng) < 0.1, 9, torch.randint(9, (60, 81), generator=rng))
    made = replace(
        LABELS, tokens=tokens, mi=torch.rand(60, 3240, generator=rng), masked=(tokens == 9).sum(1), entropies=torch.zeros(60, 81)
    )
    settings = SETTINGS | {"backbone": identify(model), "symbols": "123456789", "length": 81}
    write_shard(shard_file(labels, 0), made, {"settings": settings, "provenance": {}})
    ours = save_head(tmp_path / "ours.safetensors", LowRankHead(LowRankConfig(8, 9, length=81)), model, (1,))
    common = ["--backbone", backbone, "--labels", str(labels), "--json", str(tmp_path / "out.jsonl")]
    assert main(["bench", "head", *common, "--head", ours, "--figure", str(tmp_path / "c.png")]) == 0
    told = capsys.readouterr().out
    assert "entropy product" in told
    assert "time_share" in told
    assert any("r2" in json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines())
    assert main(["bench", "probe", *common, "--limit", "1"]) == 0
    assert "largest_certificate" in capsys.readouterr().out
    assert main(["bench", "head", "--backbone", backbone]) == 2
    assert "pairmi bench head: the following arguments are required: --labels" in capsys.readouterr().err


def test_a_calibration_of_nothing_is_an_empty_picture(tmp_path: Path) -> None:
    bench.draw_calibration({"head": []}, tmp_path / "empty.png")
    assert (tmp_path / "empty.png").read_bytes().startswith(b"\x89PNG")
