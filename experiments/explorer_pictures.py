"""Pictures of the explorer for the documentation, taken in Chromium. They go to docs/figures/explorer_*.png.

python experiments/explorer_pictures.py [--out docs/figures]
"""

import argparse
import re
import shutil
import subprocess
import sys
from pathlib import Path

from playwright.sync_api import Page, expect, sync_playwright

CODE = "import sys; from pairmi.cli import main; sys.exit(main(sys.argv[1:]))"
DESKTOP, PHONE = {"width": 1440, "height": 900}, {"width": 390, "height": 844}
HARD = "97.2.....2.3.8.69...54...7.7.........3....1....9.75..41.75.8..33.2..1......7....."
PICTURES = {  # name: theme, screen, state, what to wait for
    "board": ("light", DESKTOP, "mi=probe&cell=61", "map"),
    "rest": ("light", DESKTOP, "", "pairs"),
    "steps": ("dark", DESKTOP, "rule=mi-bound&pass=3&cell=19", "steps"),
    "race": ("light", DESKTOP, "view=race&race=sequential+top-k:k=8+eb:budget%3D0.1+mi-guided:budget%3D0.1", "race"),
    "sequence": ("dark", DESKTOP, "view=sequence&model=antiberty&cell=102", "map"),
    "imagine": ("light", DESKTOP, "cell=40", "imagine"),
    "text": ("light", DESKTOP, "view=sequence&model=albert-zh&cell=2", "map"),
    "phone": ("light", PHONE, "cell=61", "map"),
    "phone_race": ("dark", PHONE, "view=race", "race"),
}


def canvas_of(name: str, state: str) -> str:
    return "" if "model=" in state else f"&canvas={81 * '.' if name == 'imagine' else HARD}"


def ready(page: Page, what: str) -> None:
    if what == "race":
        page.locator("#start-race").click()
        page.locator("#price-race").click()
        for lane in page.locator(".lanes .cost").all():
            expect(lane).to_contain_text("loses", timeout=240_000)
        expect(page.locator("#message")).to_contain_text("Passes:", timeout=120_000)
        page.get_by_role("button", name="To the end").click()
        page.locator("#race input[type=range]").fill("9")
        return
    if what == "imagine":
        page.locator("#inspect .chips button").nth(2).hover()
        expect(page.locator("#imagined")).to_contain_text("before any pass", timeout=60_000)
        return
    if what == "steps":
        expect(page.locator("#player output")).to_have_text(re.compile("pass 3 of"), timeout=120_000)
    expect(page.locator("#inspect .pairs li" if what == "pairs" else ".cell .nats").first).to_be_visible(timeout=240_000)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("docs/figures"))
    parser.add_argument("--only", nargs="+", choices=PICTURES, default=list(PICTURES))
    options = parser.parse_args()
    command = [sys.executable, "-c", CODE, "explore", "--port", "0", "--no-browser", "--backbone", "sudoku", "antiberty", "albert-zh"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        address = re.search(r"http://\S+", server.stdout.readline())[0]
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"])
            for name in options.only:
                theme, screen, state, what = PICTURES[name]
                page = browser.new_page(viewport=screen, color_scheme=theme)
                page.goto(f"{address}?tour=off#{state}" + canvas_of(name, state))
                ready(page, what)
                page.wait_for_timeout(500)
                page.screenshot(path=options.out / f"explorer_{name}.png", full_page=screen is PHONE)
                page.close()
            browser.close()
    finally:
        server.terminate()
        server.wait(30)


if __name__ == "__main__":
    main()
