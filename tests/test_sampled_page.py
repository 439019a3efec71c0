"""What docs/sampled.md is made of, in small."""

import runpy
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from pages.sampled import coverage
from pages.sampled_heads import equal_rows, heads_table, made, picture
from pages.sections import kept
from pairmi.bench.ledger import Ledger
from pairmi.loading import load
from pairmi.mi.probe import Probe
from pairmi.mi.sampled import SampledProbe
from pairmi.training.labels import Effort, label
from pairmi.training.length_buckets import LengthBuckets
from pairmi.training.states import State, grid_name

PAGE, HEADS = (runpy.run_path(str(Path(__file__).parents[1] / "experiments" / name)) for name in ("sampled.py", "sampled_heads.py"))
FLAT = torch.full((4,), 0.25, dtype=torch.float64)


def test_variances_are_those_of_the_definition() -> None:
    f = torch.tensor([[1.0, 0.0, 1.0, 0.0], [1.0, 1.0, 0.0, 0.0]], dtype=torch.float64)
    assert PAGE["strata_variance"](FLAT, f, [2]).tolist() == pytest.approx([0.125, 0.125])
    assert PAGE["strata_variance"](FLAT, f, [1, 1]).tolist() == pytest.approx([0.125, 0.0])
    assert PAGE["systematic_variance"](FLAT, f, 2).tolist() == pytest.approx([0.25, 0.0], abs=1e-3)  # worse than plain draws, and better


def test_noise_is_relative_to_what_varies_over_pairs() -> None:
    f = torch.tensor([[1.0, 0.0, 1.0, 0.0], [1.0, 1.0, 1.0, 1.0]], dtype=torch.float64)  # MI 1/2 and 1: variance 1/16
    found = PAGE["noise"]([(FLAT, f)], (1, 2))
    assert found["K = 1"] == pytest.approx(0.125 / 0.0625)  # a draw of the first has variance 1/4, of the second none
    assert found["K = 2"] == pytest.approx(found["K = 1"] / 2)


def test_a_control_that_knows_everything_leaves_nothing() -> None:
    factor = torch.tensor([0.5, 2.0, 1.0, 0.5], dtype=torch.float64)
    tables = [(FLAT, mi * factor.expand(3, -1)) for mi in (0.3, 0.7)]
    left = PAGE["controlled"](tables)
    assert left["a factor for each symbol"] == pytest.approx(0, abs=1e-12)
    assert left["surprise of the symbol"] == pytest.approx(1)  # all symbols are equally surprising


def test_the_mean_over_seeds_and_the_rows_are_told() -> None:
    backbone = PAGE["Remembering"](PAGE["Large"](size=20))
    found = PAGE["unbiased"](backbone, torch.tensor([[20, 20, 20]]), "tv", 6, 300)
    assert found["rows"] == found["1 + N K"] == 19
    assert found["largest z"] < 4
    assert 0.8 < found["estimated / true variance"] < 1.2
    assert found["1.96 errors cover"] <= found["Student's 95 % cover"]


def test_the_interval_covers_more_than_plain_errors() -> None:
    backbone = PAGE["Remembering"](PAGE["Large"](size=20))
    found = PAGE["unbiased"](backbone, torch.tensor([[20, 20, 20]]), "kl", 4, 300)
    assert found["1.96 errors cover"] < found["`interval` covers"]
    assert 0.9 < found["`interval` covers"] <= 1
    assert found["its upper end / value"] > 1
    said = coverage([{"world": "w", "form": "kl", "draws": 2, "`interval` covers": value} for value in (0.95, 0.5, 0.99)])
    assert "in 1 of 3 lines; the least is 0.500 (w, kl, 2 draws), the most 0.990" in said


def test_what_was_not_measured_stays_with_its_commit(tmp_path: Path) -> None:
    page, commit = tmp_path / "page.md", "ab" * 20
    page.write_text(f"# Page\n\nBy x (commit {commit}, torch).\n\n## One\n\nfirst\n\n## Two\n\nsecond\n")
    one = kept(page, "One")
    assert one == f"\n## One\n\nMeasured at commit {commit}.\n\nfirst\n"
    page.write_text(f"# Page\n\nBy x (commit {'cd' * 20}, torch).\n{one}")
    assert kept(page, "One") == one  # however often it is kept
    assert kept(page, "Three") == kept(tmp_path / "none.md", "One") == ""


def test_heads_are_lines_of_a_table_and_the_best_is_chosen_by_other_families(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "heads.jsonl")
    scores = {"Spearman": 0.5, "test states": 3, "pairs": 9, "mean MI": 0.1}
    ledger.add({"heads": "m", "test": 3, "head": "in the package"}, {"R2": 0.4} | scores)
    sizes = {"inner": 8, "forms": 2, "rank": 4}
    for rows, r2, stop in ((10, 0.3, 0.6), (20, 0.5, 0.2)):
        work = {"budget": rows, "steps": 5, "loss": "poisson", "start": False, "sizes": sizes}
        ledger.add({"heads": "m", "test": 3} | work, {"R2": r2, "rows": rows, "states": 2, "stopped at": 5, "R2 to stop by": stop} | scores)
    ledger.add({"heads": "m", "test": 3, "budget": 20, "sizes": sizes, "cost": True}, {"time_share": 0.1})
    table, best, cost = heads_table(tmp_path / "heads.jsonl", "m")
    assert best["R2"] == 0.3
    assert cost is not None
    assert cost["time_share"] == 0.1
    assert len(table.splitlines()) == 2 + 3
    assert "from nothing, 8/2x4" in table
    picture(tmp_path / "heads.jsonl", ["m"], tmp_path / "heads.png")
    assert (tmp_path / "heads.png").stat().st_size > 1000


def test_kinds_of_labels_at_equal_rows_are_a_table_of_their_own(tmp_path: Path) -> None:
    ledger, file = Ledger(tmp_path / "heads.jsonl"), tmp_path / "heads.jsonl"
    assert equal_rows(file) == ""
    for draws, states in ((None, 3), (1, 40), (4, 10)):
        work = {"heads": "m", "draws": draws, "positions": 4, "budget": 200, "sizes": {}, "equal": True}
        ledger.add(work, {"rows": 200, "states": states, "stopped at": 5, "R2": 0.5, "Spearman": 0.5, "test states": 3})
    lines = equal_rows(file).splitlines()[2:]
    assert [line.split("|")[2].strip() for line in lines] == ["every symbol, 4 positions", "4 draws, 4 positions", "1 draw, 4 positions"]
    assert made(file, "m") == []  # they are no part of the curve over rows


def test_labels_are_cut_by_rows_and_by_family() -> None:
    states = [State(torch.tensor([4, 4, n]), "uniform", "", grid_name(torch.tensor([n, n]))) for n in range(4)]
    labels = label(
        load("sudoku4"), [replace(one, tokens=torch.cat([one.tokens, torch.full((13,), 4)])) for one in states], Probe("kl", 0.0), Effort(1)
    )
    assert len(HEADS["within_rows"](labels, int(labels.rows[:3].sum()))) == 3
    stop, test = HEADS["halves"](labels)
    assert len(stop) + len(test) == 4
    assert not {*stop.grid} & {*test.grid}


def test_a_draw_is_cut_at_its_surprise_which_a_consistent_model_never_exceeds() -> None:
    model = load("sudoku4")
    labels = label(model, [State(torch.full((16,), 4), "uniform", "", "0" * 16)], SampledProbe("kl", 1), Effort(2))
    buckets = LengthBuckets(model.backbone, labels)
    HEADS["cut"](buckets, {"positions": 2})
    torch.testing.assert_close(buckets.kept[0][2], labels.mi, equal_nan=True)
    HEADS["cut"](more := LengthBuckets(model.backbone, replace(labels, mi=labels.mi + 9)), {"positions": 2})
    known = labels.mi.isfinite()
    torch.testing.assert_close(more.kept[0][2][known], torch.full((int(known.sum()),), 4.0).log())  # each digit has a quarter


def test_what_is_beyond_the_entropies_is_counted() -> None:
    states = [State(torch.full((16,), 4), "uniform", "", "0" * 16)]
    labels = label(load("sudoku4"), states, Probe("kl", 0.0), Effort(1))
    assert HEADS["beyond"](labels, 4)["share above"] == pytest.approx(0, abs=1e-6)
    assert HEADS["beyond"](replace(labels, mi=labels.mi + 9), 4)["share above"] > 0.5
