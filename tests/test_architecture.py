"""The map in the design, checked against the code itself."""

import ast
from pathlib import Path

import pytest

import pairmi

ROOT = Path(pairmi.__file__).parent
MODULES = {".".join(file.relative_to(ROOT).with_suffix("").parts): file for file in sorted(ROOT.rglob("*.py"))}
LEVELS = {
    0: {"types"},
    1: {"info", "model", "provenance", "results", "deferring", "optional"},
    2: {"draw", "blocks"},
    3: {"counting"},
    4: {"backbones", "mi", "selectors", "tasks", "commit"},
    5: {"decoding", "loading", "spread", "store"},
    6: {"spec", "canvases", "explain", "pairs", "pricing"},
    7: {"api", "mapping", "training"},
    8: {"bench", "tuning"},
    9: {"web", "fitting", "integrations"},
    10: {"commands"},
    11: {"cli"},
}
LEVEL = {package: level for level, packages in LEVELS.items() for package in packages}
CORE = [name for name in MODULES if LEVEL.get(name.split(".")[0], 11) <= 6]


def imports(file: Path) -> set[str]:
    """The modules of pairmi that a file imports, wherever in it."""
    found = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module == "pairmi":
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("pairmi."):
            found.add(node.module.removeprefix("pairmi."))
        elif isinstance(node, ast.Import):
            found |= {alias.name.removeprefix("pairmi.") for alias in node.names if alias.name.startswith("pairmi.")}
        assert not (isinstance(node, ast.ImportFrom) and node.level), f"{file}: relative import"
    return found


def functions(file: Path) -> list[ast.FunctionDef]:
    return [node for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.FunctionDef)]


def test_every_module_has_its_level() -> None:
    assert {name.split(".")[0] for name in MODULES} - {"__init__"} <= set(LEVEL)


@pytest.mark.parametrize("name", [name for name in MODULES if name != "__init__"])
def test_imports_only_point_down(name: str) -> None:
    package = name.split(".")[0] if not name.endswith("__main__") else "cli"  # where a program starts, it stands above everything
    for imported in imports(MODULES[name]):
        other = imported.split(".")[0]
        down = LEVEL[other] < LEVEL[package]
        assert down or other == package, f"{name} imports {imported}"


def test_types_import_nothing_of_ours() -> None:
    assert imports(MODULES["types"]) == set()


@pytest.mark.parametrize("name", [name for name in MODULES if name.startswith("selectors.") and "catalogue" not in name])
def test_a_rule_needs_the_nouns_and_pure_functions_only(name: str) -> None:
    shared = {"types", "info", "draw", "selectors.ranking"}
    parts = {"selectors.mi_bound": {"selectors.charge"}}
    assert imports(MODULES[name]) - shared <= parts.get(name, set())


@pytest.mark.parametrize("name", MODULES)
def test_modules_are_small_and_say_what_they_are(name: str) -> None:
    text = MODULES[name].read_text()
    assert len(text.splitlines()) <= 300
    says = ast.get_docstring(ast.parse(text))
    assert says is not None
    assert "\n" not in says
    assert says.endswith(".")
    assert "from __future__ import annotations" not in text
    assert name.split(".")[-1] not in {"utils", "helpers", "common", "misc", "base"}


@pytest.mark.parametrize("name", MODULES)
def test_functions_fit_on_a_screen(name: str) -> None:
    long = [node.name for node in functions(MODULES[name]) if node.end_lineno - node.lineno + 1 > 60]
    assert long == []


@pytest.mark.parametrize("name", CORE)
def test_the_core_prints_nothing_and_uses_no_global_randomness(name: str) -> None:
    calls = [node for node in ast.walk(ast.parse(MODULES[name].read_text())) if isinstance(node, ast.Call)]
    called = {ast.unparse(call.func) for call in calls}
    assert not called & {"print", "input", "torch.manual_seed", "hasattr"}
    loaded = [ast.unparse(call) for call in calls if ast.unparse(call.func) == "torch.load"]  # a pickle: tensors only, never code
    assert all("weights_only=True" in text for text in loaded)


@pytest.mark.parametrize("name", MODULES)
def test_no_error_is_swallowed(name: str) -> None:
    handlers = [node for node in ast.walk(ast.parse(MODULES[name].read_text())) if isinstance(node, ast.ExceptHandler)]
    assert all(handler.type is not None and ast.unparse(handler.type) not in ("Exception", "BaseException") for handler in handlers)
