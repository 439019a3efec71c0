import re
import signal
import socket
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from pairmi.cli import main
from pairmi.commands import explore


def started(*arguments):
    """The command in a process of its own, and its address."""
    code = "import sys; from pairmi.cli import main; sys.exit(main(sys.argv[1:]))"
    command = [sys.executable, "-c", code, "explore", "--port", "0", "--no-browser", *arguments]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    found = re.match(r"pairmi explorer: (http://\S+)  \(Ctrl\+C ends it\)", process.stdout.readline())
    assert found, process.stderr.read()
    return process, found[1]


def test_it_serves_the_page_on_loopback_until_interrupted():
    process, address = started("--backbone", "sudoku4", "markov")
    try:
        assert address.startswith("http://127.0.0.1:")
        assert "<title>pairmi explorer</title>" in httpx.get(address, timeout=30).text
        assert [model["name"] for model in httpx.get(f"{address}api/models").json()["models"]] == ["sudoku4", "markov"]
    finally:
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=120)
    assert process.returncode in (0, 130)
    assert "Traceback" not in errors


def test_another_host_comes_with_a_warning():
    process, address = started("--backbone", "markov", "--host", "0.0.0.0")
    try:
        assert httpx.get(address, timeout=30).status_code == 200
    finally:
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=120)
    assert "warning: anybody who can reach 0.0.0.0 can use this machine's CPU" in errors


@pytest.mark.parametrize(
    ("arguments", "state"),
    [
        (["sudoku4", "--canvas", "1" + "." * 15], f"model=sudoku4&canvas=1{'.' * 15}"),
        (["markov", "--canvas", "1....."], "model=markov&canvas=1.....&view=sequence"),
    ],
)
def test_a_canvas_is_in_the_address_that_it_prints(arguments, state):
    process, address = started("--backbone", *arguments)
    try:
        assert address.split("#")[1] == state
        assert httpx.get(address.split("#")[0], timeout=60).is_success  # before that an interrupt may find nobody who listens
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=120)


def test_a_port_that_is_taken_is_one_clear_line(capsys):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert main(["explore", "--port", str(port), "--backbone", "markov"]) == 2
    out, error = capsys.readouterr()
    assert out == ""
    assert re.fullmatch(rf"pairmi explore: cannot listen on 127.0.0.1, port {port} \(.*\); choose another --port or --host\n", error)


@pytest.mark.parametrize(
    "arguments",
    [
        ["--port", "70000"],
        ["--host", "no.such.host.invalid"],
        ["--backbone", "mars", "--port", "0"],
        ["--backbone", "markov", "--canvas", "x.....", "--port", "0"],
    ],
)
def test_bad_input_is_one_line_and_exit_2(capsys, arguments):
    assert main(["explore", *arguments]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_without_the_extra_it_says_what_to_install(capsys, monkeypatch):
    monkeypatch.setattr(explore, "find_spec", lambda name: None)
    assert main(["explore"]) == 2
    assert capsys.readouterr().err == "pairmi explore: explore needs a web server: pip install 'pairmi[web]'\n"


def test_the_page_stays_small():
    pages = Path(explore.__file__).parents[1] / "web" / "static"
    assert sum(len(file.read_text().splitlines()) for file in pages.iterdir()) <= 1700
