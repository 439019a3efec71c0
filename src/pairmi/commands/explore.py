"""`pairmi explore`."""

import argparse
import os
import socket
import sys
import threading
import webbrowser
from importlib.util import find_spec
from urllib.parse import urlencode

import torch

from pairmi.commands.canvases import canvas_lines
from pairmi.loading import EMBEDDED, load
from pairmi.model import Model
from pairmi.types import PairmiError
from pairmi.web.api import read, side


def run(options: argparse.Namespace) -> None:
    """`pairmi explore`: load the models, listen, say where, and serve until interrupted."""
    if find_spec("fastapi") is None or find_spec("uvicorn") is None:
        raise PairmiError("explore needs a web server: pip install 'pairmi[web]'")
    import uvicorn

    from pairmi.web.connections import configuration
    from pairmi.web.guard import is_loopback, trusted
    from pairmi.web.server import create

    torch.set_num_threads(1)  # two lanes of work: a core for each
    listening = _listen(options.host, options.port)
    names = options.backbone or [name for name in EMBEDDED if name != "protein" or find_spec("transformers") is not None]
    models = {name: load(name, head=options.head if name == names[0] else None) for name in names}
    if not is_loopback(options.host):
        print(f"pairmi explore: warning: anybody who can reach {options.host} can use this machine's CPU", file=sys.stderr)
    address = f"http://{_shown(options.host)}:{listening.getsockname()[1]}/" + _state(models[names[0]], options.canvas)
    print(f"pairmi explorer: {address}  (Ctrl+C ends it)", flush=True)
    config = configuration(create(models, trusted(options.host, options.allow_host)))
    if not options.no_browser and (sys.platform in ("darwin", "win32") or {"DISPLAY", "WAYLAND_DISPLAY"} & os.environ.keys()):
        threading.Timer(0.5, webbrowser.open, (address,)).start()
    uvicorn.Server(config).run(sockets=[listening])


def _state(model: Model, canvas: str | None) -> str:
    """What the address carries behind the '#': the first model with a canvas, as the page's own links do."""
    if canvas is None:
        return ""
    text = next(canvas_lines(canvas))[1]
    read(model, text)
    return "#" + urlencode({"model": model.name, "canvas": text} | ({} if side(model) else {"view": "sequence"}))


def _listen(host: str, port: int) -> socket.socket:
    """A socket that listens there; port 0 = any free one."""
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((host, port), family=family, backlog=512)
    except (OSError, OverflowError) as error:
        raise PairmiError(f"cannot listen on {host}, port {port} ({error}); choose another --port or --host") from None


def _shown(host: str) -> str:
    return f"[{host}]" if ":" in host else host
