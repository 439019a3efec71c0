"""What a first-time visitor meets: help, the tour, broken links, notes, words; and what a machine says of the accessibility."""

import re
from pathlib import Path

import pytest
from playwright.sync_api import expect

from browsing import CHROMIUM, HALF, canvas_of, cell

AXE = Path(__file__).parents[2] / ".venv" / "axe" / "node_modules" / "axe-core" / "axe.min.js"
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium here: apt-get install chromium")
PHONE, DESKTOP = (390, 844), (1280, 800)


def violations(page):
    """The serious and critical ones that axe-core finds."""
    page.evaluate(AXE.read_text())
    found = page.evaluate("() => axe.run()")["violations"]
    return [(one["id"], [node["html"][:120] for node in one["nodes"][:3]]) for one in found if one["impact"] in ("serious", "critical")]


@pytest.mark.skipif(not AXE.is_file(), reason="no axe-core here: make chromium")
@pytest.mark.parametrize(("page", "scheme"), [(PHONE, "dark"), (DESKTOP, "light")], indirect=["page"], ids=["phone", "desktop"])
@pytest.mark.parametrize(
    "state",
    [
        "model=sudoku",
        "model=sudoku&cell=2",
        f"model=sudoku4&canvas={HALF}&rule=eb:budget=0&pass=1",
        "view=sequence&model=markov&canvas=1.....&cell=2",
        "view=race&model=sudoku4",
        f"model=sudoku4&canvas=11{'.' * 14}",
        "view=nowhere",
    ],
)
def test_no_serious_violation(page, address, state, scheme):
    page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
    page.goto(f"{address}/?tour=off#{state}")
    expect(page.locator("#measure, #race").first).to_be_attached()
    if "race" in state:
        page.get_by_role("button", name="Start the race").click()
        expect(page.locator("#message")).to_contain_text("Passes:", timeout=60_000)
    elif "pass=" in state:
        expect(page.locator("#player output")).to_have_text(re.compile("pass 1 of"))
    elif "canvas=11" not in state:
        expect(page.locator("#inspect .pairs li").first).to_be_visible()
    assert violations(page) == []


@pytest.mark.skipif(not AXE.is_file(), reason="no axe-core here: make chromium")
@pytest.mark.parametrize("opened", ["tour", "help", "tip", "menu"])
@pytest.mark.parametrize("page", [PHONE, DESKTOP], indirect=True, ids=["phone", "desktop"])
def test_no_serious_violation_in_what_opens(page, address, opened):
    page.goto(f"{address}/{'' if opened == 'tour' else '?tour=off'}")
    expect(page.locator("#inspect .pairs li").first).to_be_visible()
    if opened in ("menu", "help") and page.locator("#more").is_visible():
        page.locator("#more").click()
    if opened == "help":
        page.locator("#open-help").click()
    if opened == "tip":
        page.locator("#measure .help").click()
    assert violations(page) == []


def test_the_page_says_what_it_is_and_explains_its_words_by_keyboard(page, address):
    page.goto(f"{address}/?tour=off")
    expect(page.locator("#lead")).to_contain_text("Which unknown positions depend on each other")
    page.locator("#measure .help").focus()
    page.keyboard.press("Enter")
    expect(page.locator("#tip")).to_be_visible()
    for word in ("Head", "Exact", "nats"):
        expect(page.locator("#tip")).to_contain_text(word)
    page.keyboard.press("Escape")
    expect(page.locator("#tip")).to_be_hidden()
    page.locator("#rule .help").focus()
    page.keyboard.press("Enter")
    expect(page.locator("#tip")).to_contain_text("nats that one pass may risk")
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Help", exact=True).click()
    expect(page.locator("#help")).to_contain_text("A masked model fills gaps")
    page.keyboard.press("Escape")
    expect(page.locator("#help")).to_be_hidden()


def test_a_question_mark_pressed_before_the_scripts_came_is_answered_when_they_do(page, address):
    held = []
    page.route("**/main.js", lambda route: held.append(route))
    page.goto(f"{address}/?tour=off", wait_until="commit")
    page.locator("#measure .help").press("Enter")
    expect(page.locator("#tip")).to_be_visible()
    expect(page.locator("#tip")).to_be_empty()
    held[0].continue_()
    expect(page.locator("#tip")).to_contain_text("nats")


def test_the_tour_comes_once(page, address):
    page.goto(f"{address}/")
    expect(page.locator("#tour")).to_be_visible()
    expect(page.locator("#tour-next")).to_be_focused()
    for _ in range(4):
        expect(page.locator(".toured")).to_have_count(1)
        page.keyboard.press("Enter")
    expect(page.locator("#tour")).to_be_hidden()
    page.reload()
    expect(page.locator("#inspect .pairs li").first).to_be_visible()
    expect(page.locator("#tour")).to_be_hidden()
    page.evaluate("() => localStorage.clear()")
    page.reload()
    page.locator("#tour-end").click()
    expect(page.locator("#tour")).to_be_hidden()


def test_a_broken_link_says_so(page, address):
    page.goto(f"{address}/?tour=off#view=bord&model=mars&canvas=12&cell=9999&seed=x&rule=nonsense&colour=red")
    notice = page.get_by_role("alert")
    for part in (
        "view cannot be bord",
        "model mars is not loaded here",
        "expected 81 positions, got 2",
        "no rule nonsense",
        "colour means nothing",
    ):
        expect(notice).to_contain_text(part)
    expect(page.locator("#board .candidates").first).to_be_visible()
    page.get_by_role("button", name="Dismiss").click()
    expect(notice).to_be_hidden()


def test_a_symbol_that_the_model_does_not_know_is_marked(page, address):
    page.goto(f"{address}/?tour=off#model=sudoku4&canvas=1x{'.' * 14}")
    expect(page.locator("#message.error")).to_contain_text("x at r1c2 is no symbol of sudoku4")
    expect(page.locator("#board .wrong")).to_have_count(1)


def test_the_two_shadings_can_be_switched(page, address):
    page.goto(f"{address}/?tour=off#model=sudoku4&canvas={HALF}")
    entropy, shared = page.locator("[data-shade=entropy]"), page.locator("[data-shade=mi]")
    expect(entropy).to_have_attribute("aria-pressed", "true")
    shared.click()
    expect(shared).to_have_attribute("aria-pressed", "true")
    expect(page.locator("#board .nats").first).to_be_visible()
    entropy.click()
    expect(entropy).to_have_attribute("aria-pressed", "true")
    expect(page.locator("#board .nats")).to_have_count(0)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_cells_are_readable_at_every_shade(page, address, scheme):
    page.emulate_media(color_scheme=scheme)
    page.goto(f"{address}/?tour=off")
    worst = page.evaluate(
        """async () => {
            const { rgb, ink } = await import("./colour.js");
            const luminance = (rgb) => rgb.map((v) => (v / 255 <= 0.04045 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4))
                .reduce((sum, v, n) => sum + v * [0.2126, 0.7152, 0.0722][n], 0);
            const ratios = ["mi", "entropy"].flatMap((scale) => Array.from({ length: 201 }, (_, n) => {
                const [a, b] = [luminance(rgb(n / 200, scale)), ink(n / 200, scale) === "#000000" ? 0 : 1].sort();
                return (b + 0.05) / (a + 0.05);
            }));
            return Math.min(...ratios);
        }"""
    )
    assert worst >= 4.5


def test_lists_end_with_a_whole_row(page, address):
    page.goto(f"{address}/?tour=off")
    rows = page.locator("#inspect .pairs li")
    expect(rows.first).to_be_visible()
    height, row = page.locator("#inspect .pairs").evaluate("(list) => list.clientHeight"), rows.first.bounding_box()["height"]
    assert height % row == pytest.approx(0, abs=1) or height % row == pytest.approx(row, abs=1)
    assert page.locator("#inspect .fill").bounding_box()["height"] - height < row + 1


def almost_full(last):
    """A full board, its last positions open."""
    rows = ["123456789", "456789123", "789123456", "231564897", "564897231", "897231564", "312645978", "645978312", "978312645"]
    return "".join(rows)[:-last] + "." * last


def test_the_strip_opens_where_the_unknowns_are(page, address):
    page.goto(f"{address}/?tour=off#view=sequence&model=sudoku&canvas={almost_full(8)}")
    expect(page.locator("#strip .candidates").first).to_be_in_viewport()


def test_tokens_of_several_letters(page, address):
    page.goto(f"{address}/?tour=off#view=sequence&model=words&canvas=constitutionally+.+.")
    first = page.locator("#strip .cell").first
    expect(first.locator(".symbol")).to_have_text("consti…")
    expect(first).to_have_attribute("title", "constitutionally")
    page.locator("#strip .cell").nth(1).click()
    page.locator("#inspect .chips button").first.click()
    expect(page.locator("#canvas")).to_have_value("constitutionally cat .")


def test_the_best_rule_for_the_canvas_is_the_default(page, address):
    page.goto(f"{address}/?tour=off#model=sudoku")
    expect(page.locator("#rule")).to_contain_text("Recommended for solving puzzles.")
    assert page.locator("#rule select").first.input_value() == "mi-guided"
    page.get_by_role("button", name="Clear").click()
    expect(page.locator("#rule")).to_contain_text("Recommended for making boards.")
    assert page.locator("#rule select").first.input_value() == "mi-bound"
    expect(page.locator("#greedy")).not_to_be_checked()
    page.locator("#rule select").first.select_option("eb")
    page.get_by_role("button", name="Use the one recommended").click()
    assert page.locator("#rule select").first.input_value() == "mi-bound"


def test_what_an_estimate_says_of_itself_is_shown(page, address):
    def noted(route):
        answer = route.fetch()
        body = answer.json()
        body["mi"]["note"] = "This canvas is shorter than those the head was trained on."
        route.fulfill(response=answer, json=body)

    page.route("**/api/look", noted)
    page.goto(f"{address}/?tour=off")
    expect(page.locator("#note")).to_have_text("This canvas is shorter than those the head was trained on.")


def test_a_race_shows_its_passes_as_they_come(page, address):
    page.goto(f"{address}/?tour=off#view=race&model=slow&canvas={'.' * 16}&race=sequential+eb:budget=0&greedy=true")
    page.get_by_role("button", name="Start the race").click()
    expect(page.locator(".lanes .tally b").first).to_have_text(re.compile(r"^[1-9] pass"))
    expect(page.locator("#message")).to_contain_text("Passes:", timeout=60_000)


def test_every_cell_and_control_can_be_reached_by_keyboard(page, address):
    page.goto(f"{address}/?tour=off#model=sudoku4&canvas={HALF}")
    expect(page.locator("#inspect .pairs li").first).to_be_visible()
    seen = set()
    for _ in range(80):
        page.keyboard.press("Tab")
        seen.add(
            page.evaluate(
                "() => { const at = document.activeElement; return at.id || at.dataset.shade || at.dataset.mi || at.classList[0]; }"
            )
        )
        assert page.evaluate("() => document.activeElement === document.body || document.activeElement.matches(':focus-visible')")
    assert {"model", "share", "theme", "open-help", "canvas", "entropy", "mi", "probe", "help", "greedy", "run", "cell"} <= seen
    cell(page, 5).focus()
    page.keyboard.press("Enter")
    expect(cell(page, 5)).to_have_class(re.compile("pinned"))
    assert canvas_of(page) == HALF
