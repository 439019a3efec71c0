"""One self-contained HTML page of a map: hover or arrow keys tell the numbers, in light and in dark, with nothing from elsewhere."""

import base64
import json
from html import escape
from importlib.resources import files

import numpy as np

from pairmi.pairs.scores import Scores

LEVELS = 65535  # to which scores are rounded
STRONGEST = 12  # pairs in the list beside the map


def height(scores: Scores) -> int:
    """Of the frame that holds the page, in pixels."""
    return 190 + min(720, max(360, 12 * len(scores.shown)))


def html(scores: Scores) -> str:
    """The page."""
    square = np.nan_to_num(scores.square)
    low, high = float(square.min(initial=0)), float(square.max(initial=0))
    levels = np.round((square - low) / (high - low or 1.0) * LEVELS).astype("<u2")
    place = {position: n for n, position in enumerate(scores.shown)}
    data = {
        "title": scores.title,
        "unit": scores.unit,
        "directed": scores.directed,
        "labels": scores.labels,
        "names": [scores.names[i] for i in scores.shown],
        "symbols": [scores.symbols[i] for i in scores.shown],
        "low": low,
        "high": high,
        "ceiling": scores.ceiling,
        "strongest": [[place[i], place[j], value] for i, j, value in scores.strongest(STRONGEST)],
        "levels": base64.b64encode(levels.tobytes()).decode(),
    }
    inside = json.dumps(data).replace("<", "\\u003c")  # no name can end the script
    template = (files("pairmi.pairs") / "map.html").read_text(encoding="utf-8")
    return template.replace("{{title}}", escape(scores.title)).replace("{{data}}", inside)
