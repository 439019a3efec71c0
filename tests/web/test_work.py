import threading
import time

import pytest
import torch

from pairmi import api, canvases
from pairmi.loading import load
from pairmi.types import PairmiError
from pairmi.web.work import PIECE, Busy, Lane, Stopped, Watch, watched
from serving import until

FOUR = load("sudoku4")
EMPTY = torch.full((20, 16), 4)


def test_a_watched_model_says_the_same():
    watch = Watch()
    expected, found = FOUR(EMPTY), watched(FOUR, watch)(EMPTY)
    assert torch.equal(found.log_probs, expected.log_probs)
    assert watch.rows == 20
    assert watched(FOUR, watch).task.position(0) == "r1c1"


def test_stopping_ends_work_at_the_next_call(monkeypatch):
    monkeypatch.setattr("pairmi.web.work.PAUSE", 0.0)
    watch = Watch(tell=lambda event: watch.stop() if event["rows"] else None)
    with pytest.raises(Stopped):
        api.mutual_information(watched(FOUR, watch), "1" + "." * 15)
    assert watch.rows <= 2 * PIECE


def test_time_is_bounded_from_when_work_begins():
    watch = Watch(seconds=0.0)
    watched(FOUR, watch)(EMPTY)
    watch.begin()
    time.sleep(0.01)
    with pytest.raises(PairmiError, match="stopped after 0 s; choose a quicker rule or estimate"):
        watched(FOUR, watch)(EMPTY)


def test_a_lane_has_room_for_so_much():
    lane, go = Lane(1, 2, 10.0), threading.Event()
    futures = [lane.submit(lambda watch: {"done": go.wait(10)})[1] for _ in range(2)]
    with pytest.raises(Busy, match="the model is busy with 2 other requests; try again"):
        lane.submit(lambda watch: {})
    go.set()
    assert [future.result(10) for future in futures] == [{"done": True}] * 2
    until(lambda: lane.taken == 0)
    assert lane.submit(lambda watch: {"again": True})[1].result(10) == {"again": True}
    lane.close()


def test_what_waits_can_be_taken_back():
    lane, go = Lane(1, 8, 10.0), threading.Event()
    lane.submit(lambda watch: {"done": go.wait(10)})
    _, waiting = lane.submit(lambda watch: pytest.fail("nobody wanted this"))
    assert waiting.cancel()
    assert lane.taken == 1
    go.set()
    until(lambda: lane.taken == 0)
    lane.close()


def test_an_error_stays_with_its_work():
    lane = Lane(1, 8, 10.0)
    with pytest.raises(PairmiError, match="expected 16 positions"):
        lane.submit(lambda watch: {"tokens": canvases.tokenise(FOUR, "1.")})[1].result(10)
    assert lane.submit(lambda watch: {"fine": True})[1].result(10) == {"fine": True}
    lane.close()
