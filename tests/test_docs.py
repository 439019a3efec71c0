"""What README and docs show: every Python block runs, every `pairmi` line is one that the real parser takes, every link leads somewhere."""

import re
import shlex
from pathlib import Path
from typing import Literal, get_args, get_origin

import pytest

from pairmi.cli import build_parser, main
from pairmi.selectors.catalogue import CATALOGUE
from pairmi.spec import CHARGES, COMMITS, ESTIMATES, PROBING, parameters

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
QUICK = ("rules", "mi", "decode", "data", "plan")  # run here, if their models are in the package; the others are tested where they live
HERE = ("--backbone sudoku4", "--backbone xor", "rules", "data sudoku")


def blocks(*languages: str) -> list:
    found = []
    for page in PAGES:
        for number, (language, text) in enumerate(BLOCK.findall(page.read_text())):
            if language in languages:
                found.append(pytest.param(text, id=f"{page.name}-{number}"))
    return found


def commands() -> list:
    """Every line of any block, and every span of code in the text, that begins with `pairmi` and has a command."""
    found = {}
    for page in PAGES:
        text = page.read_text()
        lines = [line for _, block in BLOCK.findall(text) for line in block.replace("\\\n", " ").splitlines()]
        spans = re.findall(r"`(pairmi [a-z][^`]*)`", BLOCK.sub("", text))
        for place, line in enumerate((*lines, *spans)):
            if re.match(r"(\$ )?pairmi ", line):
                plain = re.split(r"\s+#\s|\s{3,}(?=[^-\"'. ]\S* )(?!--)", line.removeprefix("$ "))[0]
                found.setdefault(plain, pytest.param(plain, place >= len(lines), id=f"{page.name}: {plain[:60]}"))
    return list(found.values())


def words(line: str) -> list[str]:
    """The arguments of a line, without redirections and without the dots that stand for more."""
    return [word for word in shlex.split(re.split(r" [>|] ", line)[0])[1:] if word != "..."]


def test_there_are_blocks_and_commands() -> None:
    assert len(blocks("python")) >= 5
    assert len(commands()) >= 20


@pytest.mark.parametrize("text", blocks("python"))
def test_python_blocks_run(text: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)  # what they write is nobody's
    (tmp_path / "tests").symlink_to(ROOT / "tests")
    exec(compile(text, "example", "exec"), {"__name__": "example"})


@pytest.mark.parametrize(("line", "in_text"), commands())
def test_commands_are_ones_that_the_parser_takes(
    line: str, in_text: bool, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs").mkdir()
    arguments = words(line)
    if arguments[0] in QUICK and any(part in line for part in HERE) and "txt" not in line:
        assert main(arguments) == 0
        assert capsys.readouterr().out
        return
    try:
        build_parser().parse_args(arguments)
    except SystemExit:
        told = capsys.readouterr().err
        if not (in_text and "are required" in told):  # in running text what is required may be left out
            pytest.fail(told)


@pytest.mark.parametrize("text", blocks("bash", "sh", "console"))
def test_shell_blocks_hold_commands_that_exist(text: str) -> None:
    made = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for line in text.splitlines():
        first = line.partition("#")[0].split()
        if first[:1] == ["make"]:
            assert first[1] in made
        elif first[:1] == ["python"]:
            assert (ROOT / first[1]).is_file() or first[1] == "-m"
        else:
            assert first[:1] in (["pairmi"], ["pip"], ["torchrun"], []), f"not a command that this test knows: {line}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_rules_are_ones_that_can_be_written_today(page: Path) -> None:
    """No parameter, and none of a few values, under a name that it had once."""
    shared = {"commit": COMMITS, "charge": CHARGES, "mi": ESTIMATES}
    for name, options in re.findall(rf"(?<![\w-])({'|'.join(CATALOGUE)}):([a-z_]+=[\w.,=|-]+)", page.read_text()):
        for key, _, value in (part.partition("=") for part in options.rstrip(".,").split(",")):
            known = get_args(CATALOGUE[name].__annotations__.get(key))
            allowed = shared.get(key) or (known if get_origin(CATALOGUE[name].__annotations__.get(key)) is Literal else None)
            assert key in {*parameters(name), *PROBING, *shared, "draw", "defer", "late", "block"}, f"{name}:{options}"
            assert allowed is None or value.isupper() or {*value.split("|")} <= {*allowed}, f"{name}:{options}"


def test_links_lead_somewhere() -> None:
    for page in PAGES:
        for target in re.findall(r"\]\((?!http)([^)#]+)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


NUMBER = re.compile(r"(?<![\w.])[-+]?\d+(?:\.\d+)?(?![\w.]*\d)")


def measured_columns() -> list:
    """Of every table of README with a page in its head: each number under a column with the page that was named last, left of it."""
    found = []
    for head, _, body in re.findall(r"^(\|.*\|)\n(\|[-|]+\|)\n((?:\|.*\|\n)+)", (ROOT / "README.md").read_text(), re.MULTILINE):
        pages, page = [], None
        for cell in head.strip("|").split("|"):
            page = next(iter(re.findall(r"\]\((docs/[^)]+)\)", cell)), page)
            pages.append(page)
        for line in body.splitlines() if page else ():
            cells = line.strip("|").split("|")
            found += [
                (number, page, cells[0].strip()) for page, cell in zip(pages, cells, strict=True) if page for number in NUMBER.findall(cell)
            ]
    return found


def test_the_numbers_of_the_readme_are_those_of_its_pages() -> None:
    numbers = measured_columns()
    assert len(numbers) >= 15
    for number, page, rule in numbers:
        name = rule.strip("`").split("`")[0]
        lines = [line for line in (ROOT / page).read_text().splitlines() if name in line]
        assert any(number in NUMBER.findall(line) for line in lines), f"README says {number} of {rule}; {page} does not"


def test_the_readme_is_short() -> None:
    assert len([word for word in (ROOT / "README.md").read_text().split() if re.search(r"\w", word)]) <= 700


def test_the_moving_picture_shows_what_the_readme_says() -> None:
    said = re.search(r"!\[([^\]]+)\]\(docs/figures/race.svg\)", (ROOT / "README.md").read_text())
    shown = re.search(r"<title>(.*?)</title>", (ROOT / "docs/figures/race.svg").read_text())
    assert said
    assert shown
    assert re.findall(r"\d+", said[1]) == re.findall(r"(\d+) passes", shown[1])
    assert shown[1].count("valid") == 3
