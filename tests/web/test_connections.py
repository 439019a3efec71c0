import contextlib
import socket
import time

import httpx
import pytest

from pairmi.web.connections import Impatient
from serving import serving, until


async def app(scope, receive, send):
    """Everything that is asked for, and a lot of it."""
    if scope["type"] != "http":
        return
    await receive()
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"x" * (10 if scope["path"] == "/" else 50_000_000)})


@pytest.fixture
def address(monkeypatch):
    monkeypatch.setattr(Impatient, "seconds", 0.5)
    monkeypatch.setattr(Impatient, "most", 8)
    with serving(app) as found:
        yield "127.0.0.1", int(found.rsplit(":", 1)[1])


def closed_after(client: socket.socket) -> float:
    """Seconds until the server closes; what it still sends is thrown away."""
    start = time.monotonic()
    client.settimeout(10)
    try:
        while client.recv(65536):
            pass
    except ConnectionError:
        pass
    return time.monotonic() - start


@pytest.mark.parametrize("sent", [b"", b"GET / HTTP/1.1\r\nHost: local", b"POST /api/look HTTP/1.1\r\n"])
def test_half_a_header_is_not_waited_for(address, sent):
    with socket.create_connection(address) as client:
        client.sendall(sent)
        assert 0.3 < closed_after(client) < 5


def test_a_header_letter_by_letter_is_not_waited_for(address):
    def write(client):
        for letter in b"GET / HTTP/1.1\r\n" + b"X-Slow: " + b"y" * 1000:
            client.sendall(bytes([letter]))
            time.sleep(0.05)

    with socket.create_connection(address) as client, pytest.raises(ConnectionError):
        write(client)


def test_the_second_request_of_a_connection_is_not_waited_for_either(address):
    with socket.create_connection(address) as client:
        client.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert client.recv(65536).startswith(b"HTTP/1.1 200")
        time.sleep(1)
        client.sendall(b"GET / HT")
        assert 0.3 < closed_after(client) < 5


def test_an_answer_that_nobody_reads_is_dropped(address):
    with socket.create_connection(address) as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.sendall(b"GET /large HTTP/1.1\r\nHost: localhost\r\n\r\n")
        time.sleep(2)
        client.settimeout(10)
        received = b""
        with contextlib.suppress(ConnectionError):
            while chunk := client.recv(65536):
                received += chunk
        assert len(received) < 50_000_000


def test_quick_clients_are_served_between_slow_ones(address):
    slow = [socket.create_connection(address) for _ in range(7)]
    assert httpx.get(f"http://{address[0]}:{address[1]}/").text == "x" * 10
    for client in slow:
        client.close()


def test_there_is_a_limit_of_connections_and_it_frees_itself(address):
    held = [socket.create_connection(address) for _ in range(8)]
    time.sleep(0.1)
    with socket.create_connection(address) as late:
        assert closed_after(late) < 0.3
    until(lambda: httpx.get(f"http://{address[0]}:{address[1]}/").status_code == 200 if all(closed_after(c) < 5 for c in held) else False)
    for client in held:
        client.close()
