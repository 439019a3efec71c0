import re
from pathlib import Path

import pytest

from pairmi.cli import build_parser, main

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def blocks(*languages):
    found = []
    for page in PAGES:
        for number, (language, text) in enumerate(BLOCK.findall(page.read_text())):
            if language in languages:
                found.append(pytest.param(text, id=f"{page.name}-{number}"))
    return found


@pytest.mark.parametrize("text", blocks("python"))
def test_python_blocks_run(text):
    names = {"__name__": "example"}
    exec(compile(text, "example", "exec"), names)
    assert len(names) > 1


@pytest.mark.parametrize("text", blocks("bash", "sh", "console"))
def test_commands_run_or_at_least_parse(text, capsys):
    made = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for line in text.splitlines():
        words = re.findall(r'"[^"]*"|\S+', line.partition("#")[0])
        if words[:1] == ["make"]:
            assert words[1] in made
        elif words[:1] == ["pairmi"]:
            arguments = [word.strip('"') for word in words[1:]]
            if arguments[0] in ("train", "bench", "explore"):  # too long to run here: they are tested where they live
                assert build_parser().parse_args(arguments).command == arguments[0]
            else:
                assert main(arguments) == 0
                assert capsys.readouterr().out
        else:
            assert words[:1] in (["python"], []), f"not a command that this test knows: {line}"


def test_links_lead_somewhere():
    for page in PAGES:
        for target in re.findall(r"\]\((?!http)([^)#]+)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"
