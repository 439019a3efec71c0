"""What every request passes before anything looks at it: origin, size, rate; and the headers of every answer."""

import asyncio
import ipaddress
import socket
import time
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

HEADERS = {
    "content-security-policy": "default-src 'self'; img-src 'self' blob: data:; object-src 'none'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cache-control": "no-store",
}
CLIENTS = 1024  # whose rates are remembered


def is_loopback(host: str) -> bool:
    """Whether a host name or address is this machine's own."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def trusted(host: str, others: Sequence[str] = ()) -> list[str]:
    """The names in the Host header under which a server that listens on `host` answers, for Starlette's `TrustedHostMiddleware`.

    A foreign page can make a browser send requests here by a name of its own that it points to this machine; the Host header tells.
    """
    names = {"localhost", "127.0.0.1", "::1", host, *others}
    if not is_loopback(host):
        names |= {socket.gethostname(), socket.getfqdn(), *_addresses()}
    return sorted(f"[{name}]" if ":" in name else name for name in names)


def _addresses() -> set[str]:
    """The addresses of this machine, as far as its own name tells."""
    try:
        return {str(found[4][0]).split("%")[0] for found in socket.getaddrinfo(socket.gethostname(), None)}
    except OSError:
        return set()


@dataclass
class Rate:
    """So many requests a second from each address, with a reserve of `burst`."""

    per_second: float = 200.0
    burst: float = 400.0
    left: "OrderedDict[str, tuple[float, float]]" = field(default_factory=OrderedDict)  # address -> (tokens, when)

    def allow(self, address: str) -> bool:
        """Take one request from the reserve of an address, if it has one."""
        now = time.monotonic()
        tokens, when = self.left.pop(address, (self.burst, now))
        tokens = min(self.burst, tokens + (now - when) * self.per_second)
        self.left[address] = (tokens - 1 if tokens >= 1 else tokens, now)
        if len(self.left) > CLIENTS:
            self.left.popitem(last=False)
        return tokens >= 1


@dataclass
class Guard:
    """An ASGI application around another one; requests across origins are refused, and no answer ever allows them."""

    app: ASGIApp
    rate: Rate = field(default_factory=Rate)
    largest: int = 16_384  # bytes of a body
    patience: float = 10.0  # seconds that a body may take to arrive

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse, or hand on."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self.app(scope, receive, send)
            return
        headers = Headers(raw=scope["headers"])
        refused = self._refusal(scope, headers)
        body = b"" if refused else await self._body(headers, receive)
        if body is None:
            refused = (413, f"a request may have {self.largest} bytes at most, and {self.patience:g} s to arrive")
        if refused:
            status, error = refused
            more = {"connection": "close"} | ({"retry-after": "1"} if status == 429 else {})
            await JSONResponse({"error": error}, status, more)(scope, receive, _with_headers(send))
        else:
            await self.app(scope, _replaying(body or b"", receive), _with_headers(send))

    def _refusal(self, scope: Scope, headers: Headers) -> tuple[int, str] | None:
        named, origin, site = headers.get("host", ""), headers.get("origin"), headers.get("sec-fetch-site", "none")
        inner = scope["path"].startswith("/api")
        if (origin is not None and origin != f"http://{named}") or (inner and site not in ("same-origin", "none")):
            return 403, "requests from other origins are refused"
        if inner and not self.rate.allow((scope.get("client") or ("?", 0))[0]):
            return 429, f"more than {self.rate.per_second:g} requests a second; slow down"
        return None

    async def _body(self, headers: Headers, receive: Receive) -> bytes | None:
        """The whole body; None if it is too long or too slow."""
        length, body, more = headers.get("content-length", "0"), b"", True
        if not length.isdigit() or int(length) > self.largest:
            return None
        try:
            async with asyncio.timeout(self.patience):
                while more and len(body) <= self.largest:
                    message = await receive()
                    body += message.get("body", b"")
                    more = message.get("more_body", False)
        except TimeoutError:
            return None
        return body if len(body) <= self.largest else None


def _replaying(body: bytes, receive: Receive) -> Receive:
    """First the body, then what the client does next: nothing, or leave."""
    pending = [body]

    async def replay() -> Message:
        return {"type": "http.request", "body": pending.pop(), "more_body": False} if pending else await receive()

    return replay


def _with_headers(send: Send) -> Send:
    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            MutableHeaders(scope=message).update(HEADERS)
        await send(message)

    return sending
