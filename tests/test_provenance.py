import subprocess
from pathlib import Path

import pytest

import pairmi
from pairmi import provenance as module
from pairmi.provenance import provenance


def made(folder: Path) -> str:
    """A repository with one commit."""
    who = ["-c", "user.name=x", "-c", "user.email=x@y"]
    for command in (["init", "-q"], ["add", "-A"], [*who, "commit", "-q", "--allow-empty", "-m", "x"]):
        subprocess.run(["git", *command], cwd=folder, check=True)
    return subprocess.run(["git", "rev-parse", "HEAD"], cwd=folder, check=True, capture_output=True, text=True).stdout.strip()


def package(folder: Path, project: bool = True) -> Path:
    (folder / "src" / "pairmi").mkdir(parents=True)
    if project:
        (folder / "pyproject.toml").touch()
    return folder / "src" / "pairmi"


def test_its_own_checkout_is_named_by_its_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PACKAGE", package(tmp_path))
    commit = made(tmp_path)
    assert provenance()["commit"] == commit
    assert {"pairmi", "torch", "python", "machine"} < provenance().keys()


@pytest.mark.parametrize("inside", [".venv/lib/python3.11/site-packages/pairmi", "vendor/src/pairmi", "src/pairmi"])
def test_another_repository_is_not_recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, inside: str) -> None:
    (tmp_path / inside).mkdir(parents=True)
    (tmp_path / "vendor").mkdir(exist_ok=True)
    (tmp_path / "vendor" / "pyproject.toml").touch()
    made(tmp_path)
    monkeypatch.setattr(module, "PACKAGE", tmp_path / inside)
    assert provenance()["commit"] == f"release {pairmi.__version__}"


def test_without_git_the_release_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PACKAGE", package(tmp_path))
    made(tmp_path)
    monkeypatch.setenv("PATH", "")
    assert provenance()["commit"] == f"release {pairmi.__version__}"


def test_a_repository_without_a_commit_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PACKAGE", package(tmp_path))
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    assert provenance()["commit"] == f"release {pairmi.__version__}"
