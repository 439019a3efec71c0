"""The page in a real Chromium: the five things that it is for, and how it fails."""

import json
import re
import xml.etree.ElementTree as ElementTree

import pytest
from playwright.sync_api import expect

from browsing import CHROMIUM, HALF, OPEN, canvas_of, cell
from pairmi import api
from pairmi.loading import load
from pairmi.selectors.catalogue import CATALOGUE
from serving import PUZZLE, Slow, explorer

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium here: apt-get install chromium")


def test_board_candidates_mi_pairs_and_filling(page, address):
    page.goto(f"{address}/?tour=off")
    expect(page.locator("#board .candidates")).to_have_count(canvas_of(page).count("."))
    expect(cell(page, OPEN).locator(".candidates span")).to_have_count(9)
    cell(page, OPEN).hover()
    expect(page.locator("#inspect h2")).to_contain_text("r1c3: uncertainty")
    expect(page.locator("#inspect .pairs li").first).to_be_visible()
    assert page.locator("#board .nats").count() > 10
    entropy, shared = page.locator("[data-shade]").all()
    expect(entropy).to_contain_text("0 – 2.20 nats")
    expect(shared).to_contain_text(re.compile(r"Shared with r1c3.*0 – \d\.\d+ nats", re.DOTALL))
    expect(shared).to_have_attribute("aria-pressed", "true")
    cell(page, OPEN).click()
    page.locator("#inspect .chips button").first.click()
    expect(page.locator("#canvas")).not_to_have_value(PUZZLE)
    filled = canvas_of(page)
    assert filled[:OPEN] + "." + filled[OPEN + 1 :] == PUZZLE
    expect(page.locator("#board .candidates")).to_have_count(PUZZLE.count(".") - 1)
    page.locator("#undo").click()
    expect(page.locator("#canvas")).to_have_value(PUZZLE)
    page.locator("#redo").click()
    expect(page.locator("#canvas")).to_have_value(filled)


def test_board_by_keyboard(page, address):
    page.goto(f"{address}/?tour=off#model=sudoku4&canvas={HALF}")
    cell(page, 0).focus()
    page.keyboard.press("ArrowRight")
    expect(page.locator("#inspect h2")).to_have_text("r1c2: uncertainty 1.10 nats")
    page.keyboard.press("3")
    expect(page.locator("#canvas")).to_have_value("13" + "." * 14)
    page.keyboard.press("Backspace")
    expect(page.locator("#canvas")).to_have_value(HALF)
    page.keyboard.press("Control+z")
    expect(page.locator("#canvas")).to_have_value("13" + "." * 14)
    page.keyboard.press("Control+Shift+Z")
    expect(page.locator("#canvas")).to_have_value(HALF)


def test_exact_values_are_those_of_the_library(page, address):
    page.goto(f"{address}/?tour=off#model=sudoku4&canvas={HALF}&cell=1")
    truth = api.mutual_information(load("sudoku4"), HALF).matrix[1].tolist()
    expect(page.locator("#board .nats").first).to_be_visible()
    shown = {int(one.get_attribute("data-i")): one.locator(".spoken").text_content() for one in page.locator("#board .cell").all()}
    for i, value in enumerate(truth):
        assert (f"shares {value:.2f} nats with r1c2" in shown[i]) == (value >= 0.005), (i, value, shown[i])


def test_typing_pasting_and_drawing_puzzles(page, address):
    page.goto(f"{address}/?tour=off")
    board = "\n".join(" ".join(PUZZLE[9 * r : 9 * r + 9].replace(".", "0")) for r in range(9))
    page.locator("#canvas").fill(board)
    page.get_by_role("button", name="Set").click()
    expect(page.locator("#canvas")).to_have_value(PUZZLE)
    page.locator("#givens").fill("40")
    page.get_by_role("button", name="Random puzzle").click()
    expect(page.locator("#canvas")).not_to_have_value(PUZZLE, timeout=90_000)
    assert 81 - canvas_of(page).count(".") == 40
    page.get_by_role("button", name="Clear").click()
    expect(page.locator("#canvas")).to_have_value("." * 81)


def test_stepping_through_a_decoding(page, address):
    page.goto(f"{address}/?tour=off#model=sudoku4&canvas={HALF}&rule=mi-bound:budget=0&greedy=true")
    expect(page.locator("#board .candidates")).to_have_count(15)
    page.get_by_role("button", name="Decode").click()
    expect(page.locator("#passes .good, #passes .bad")).to_be_visible()
    truth = api.decode(load("sudoku4"), HALF, "mi-bound:budget=0", greedy=True, steps=True)
    label = page.locator("#player output")
    expect(label).to_have_text(f"pass {truth.passes} of {truth.passes}")  # played to the end
    page.get_by_role("button", name="To the start").click()
    page.get_by_role("button", name="One pass on").click()
    expect(label).to_have_text(f"pass 1 of {truth.passes}")
    first = truth.steps[0]
    expect(page.locator("#board .fresh")).to_have_count(len(first.filled))
    assert page.locator(".reasons li").count() == len(first.waiting)
    blocked = next(i for i, why in first.waiting.items() if why.startswith("depends on"))
    expect(page.locator(".reasons")).to_contain_text(f"{load('sudoku4').task.position(blocked)} {first.waiting[blocked]}")
    cell(page, blocked).click()
    expect(page.locator("#inspect .waits")).to_have_text(f"Waits: {first.waiting[blocked]}.")
    expect(page.locator("#board .blocker")).to_have_count(1)
    page.get_by_role("button", name="Play or pause").click()
    expect(label).to_have_text(f"pass {truth.passes} of {truth.passes}")
    page.get_by_role("button", name="One pass back").click()
    expect(label).to_have_text(f"pass {truth.passes - 1} of {truth.passes}")
    page.locator("#player input").fill("1")
    expect(label).to_have_text(f"pass 1 of {truth.passes}")
    page.get_by_role("button", name="Keep").click()
    expect(page.locator("#canvas")).to_have_value(first.text)
    page.locator("#undo").click()
    expect(page.locator("#canvas")).to_have_value(HALF)


def test_every_rule_of_the_catalogue_is_offered_with_its_parameters(page, address):
    page.goto(f"{address}/?tour=off")
    chooser = page.locator("#rule select").first
    expect(chooser.locator("option")).to_have_text(list(CATALOGUE))
    chooser.select_option("mi-bound")
    labels = [text.split()[0] for text in page.locator("#rule label").all_inner_texts()]
    assert labels == ["mi", "budget", "penalty", "order", "entropy_weight", "charge", "draw"]
    page.locator("#rule label", has_text="budget").locator("input").fill("0.25")
    page.keyboard.press("Tab")
    expect(page).to_have_url(re.compile(r"rule=mi-bound%3Abudget%3D0\.25"))


def test_a_race_says_who_broke_and_who_did_not(page, address):
    page.goto(f"{address}/?tour=off#view=race&model=sudoku4&canvas={'.' * 16}&race=sequential+top-k:k=16&greedy=false")
    expect(page.locator(".lanes article")).to_have_count(2)
    page.get_by_role("button", name="Start the race").click()
    expect(page.locator(".lanes article").nth(1)).to_contain_text("broke in pass 1: no sequence of this world fits")
    expect(page.locator(".lanes article").nth(0)).to_contain_text("valid", timeout=40_000)
    expect(page.locator(".lanes article").nth(0)).to_contain_text("16 passes")
    expect(page.locator(".lanes .tally b")).to_have_text(["16 passes", "1 pass"])
    expect(page.locator("#message")).to_have_text("Passes: sequential valid in 16, top-k broke in 1.")
    assert re.search(r"\d\.\d\d s", page.locator(".lanes article").nth(0).inner_text())
    page.get_by_label("Number of rules").select_option("4")
    expect(page.locator(".lanes article")).to_have_count(4)


def test_sequences_have_a_strip_arcs_and_a_map(page, address):
    page.goto(f"{address}/?tour=off#view=sequence&model=markov&canvas=1.....")
    expect(page.locator("#strip .cell")).to_have_count(6)
    expect(page.locator("#strip .candidates").first.locator("span")).to_have_count(3)
    expect(page.locator("#arcs path").first).to_be_attached()
    truth = api.mutual_information(load("markov"), "1.....").matrix
    expect(page.locator("#map")).to_have_attribute("data-plot", re.compile(r"\d+ \d+ \d+"))
    box, (x, y, size) = page.locator("#map").bounding_box(), map(int, page.locator("#map").get_attribute("data-plot").split())
    page.mouse.move(box["x"] + x + 1.5 * size / 5, box["y"] + y + 0.5 * size / 5)
    expect(page.locator("#readout")).to_have_text(f"2 – 3: {truth[1, 2]:.3f} nats")
    page.locator("#strip .cell").nth(4).focus()
    page.keyboard.press("2")
    expect(page.locator("#canvas")).to_have_value("1...2.")
    page.get_by_role("button", name="Decode").click()
    expect(page.locator("#passes .good")).to_contain_text("Filled.")


def test_a_race_prices_its_rules(page, address):
    page.goto(f"{address}/?tour=off#view=race&model=sudoku4&canvas={'.' * 16}&race=sequential+top-k:k=16")
    page.locator("#price-race").click()
    lanes = page.locator(".lanes article")
    expect(lanes.nth(0).locator(".cost")).to_have_text("loses nothing, in 16.0 passes")
    expect(lanes.nth(1).locator(".cost")).to_contain_text(re.compile(r"loses 1\d nats \[.*\] in 1\.0 passes"))


def test_the_address_is_the_state(page, address, browser):
    page.goto(f"{address}/?tour=off#model=sudoku4&canvas={HALF}&rule=eb:budget=0&pass=2&cell=5")
    expect(page.locator("#player output")).to_have_text(re.compile("pass 2 of"))
    page.get_by_role("button", name="Share", exact=True).click()
    link = page.evaluate("() => navigator.clipboard.readText()")
    other = browser.new_page()
    other.goto(link)
    expect(other.locator("#player output")).to_have_text(page.locator("#player output").inner_text())
    expect(other.locator("#inspect h2")).to_have_text(page.locator("#inspect h2").inner_text())
    assert canvas_of(other) == HALF
    other.close()


@pytest.mark.parametrize("view", ["board", "sequence"])
def test_exports(page, address, view, tmp_path):
    page.goto(f"{address}/?tour=off#view={view}&model=sudoku4&canvas={HALF}&cell=1")
    expect(page.locator("#inspect .pairs li").first).to_be_visible()
    files = {}
    for kind in ("png", "svg", "json"):
        with page.expect_download() as download:
            page.locator(f"[data-export='{kind}']").click()
        files[kind] = tmp_path / download.value.suggested_filename
        download.value.save_as(files[kind])
    assert files["png"].read_bytes().startswith(b"\x89PNG")
    drawn = ElementTree.parse(files["svg"]).getroot()
    assert len(list(drawn.iter("{http://www.w3.org/2000/svg}rect"))) > 16
    record = json.loads(files["json"].read_text())
    assert (record["canvas"], record["unit"], record["places"][5]) == (HALF, "nats", "r2c2")
    truth = api.mutual_information(load("sudoku4"), HALF).matrix
    assert record["matrix"][1] == pytest.approx(truth[1].tolist(), abs=6e-5)


def test_exact_mi_shows_progress_and_can_be_cancelled(page, tmp_path):
    slow = Slow(1.0)  # so slow that even a busy machine cancels in time
    with explorer(tmp_path, slow) as address:
        page.goto(f"{address}/?tour=off#model=slow&view=sequence&canvas={'.' * 16}")
        expect(page.locator("#progress span")).to_contain_text(re.compile(r"\d+ of 65 sequences"))
        page.get_by_role("button", name="Cancel").click()
        expect(page.locator("#progress")).to_be_hidden()
        expect(page.locator("#inspect")).to_contain_text("Not measured yet.")
        slow.seconds = 0.0
        page.get_by_role("button", name="Measure exactly").click()
        expect(page.locator("#inspect .pairs li").first).to_be_visible()


def test_errors_are_one_clear_line_in_the_page(page, address):
    page.goto(f"{address}/?tour=off")
    expect(page.locator("#board .candidates").first).to_be_visible()
    page.locator("#canvas").fill("55" + "." * 79)
    page.get_by_role("button", name="Set").click()
    expect(page.locator("#message.error")).to_have_text("Nothing completes this canvas: 5 stands twice in row 1, at r1c1 and r1c2.")
    expect(page.locator("#board .wrong")).to_have_count(2)
    expect(page.locator("#board .cell .symbol").first).to_have_text("5")
    expect(page.locator("#inspect")).to_contain_text("Change or empty one of the marked positions")
    page.locator("#canvas").fill("12")
    page.get_by_role("button", name="Set").click()
    expect(page.locator("#message.error")).to_have_text("expected 81 positions, got 2")
    page.locator("#undo").click()
    expect(page.locator("#message")).to_have_text("")


@pytest.mark.parametrize("page", [(390, 844), (1280, 800)], indirect=True, ids=["phone", "1280x800"])
@pytest.mark.parametrize("view", ["board", "sequence", "race"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_fits_the_screen_in_both_themes(page, address, view, scheme, request):
    page.emulate_media(color_scheme=scheme)
    page.goto(f"{address}/?tour=off#view={view}&model=sudoku4&canvas={HALF}")
    expect(page.locator("body")).to_have_attribute("data-view", view)
    expect(page.locator("html")).to_have_attribute("data-theme", scheme)
    width, height = page.evaluate("() => [document.documentElement.scrollWidth, document.documentElement.scrollHeight]")
    assert width == page.viewport_size["width"]
    assert page.viewport_size["width"] < 500 or height == page.viewport_size["height"]
    if page.viewport_size["width"] < 500:
        assert page.locator("header").bounding_box()["height"] < 60
        assert view != "race" or height <= 900
        page.locator("#more").click()
    page.locator("#theme").click()
    expect(page.locator("html")).to_have_attribute("data-theme", "dark" if scheme == "light" else "light")
