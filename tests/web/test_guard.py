import asyncio
import json
import socket

import pytest

from pairmi.web.guard import CLIENTS, HEADERS, Guard, Rate, is_loopback, trusted


async def echo(scope, receive, send):
    body = (await receive())["body"]
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": body})


def ask(guard, headers, path="/api/look", chunks=(b"",), stall=False):
    """Status, headers and body of one request."""
    sent, waiting = [], list(chunks)

    async def receive():
        if not waiting and stall:
            await asyncio.sleep(60)
        body = waiting.pop(0)
        return {"type": "http.request", "body": body, "more_body": bool(waiting) or stall}

    async def send(message):
        sent.append(message)

    raw = [(name.encode(), value.encode()) for name, value in headers.items()]
    scope = {"type": "http", "path": path, "headers": raw, "client": ("127.0.0.1", 5)}
    asyncio.run(guard(scope, receive, send))
    return sent[0]["status"], dict(sent[0]["headers"]), b"".join(message.get("body", b"") for message in sent)


def refused(guard, headers, status, error, **more):
    found, fields, body = ask(guard, headers, **more)
    assert (found, json.loads(body)) == (status, {"error": error})
    assert b"content-security-policy" in fields
    return fields


@pytest.mark.parametrize("host", ["127.0.0.1:8765", "localhost:8765", "LOCALHOST", "[::1]:8765", "127.0.0.1"])
def test_this_machine_is_served_with_safe_headers(host):
    status, headers, body = ask(Guard(echo), {"host": host}, chunks=(b"a", b"b"))
    assert (status, body) == (200, b"ab")
    assert {name.decode(): value.decode() for name, value in headers.items()} == HEADERS
    assert not any(name.startswith(b"access-control") for name in headers)


def test_the_names_of_a_server_are_its_own():
    assert trusted("127.0.0.1") == ["127.0.0.1", "[::1]", "localhost"]
    assert {"box.lan", "proxy.lan", "localhost", socket.gethostname()} <= set(trusted("box.lan", ["proxy.lan"]))
    assert "[fe80::1]" in trusted("fe80::1")


def test_a_machine_whose_own_name_means_nothing_still_has_names(monkeypatch):
    monkeypatch.setattr(socket, "gethostname", lambda: "no.such.host.invalid")
    assert "0.0.0.0" in trusted("0.0.0.0")


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "https://evil.example"},
        {"origin": "null"},
        {"origin": "http://localhost:99"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
    ],
)
def test_other_origins_are_refused(headers):
    fields = refused(Guard(echo), {"host": "localhost:8765"} | headers, 403, "requests from other origins are refused")
    assert not any(name.startswith(b"access-control") for name in fields)


def test_our_own_page_and_links_from_elsewhere_are_served():
    own = {"host": "localhost:8765", "origin": "http://localhost:8765", "sec-fetch-site": "same-origin"}
    assert ask(Guard(echo), own)[0] == 200
    assert ask(Guard(echo), {"host": "localhost:8765", "sec-fetch-site": "cross-site"}, path="/")[0] == 200


@pytest.mark.parametrize("extra", [{"content-length": "17000"}, {"content-length": "-1"}, {"content-length": "many"}, {}])
def test_large_bodies_are_refused_whatever_they_say(extra):
    guard = Guard(echo, largest=16_384)
    refused(
        guard, {"host": "localhost"} | extra, 413, "a request may have 16384 bytes at most, and 10 s to arrive", chunks=(b"x" * 9000,) * 2
    )


def test_slow_bodies_are_refused():
    guard = Guard(echo, patience=0.05)
    refused(guard, {"host": "localhost"}, 413, "a request may have 16384 bytes at most, and 0.05 s to arrive", chunks=(b"x",), stall=True)


def test_the_rate_of_an_address_is_bounded():
    guard = Guard(echo, rate=Rate(per_second=0.001, burst=3.0))
    assert [ask(guard, {"host": "localhost"})[0] for _ in range(4)] == [200, 200, 200, 429]
    fields = refused(guard, {"host": "localhost"}, 429, "more than 0.001 requests a second; slow down")
    assert fields[b"retry-after"] == b"1"
    assert ask(guard, {"host": "localhost"}, path="/style.css")[0] == 200


def test_a_reserve_fills_up_again_and_addresses_are_forgotten():
    rate = Rate(per_second=1e6, burst=1.0)
    assert all(rate.allow("a") for _ in range(3))
    for n in range(CLIENTS + 5):
        rate.allow(str(n))
    assert len(rate.left) == CLIENTS


def test_only_http_and_its_lifespan_come_through():
    seen = []

    async def app(scope, receive, send):
        seen.append(scope["type"])

    for kind in ("lifespan", "websocket"):
        asyncio.run(Guard(app)({"type": kind}, None, None))
    assert seen == ["lifespan"]


@pytest.mark.parametrize(
    ("host", "own"), [("127.0.0.1", True), ("127.8.8.8", True), ("::1", True), ("localhost", True), ("0.0.0.0", False), ("x.lan", False)]
)
def test_what_is_this_machine(host, own):
    assert is_loopback(host) is own
