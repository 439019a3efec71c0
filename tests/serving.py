"""The explorer on a free port of this machine, with small models and one that takes its time."""

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch
import uvicorn

from heads import low_rank, save_head
from pairmi.backbones.tabular import Tabular
from pairmi.loading import load, with_head
from pairmi.model import Model
from pairmi.types import Prediction, Tokens
from pairmi.web.connections import configuration
from pairmi.web.guard import Guard
from pairmi.web.server import create

PUZZLE = "97.2.....2.3.8.69...54...7.7.........3....1....9.75..41.75.8..33.2..1......7....."


class Slow:
    """A world in which every call takes a while; it counts them."""

    def __init__(self, seconds: float) -> None:
        self.world, self.seconds, self.calls = load("sudoku4").backbone, seconds, 0
        self.vocab, self.length = self.world.vocab, self.world.length

    def __call__(self, tokens: Tokens) -> Prediction:
        self.calls += 1
        time.sleep(self.seconds)
        return self.world(tokens)


def words() -> Model:
    """Four sentences over symbols of several letters."""
    symbols = ("the", "cat", "constitutionally", "sleeps", "barks", "dog")
    support = torch.tensor([[0, 1, 3], [0, 5, 4], [0, 5, 3], [2, 1, 3]])
    return Model(Tabular(support, torch.ones(4), symbols), "words")


def models(folder: Path, slow: Slow | None = None) -> dict[str, Model]:
    """The Sudoku model with a head of random weights, two exact worlds, and a slow one."""
    sudoku = load("sudoku")
    head = low_rank(width=128, symbols=9, length=81)
    guided = with_head(sudoku, save_head(folder / "head.safetensors", head, sudoku, (sudoku.backbone.config.depth,)))
    return {
        "sudoku": guided,
        "sudoku4": load("sudoku4"),
        "markov": load("markov"),
        "slow": Model(slow or Slow(0.02), "slow"),
        "words": words(),
    }


@contextmanager
def serving(app: Guard) -> Iterator[str]:
    """The address of a running server, which ends with the block."""
    listening = socket.create_server(("127.0.0.1", 0), backlog=512)
    server = uvicorn.Server(configuration(app))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    until(lambda: server.started)
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(10)
        listening.close()


def until(condition: object, seconds: float = 20.0) -> None:
    """Wait for something to become true."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it never happened"
        time.sleep(0.02)


@contextmanager
def explorer(folder: Path, slow: Slow | None = None) -> Iterator[str]:
    with serving(create(models(folder, slow))) as address:
        yield address
