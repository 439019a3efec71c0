"""What the site reads from the code; the site itself is built, and its tutorials executed, by `make docs`."""

import re
import sys
from pathlib import Path
from types import SimpleNamespace

import nbformat
import pytest

from pairmi.cli import build_parser
from pairmi.selectors.catalogue import CATALOGUE

DOCS = Path(__file__).parents[1] / "docs"
sys.path.append(str(DOCS))

import site_parts  # noqa: E402


def test_every_rule_and_every_command_has_its_place() -> None:
    assert re.findall(r"^## (\S+)$", site_parts.rules(), re.MULTILINE) == list(CATALOGUE)
    commands = site_parts.commands()
    told = build_parser().format_help()
    names = re.findall(r"^    ([a-z]+) ", told, re.MULTILINE)
    assert len(names) >= 10
    assert all(f"## pairmi {name}" in commands for name in names)
    assert "## pairmi train head" in commands


def test_every_page_is_in_a_list_of_the_site() -> None:
    shown = set(site_parts.results().splitlines())
    lists = "".join(page.read_text() for page in DOCS.rglob("*.md"))
    for page in DOCS.glob("*.md"):
        assert page.stem in shown or page.stem == "index" or re.search(rf"^{page.stem}$", lists, re.MULTILINE), page.stem
    assert {"exact", "results", "maps", "head"} <= shown  # head: also the name of a tutorial
    assert "method" not in shown


def test_parts_are_filled_in() -> None:
    source = ["# A page\n\n% part: notebook\n\ntext"]
    site_parts.fill(None, "tutorials/rule", source)
    assert f"{site_parts.COLAB}/rule.ipynb" in source[0]
    assert "% part" not in source[0]


def test_tutorials_become_notebooks(tmp_path: Path) -> None:
    site_parts.notebooks(SimpleNamespace(builder=SimpleNamespace(name="html"), outdir=str(tmp_path)), None)
    files = sorted((tmp_path / "notebooks").glob("*.ipynb"))
    assert [file.stem for file in files] == ["dependence", "faster", "head", "rule"]
    for file in files:
        notebook = nbformat.read(file, as_version=4)
        nbformat.validate(notebook)
        assert "pip install" in notebook.cells[0].source
        assert any(cell.cell_type == "code" and "pairmi" in cell.source for cell in notebook.cells[1:])
        assert "](../" not in "".join(cell.source for cell in notebook.cells)


@pytest.mark.parametrize("page", sorted(DOCS.glob("*/*.md")), ids=lambda page: page.stem)
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\((?!http)([^)#]+)", page.read_text()):
        assert (page.parent / target).exists(), f"{page} links to {target}"
