"""What people install: the wheel, in a fresh virtual environment that has its dependencies and nothing else.

The environment's site-packages holds the wheel, unpacked by pip, and links to what the wheel's own metadata requires (and what that
requires, and so on) in the site-packages that these tests run in: as if pip had fetched it, without the minutes and the gigabyte.
"""

import re
import signal
import subprocess
import sys
import time
import urllib.request
import venv
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[1]
BOUND = 14_000_000  # bytes: nearly all of it weights


def needed(requirement: Requirement, found: dict[str, set[str]]) -> None:
    """A requirement and all that it requires, as names with their extras."""
    new = {"", *requirement.extras} - found.get(requirement.name, set())
    if not new or (requirement.marker and not requirement.marker.evaluate({"extra": ""})):
        return
    try:
        requires = metadata.requires(requirement.name) or []
    except metadata.PackageNotFoundError:
        return  # such as the CUDA libraries of a torch that has none
    found.setdefault(requirement.name, set()).update(new)
    for text in requires:
        other = Requirement(text)
        if other.marker is None or any(other.marker.evaluate({"extra": extra}) for extra in new):
            other.marker = None
            needed(other, found)


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("dist")
    subprocess.run([sys.executable, "-m", "build", "--no-isolation", "--outdir", out, ROOT], check=True, capture_output=True)
    return out


def installed(dist: Path, folder: Path, *extras: str) -> Path:
    """The programs of a fresh environment with the wheel and its dependencies."""
    venv.create(folder, with_pip=False)
    site = next(folder.glob("lib/python*/site-packages"))
    wheel = next(dist.glob("*.whl"))
    pip = [sys.executable, "-m", "pip", "--python", folder / "bin/python", "install", "--quiet", "--no-deps", "--no-index", wheel]
    subprocess.run(pip, check=True, capture_output=True)
    about = metadata.Distribution.at(next(site.glob("pairmi-*.dist-info")))
    found: dict[str, set[str]] = {}
    for text in about.requires or []:
        requirement = Requirement(text)
        if requirement.marker is None or any(requirement.marker.evaluate({"extra": extra}) for extra in extras):
            requirement.marker = None
            needed(requirement, found)
    for name in found:
        distribution = metadata.distribution(name)
        for top in {file.parts[0] for file in distribution.files or [] if file.parts[0] not in ("..", "__pycache__")}:
            if not (site / top).exists():
                (site / top).symlink_to(Path(str(distribution.locate_file(top))))
    return folder / "bin"


@pytest.fixture(scope="module")
def programs(dist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return installed(dist, tmp_path_factory.mktemp("bare") / "venv")


def run(program: Path, *arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    clean = {"PATH": str(program.parent), "HOME": str(cwd), "OMP_NUM_THREADS": "1"}
    return subprocess.run([program, *arguments], cwd=cwd, env=clean, capture_output=True, text=True, check=False)


def test_wheel_and_sdist_are_whole_and_small(dist: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = sorted(dist.iterdir())
    checked = subprocess.run([sys.executable, "-m", "twine", "check", "--strict", *files], capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout
    wheel = next(dist.glob("*.whl"))
    with capsys.disabled():
        print(f"\n{wheel.name}: {wheel.stat().st_size / 1e6:.1f} MB")
    assert len(files) == 2
    assert wheel.stat().st_size < BOUND


def test_without_extras_it_brings_what_it_says_and_no_more(programs: Path, tmp_path: Path) -> None:
    for module in ("torch", "numpy", "safetensors"):
        assert run(programs / "python", "-c", f"import {module}", cwd=tmp_path).returncode == 0
    for module in ("transformers", "scipy", "matplotlib", "fastapi", "pyarrow", "numba", "diffusers", "huggingface_hub"):
        assert "ModuleNotFoundError" in run(programs / "python", "-c", f"import {module}", cwd=tmp_path).stderr


def test_the_lines_of_the_readme_run_without_extras(programs: Path, tmp_path: Path) -> None:
    blocks = re.findall(r"^```python\n(.*?)^```", (ROOT / "README.md").read_text(), re.MULTILINE | re.DOTALL)
    assert blocks
    for text in blocks:
        done = run(programs / "python", "-c", text, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert "nats" in done.stdout
        assert "site-packages" in run(programs / "python", "-c", "import pairmi; print(pairmi.__file__)", cwd=tmp_path).stdout


def test_the_command_line_runs_and_names_the_extra_that_is_missing(programs: Path, tmp_path: Path) -> None:
    began = time.monotonic()
    assert "which unknown positions depend on each other" in run(programs / "pairmi", "--help", cwd=tmp_path).stdout
    assert time.monotonic() - began < 10
    told = run(programs / "pairmi", "explore", cwd=tmp_path)
    assert told.returncode == 2
    assert "pip install 'pairmi[web]'" in told.stderr


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("data sudoku", "pairmi data: Sudoku puzzles: numba is missing; pip install 'pairmi[sudoku]'\n"),
        ("plan --states 3 --sample 1", "pairmi plan: Sudoku puzzles: numba is missing; pip install 'pairmi[sudoku]'\n"),
        ("plan --backbone sudoku4 --states 3 --sample 1", ""),
        ("labels --backbone sudoku4 --out out --states 3", "pairmi labels: labels: sudoku4 is no 9x9 Sudoku model and none of proteins"),
        ("fit --backbone sudoku4 --out out", "pairmi fit: fit: model 'sudoku4' needs data: "),
    ],
)
def test_without_numba_the_extra_is_named_where_it_is_needed(line: str, said: str, tmp_path: Path) -> None:
    code = "import sys; sys.modules['numba'] = None; from pairmi.cli import main; sys.exit(main(sys.argv[1:]))"
    told = subprocess.run([sys.executable, "-c", code, *line.split()], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert told.returncode == (2 if said else 0), told.stderr
    assert told.stderr.startswith(said)


def test_the_explorer_opens(dist: Path, tmp_path: Path) -> None:
    programs = installed(dist, tmp_path / "venv", "web")
    clean = {"PATH": str(programs), "HOME": str(tmp_path)}
    arguments = [programs / "pairmi", "explore", "--backbone", "sudoku4", "--port", "0", "--no-browser"]
    with subprocess.Popen(arguments, cwd=tmp_path, env=clean, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        try:
            assert process.stdout is not None
            address = next(found[0] for line in process.stdout if (found := re.search(r"http://\S+", line)))
            assert b"<title>" in urllib.request.urlopen(address.split("#")[0], timeout=30).read()
        finally:
            process.send_signal(signal.SIGINT)
