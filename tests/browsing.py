"""Where Chromium is, and how to find things in the page."""

import shutil

from serving import PUZZLE

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update", "--disable-sync",
             "--no-first-run", "--disable-quic"]  # fmt: skip
HALF = "1" + "." * 15
OPEN = PUZZLE.index(".")


def canvas_of(page):
    return page.locator("#canvas").input_value()


def cell(page, i):
    return page.locator(f"#board .cell[data-i='{i}']")
