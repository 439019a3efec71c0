import asyncio
import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pairmi.selectors.catalogue import CATALOGUE
from pairmi.spec import parameters
from pairmi.web import server
from pairmi.web.server import create
from pairmi.web.work import Lane
from serving import PUZZLE, Slow, explorer, models, serving, until

HALF = "1" + "." * 15


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    with explorer(tmp_path_factory.mktemp("web")) as found:
        yield found


def lines(response):
    assert response.status_code == 200
    assert response.headers["content-type"] == "application/x-ndjson"
    return [json.loads(line) for line in response.text.splitlines()]


def post(address, path, **body):
    return httpx.post(f"{address}/api/{path}", json=body, timeout=60)


def test_the_page_and_all_it_needs_come_from_here(address):
    page = httpx.get(f"{address}/")
    assert page.headers["content-type"].startswith("text/html")
    assert "http://" not in page.text.replace("http://www.w3.org", "")
    for name, kind in (("main.js", "javascript"), ("style.css", "css"), ("icon.svg", "svg")):
        assert kind in httpx.get(f"{address}/{name}").headers["content-type"]


@pytest.mark.parametrize(
    "path", ["/../pyproject.toml", "/..%2f..%2fpyproject.toml", "/static/main.js", "/etc/passwd", "/docs", "/index.html/x"]
)
def test_no_path_reaches_the_disk(address, path):
    answer = httpx.get(address + path)
    assert (answer.status_code, answer.json()) == (404, {"error": "Not Found"})


def test_models_look_probe_decode_puzzle(address):
    assert [model["name"] for model in httpx.get(f"{address}/api/models").json()["models"]] == [
        "sudoku",
        "sudoku4",
        "markov",
        "slow",
        "words",
    ]
    look = post(address, "look", model="sudoku", canvas=PUZZLE).json()
    assert len(look["mi"]["matrix"]) == 81
    probe = lines(post(address, "probe", model="sudoku4", canvas=HALF))
    assert probe[-1]["result"]["mi"]["strongest"][0]["nats"] == 0.6931
    decoded = lines(post(address, "decode", model="sudoku4", canvas=HALF, rule="eb:budget=0"))
    passes = [line["pass"] for line in decoded if "pass" in line]
    assert decoded[-1]["result"]["passes"] == len(passes)
    assert passes[-1]["text"] == decoded[-1]["result"]["text"]
    puzzle = httpx.get(f"{address}/api/puzzle", params={"givens": 40, "seed": 1}, timeout=120).json()["canvas"]
    assert sum(letter != "." for letter in puzzle) == 40


@pytest.mark.parametrize(
    ("path", "body", "error"),
    [
        ("look", {"model": "sudoku", "canvas": "55"}, "canvas: expected 81 positions, got 2"),
        ("probe", {"model": "sudoku", "canvas": "55" + "." * 79}, "canvas: contradiction: 5 stands twice in row 1, at r1c1 and r1c2"),
        ("look", {"model": "mars", "canvas": "."}, "model 'mars' is not loaded; there are sudoku, sudoku4, markov, slow, words"),
        ("look", {"model": "sudoku", "canvas": ""}, "canvas: String should have at least 1 character"),
        ("look", {"model": "sudoku"}, "canvas: Field required"),
        ("look", {"model": "sudoku", "canvas": PUZZLE, "file": "x"}, "file: Extra inputs are not permitted"),
        ("probe", {"model": "markov", "canvas": "9....."}, "canvas: '9' at 1 is not in the alphabet of markov"),
        ("decode", {"model": "markov", "canvas": "......", "rule": "mi-gided"}, "rule 'mi-gided' is unknown; did you mean 'mi-guided'?"),
        ("decode", {"model": "markov", "canvas": "......", "temperature": 0}, "temperature: Input should be greater than or equal to 0.01"),
    ],
)  # fmt: skip
def test_bad_input_is_one_clear_line(address, path, body, error):
    answer = post(address, path, **body)
    assert (answer.status_code, answer.json()) == (422, {"error": error})


def test_what_is_not_json_is_refused(address):
    json_type = {"content-type": "application/json"}
    assert httpx.post(f"{address}/api/look", content=b"{", headers=json_type).status_code == 422
    nan = httpx.post(f"{address}/api/decode", content=b'{"model": "markov", "canvas": "......", "temperature": NaN}', headers=json_type)
    assert (nan.status_code, nan.json()["error"].startswith("temperature:")) == (422, True)
    assert httpx.post(f"{address}/api/look", content=b"x" * 20_000, headers=json_type).status_code == 413


def test_other_hosts_and_origins_are_refused_on_the_wire(address):
    for host in ("evil.example", "127.0.0.1.evil.example", "192.168.0.7:8765", "localhost.evil.example", "[::1", "", "a@localhost.x"):
        answer = httpx.get(f"{address}/", headers={"host": host})
        assert (answer.status_code, answer.text) == (400, "Invalid host header")
        assert "content-security-policy" in answer.headers
    body = {"model": "markov", "canvas": "......"}
    answer = httpx.post(f"{address}/api/look", json=body, headers={"origin": "http://evil.example"})
    assert (answer.status_code, answer.json()) == (403, {"error": "requests from other origins are refused"})
    preflight = httpx.options(f"{address}/api/look", headers={"origin": "http://evil.example", "access-control-request-method": "POST"})
    assert preflight.status_code == 403
    assert not any(name.startswith("access-control") for name in preflight.headers)


VALUE = st.one_of(
    st.integers(-3, 10**30), st.floats(), st.sampled_from(["", "entropy", "probe", "random", "structural", "attention", "x=1", "é"])
)
RULE = st.sampled_from(list(CATALOGUE)).flatmap(
    lambda name: st.dictionaries(st.sampled_from([*parameters(name), "floor", "form", "nothing"]), VALUE, max_size=3).map(
        lambda options: name + ":" + ",".join(f"{key}={value}" for key, value in options.items())
    )
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rule=RULE, seed=st.integers(0, 2**31 - 1), greedy=st.booleans(), verify=st.booleans(), temperature=st.floats(0.01, 100))
def test_no_rule_whatever_it_says_breaks_the_server(address, unchecked, rule, seed, greedy, verify, temperature):
    body = {
        "model": "markov",
        "canvas": "1.....",
        "rule": rule,
        "seed": seed,
        "greedy": greedy,
        "verify": verify,
        "temperature": temperature,
    }
    answer = post(address, "decode", **body)
    assert answer.status_code in (200, 422)
    assert answer.status_code == 422 or set(lines(answer)[-1]) in ({"result"}, {"error"})


def test_a_client_that_leaves_stops_its_work(tmp_path):
    slow = Slow(0.05)
    with explorer(tmp_path, slow) as address:
        for path, extra in (("probe", {}), ("decode", {"rule": "sequential"})):
            with httpx.stream("POST", f"{address}/api/{path}", json={"model": "slow", "canvas": "." * 16} | extra) as answer:
                next(answer.iter_lines())
            calls = slow.calls
            quiet = post(address, "look", model="markov", canvas="......")
            assert quiet.status_code == 200
            until(lambda: post(address, "probe", model="slow", canvas="123434122143432.").status_code == 200)
            assert slow.calls <= calls + 6  # not the 40 and more that were still to come


def test_a_client_that_leaves_the_queue_is_forgotten(tmp_path):
    slow = Slow(0.5)
    with explorer(tmp_path, slow) as address:
        for _ in range(6):
            with pytest.raises(httpx.ReadTimeout):
                httpx.post(f"{address}/api/look", json={"model": "slow", "canvas": HALF}, timeout=0.1)
        assert post(address, "look", model="slow", canvas=HALF).status_code == 200
        assert slow.calls <= 4


def test_a_full_queue_says_so_and_a_busy_model_blocks_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(server, "LONG", (1, 2, 60.0))
    monkeypatch.setattr(server, "find_spec", lambda name: None)
    slow, body = Slow(0.4), {"model": "slow", "canvas": "." * 16, "rule": "sequential"}
    with serving(create(models(tmp_path, slow))) as address, ThreadPoolExecutor(2) as others:
        running = [others.submit(post, address, "decode", **body)]
        until(lambda: slow.calls > 0)
        running.append(others.submit(post, address, "decode", **body | {"canvas": "123434122143432."}))
        time.sleep(0.5)
        refusal = post(address, "decode", **body)
        assert (refusal.status_code, refusal.headers["retry-after"]) == (503, "2")
        assert refusal.json() == {"error": "the model is busy with 2 other requests; try again in a few seconds"}
        assert httpx.get(f"{address}/").elapsed.total_seconds() < 1
        assert post(address, "look", model="markov", canvas="......").elapsed.total_seconds() < 1
        assert not running[0].done()
        assert [answer.result(60).status_code for answer in running] == [200, 200]


def test_work_that_takes_too_long_ends_with_a_line(tmp_path, monkeypatch):
    monkeypatch.setattr(server, "LONG", (1, 8, 0.3))
    monkeypatch.setattr(server, "find_spec", lambda name: None)
    with serving(create(models(tmp_path, Slow(0.1)))) as address:
        told = lines(post(address, "decode", model="slow", canvas="." * 16, rule="sequential"))
        assert told[-1] == {"error": "stopped after 0.3 s; choose a quicker rule or estimate, or give more positions"}


def test_many_clients_at_once_are_all_served(address):
    async def client(session, n):
        statuses = []
        for turn in range(3):
            canvas = "".join("123"[(n + turn + i) % 3] if i < turn else "." for i in range(6))
            body = {"model": "markov", "canvas": canvas}
            statuses.append((await session.post(f"{address}/api/look", json=body)).status_code)
        return statuses

    async def all_of_them():
        limits = httpx.Limits(max_connections=60)
        async with httpx.AsyncClient(limits=limits, timeout=60) as session:
            return await asyncio.gather(*(client(session, n) for n in range(60)))

    assert {status for statuses in asyncio.run(all_of_them()) for status in statuses} == {200}


def test_closing_forgets_what_waits():
    lane, go = Lane(1, 8, 10.0), threading.Event()
    running = lane.submit(lambda watch: {"done": go.wait(10)})[1]
    waiting = lane.submit(lambda watch: {})[1]
    lane.close()
    go.set()
    assert running.result(10) == {"done": True}
    assert waiting.cancelled()
