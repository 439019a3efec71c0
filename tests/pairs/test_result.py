"""Results over pairs: numbers, pictures and pages say the same."""

import base64
import csv
import json
import re
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

import pairmi
from browsing import ARGUMENTS, CHROMIUM
from pairmi.pairs import page
from pairmi.pairs.files import WRITERS
from pairmi.pairs.result import PairMap
from pairmi.types import PairmiError

MATRIX = torch.tensor([[0.0, 0.5, 0.1, 0.0], [0.5, 0.0, 0.9, 0.2], [0.1, 0.9, 0.0, -0.3], [0.0, 0.2, -0.3, 0.0]])


def made(matrix: torch.Tensor = MATRIX, directed: bool = False) -> PairMap:
    return PairMap(matrix, tuple("GAVL"), tuple("1234"), "a map", "nats", 7, directed)


def test_the_strongest_pairs_are_above_zero_and_in_order() -> None:
    assert [(i, j, pytest.approx(x)) for i, j, x in [(1, 2, 0.9), (0, 1, 0.5)]] == made().strongest(2)
    assert len(made().strongest(100)) == 4
    assert repr(made()) == "PairMap(a map: 4 positions; strongest 2-3 with 0.9 (nats); 7 rows)"
    one_way = torch.zeros(4, 4)
    one_way[2, 0] = 1.0
    assert made(one_way, directed=True).strongest() == [(2, 0, 1.0)]
    assert repr(made(torch.zeros(4, 4))) == "PairMap(a map: 4 positions; nothing depends on anything (nats); 7 rows)"
    with pytest.raises(PairmiError, match=r"strongest: count must be >= 0, got -1"):
        made().strongest(-1)


@pytest.mark.parametrize("directed", [False, True])
def test_every_file_of_numbers_holds_the_same(tmp_path: Path, directed: bool) -> None:
    found = made(MATRIX.triu(), directed) if directed else made()
    for kind in ("npz", "csv", "parquet"):
        found.save(tmp_path / f"x.{kind}")
    with np.load(tmp_path / "x.npz") as held:
        np.testing.assert_array_equal(held["matrix"], found.to_numpy())
        assert "".join(held["symbols"]) == "GAVL"
    with (tmp_path / "x.csv").open() as file:
        lines = list(csv.DictReader(file))
    table = found.to_dataframe()
    assert len(lines) == len(table) == (12 if directed else 6)
    assert [float(line["score"]) for line in lines] == table["score"].tolist()
    assert (lines[0]["symbol_i"], lines[0]["name_j"], lines[0]["score"]) == ("G", "2", str(float(MATRIX[0, 1])))
    import pandas

    stored = pandas.read_parquet(tmp_path / "x.parquet")
    assert stored.drop(columns="score").equals(table.drop(columns="score"))
    np.testing.assert_allclose(stored["score"], table["score"], rtol=1e-6)
    graph = found.to_networkx(0.15)
    assert sorted(graph.edges) == [(0, 1), (1, 2), (1, 3)]
    assert graph.is_directed() == directed
    assert graph.nodes[3] == {"name": "4", "symbol": "L"}


@pytest.mark.parametrize(("kind", "begins"), [("png", b"\x89PNG"), ("svg", b"<?xml"), ("html", b"<!doctype html>"), ("pdf", b"%PDF")])
def test_every_picture_is_one(tmp_path: Path, kind: str, begins: bytes) -> None:
    made().save(str(tmp_path / f"x.{kind}"))
    assert (tmp_path / f"x.{kind}").read_bytes().startswith(begins)
    assert [file.name for file in tmp_path.iterdir()] == [f"x.{kind}"]


def test_the_picture_masks_the_diagonal_and_ends_colours_before_the_strongest() -> None:
    matrix = torch.rand(40, 40)
    matrix = (matrix + matrix.t()).fill_diagonal_(0)
    matrix[3, 30] = matrix[30, 3] = 100.0
    found = PairMap(matrix, ("A",) * 40, tuple(str(n + 1) for n in range(40)), "a map", "nats", 7)
    axis, bar = found.plot("called so").axes
    shown = axis.images[0].get_array()
    assert shown.mask.diagonal().all() if np.ma.isMaskedArray(shown) else np.isnan(shown.diagonal()).all()
    assert axis.images[0].get_clim()[1] < 3
    assert [label.get_text() for label in axis.get_xticklabels()][:3] == ["2", "4", "6"]
    assert "".join(label.get_text() for label in axis.get_yticklabels(minor=True)) == "A" * 40
    assert (axis.get_title(), bar.get_ylabel()) == ("called so", "nats")


def test_mutual_information_shows_what_is_unknown() -> None:
    found = pairmi.mutual_information(pairmi.load("sudoku4"), "1234............")
    axis = found.plot().axes[0]
    assert [label.get_text() for label in axis.get_xticklabels()] == [f"r{r}c{c}" for r in (2, 3, 4) for c in (1, 2, 3, 4)]
    assert axis.images[0].get_array().shape == (12, 12)
    assert found.to_numpy().shape == (16, 16)
    assert len(found.to_dataframe()) == 12 * 11 / 2
    top = found.strongest(1)[0]
    assert found.matrix[top[0], top[1]] == top[2] == found.matrix.max()


def data_of(html: str) -> dict:
    return json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', html, re.DOTALL).group(1))


def test_the_page_is_whole_in_itself_and_holds_the_numbers() -> None:
    named = PairMap(MATRIX, ("[C@H]", "</script>", "<!--", "&"), tuple("1234"), "<b>a & b</b>", "nats", 7)
    html = page.html(named.scores)
    assert not re.search(r"(?:src|href)\s*=|@import|url\(", html)
    assert html.count("</script>") == 2
    assert "<title>&lt;b&gt;a &amp; b&lt;/b&gt;</title>" in html
    data = data_of(html)
    levels = np.frombuffer(base64.b64decode(data["levels"]), "<u2").reshape(4, 4)
    told = data["low"] + levels / 65535 * (data["high"] - data["low"])
    np.testing.assert_allclose(told, MATRIX, atol=1e-4)
    assert data["labels"][1] == "</script> 2"
    assert named._repr_html_().startswith('<iframe srcdoc="&lt;!doctype html&gt;')


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium")
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_tells_a_pair_under_the_pointer_and_by_keys(tmp_path: Path, scheme: str) -> None:
    from playwright.sync_api import sync_playwright

    made().save(tmp_path / "x.html")
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        tab, wrong = browser.new_page(color_scheme=scheme), list[str]()
        tab.on("pageerror", lambda error: wrong.append(str(error)))
        tab.on("request", lambda asked: wrong.append(asked.url) if not asked.url.startswith("file:") else None)
        tab.goto(f"file://{tmp_path / 'x.html'}")
        box = tab.locator("#map").bounding_box()
        tab.mouse.move(box["x"] + box["width"] - 4, box["y"] + box["height"] - 4)
        assert tab.locator("#said").inner_text() == "L4 – L4: the position itself"
        tab.locator("#map").focus()
        tab.keyboard.press("ArrowLeft")
        tab.keyboard.press("ArrowUp")
        tab.keyboard.press("ArrowUp")
        assert tab.locator("#said").inner_text() == "A2 – V3: 0.9 nats"
        tab.locator("#list button").nth(1).click()
        assert tab.locator("#said").inner_text() == "G1 – A2: 0.5 nats"
        assert wrong == []
        browser.close()


def test_a_name_that_says_no_kind_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PairmiError, match=r"save: expected a name that ends in .npz, .parquet, .csv, .html, .png, .svg .*, got 'x.doc'"):
        made().save(tmp_path / "x.doc")
    assert {"npz", "parquet", "csv", "svg", "png", "html"} <= set(WRITERS)


@pytest.mark.parametrize(("package", "method"), [("pandas", "to_dataframe"), ("networkx", "to_networkx")])
def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch, package: str, method: str) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(PairmiError, match=f"{method}: {package} is missing; pip install {package}"):
        getattr(made(), method)()
