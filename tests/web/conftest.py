"""A page of the explorer in Chromium."""

import re

import pytest
from playwright.sync_api import expect, sync_playwright

from browsing import ARGUMENTS, CHROMIUM
from serving import explorer

expect.set_options(timeout=20_000)


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    with explorer(tmp_path_factory.mktemp("browser")) as found:
        yield found


@pytest.fixture(scope="module")
def browser():
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield chromium
        chromium.close()


@pytest.fixture(params=[(1280, 800)], ids=["1280x800"])
def page(browser, request):
    """A fresh page; nothing may be loaded from elsewhere, and no script may fail."""
    width, height = request.param
    context = browser.new_context(viewport={"width": width, "height": height}, accept_downloads=True)
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    page, wrong, asked = context.new_page(), [], []
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("request", lambda request: asked.append(request.url))
    yield page
    context.close()
    assert wrong == []
    assert all(re.match(r"(http://127\.0\.0\.1:|blob:http://127\.0\.0\.1:)", url) for url in asked)
