"""The web page's list of sessions, and what a person follows in one of them, in a real browser."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import pytest_asyncio
from overspill import wire
from overspill.transfer.client import Client
from overspill_service.tenants.keys import new_key

from tests.e2e.web_page import Watched, service_with

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from playwright.async_api import Browser, Page

    from tests.servers.overspill import ForkedService

KEYS = {name: new_key() for name in ("acme", "globex", "empty")}

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with service_with(tmp_path_factory.mktemp("sessions"), KEYS) as started:
        yield started


@pytest_asyncio.fixture(loop_scope="module")
async def client(service: ForkedService) -> AsyncIterator[Client]:
    async with Client(service.url, key=KEYS["acme"]) as made:
        yield made


@pytest_asyncio.fixture(loop_scope="module")
async def watched(browser: Browser, service: ForkedService) -> AsyncIterator[Watched]:
    async with await browser.new_context(viewport={"width": 1200, "height": 900}) as context:
        made = Watched(await context.new_page(), service.url)
        yield made
        assert made.troubles == []


async def test_a_session_is_found_by_a_part_of_its_name_and_opened_by_keys(
    watched: Watched, client: Client
) -> None:
    for number in range(3):
        await client.put("one\n", tool=f"tool-{number}", session="Nightly build", call_id=f"n{number}")
    await client.put("two\n", tool="other", session="chat 7", call_id="c")
    await watched.sign_in(KEYS["acme"])
    page = watched.page
    await page.keyboard.press("s")
    await page.get_by_role("link", name="chat 7").wait_for()
    await page.get_by_label("Part of a name").fill("NIGHT")
    row = page.get_by_role("row", name="Nightly build")
    await row.get_by_role("cell", name="3", exact=True).wait_for()
    await row.get_by_text("tool-2, tool-1, tool-0").wait_for()

    assert await page.get_by_role("link", name="chat 7").count() == 0
    await page.reload()
    await row.get_by_role("link").press("Enter")
    await page.get_by_role("heading", name="Session Nightly build").wait_for()
    assert [(await each.inner_text()).split()[-1] for each in await page.locator(".timeline a").all()] == [
        "tool-0",
        "tool-1",
        "tool-2",
    ]
    await page.go_back()
    await row.wait_for()


async def test_a_session_beyond_the_newest_captures_is_found_further_back_or_by_its_name(
    watched: Watched, client: Client
) -> None:
    await client.put("old\n", session="long ago", call_id="old")
    for number in range(210):
        await client.put("new\n", session="today", call_id=f"new {number}")
    await watched.sign_in(KEYS["acme"], "/sessions?name=long")
    page = watched.page
    await page.get_by_role("heading", name="No session fits").wait_for()
    await page.get_by_role("button", name="Look further back").click()
    await page.get_by_role("link", name="long ago").wait_for()
    await page.get_by_label("Part of a name").fill("today")
    await page.keyboard.press("Enter")
    await page.get_by_role("heading", name="Session today").wait_for()
    await page.get_by_role("button", name="Show older ones too").click()
    await page.get_by_text("210 captured outputs").wait_for()


async def test_names_of_sessions_and_tools_do_nothing_in_the_list(
    watched: Watched, service: ForkedService
) -> None:
    name = "<img src=x onerror=alert(1)>/../?#%2e\u202e"
    async with Client(service.url, key=KEYS["globex"]) as globex:
        await globex.put("hostile\n", tool=name, session=name, call_id=name)
        await globex.put("nobody's\n", call_id="without a session")
    await watched.sign_in(KEYS["globex"], "/sessions")
    page = watched.page
    await page.get_by_text("without a session").wait_for()
    assert await page.locator("main img").count() == 0
    await page.locator("tbody a").click()
    await page.get_by_role("heading", name="Session <img").wait_for()
    await page.locator(".timeline a").wait_for()

    assert await page.locator("main img").count() == 0
    assert "⟨U+202E⟩" in await page.locator("h1").inner_text()


async def test_who_has_no_session_yet_is_told_how_to_begin(watched: Watched) -> None:
    await watched.sign_in(KEYS["empty"], "/sessions")
    await watched.page.get_by_role("heading", name="No session has a capture yet").wait_for()
    await watched.page.get_by_role("region", name="Guard the tools of an agent").wait_for()


async def test_what_the_model_saw_of_each_call_is_shown_in_the_session(
    watched: Watched, client: Client
) -> None:
    content = "".join(f"line {number}\n" for number in range(1, 1_001))
    await client.put(content, tool="noted", session="seen", call_id="1", labels={wire.SEEN_LABEL: "1-2,1000"})
    await client.put(content, tool="not-noted", session="seen", call_id="2")
    await watched.sign_in(KEYS["acme"], "/sessions/seen")
    page = watched.page
    calls = page.locator(".timeline > li")
    await calls.first.get_by_text("What the model saw").click()
    seen = calls.first.get_by_role("region", name="Lines seen by the model")
    await seen.get_by_text("line 1000", exact=True).wait_for()
    assert await seen.locator(".row").count() == 3
    await calls.last.get_by_text("What the model saw").click()
    await calls.last.get_by_text("Nobody noted that").wait_for()
    await calls.last.get_by_text("line 10", exact=True).wait_for()
    await seen.get_by_role("button", name="Line 1000").click()

    await page.locator('.row.selected[data-line="1000"]').wait_for()


async def test_keys_lead_from_call_to_call_of_a_session(watched: Watched, client: Client) -> None:
    entries = [
        await client.put(f"output {number}\n", tool=f"step-{number}", session="steps", call_id=f"{number}")
        for number in range(3)
    ]
    await watched.sign_in(KEYS["acme"], f"/captures/{entries[1].id}")
    page = watched.page
    await page.get_by_text("output 1", exact=True).wait_for()
    await page.keyboard.press("]")
    await page.get_by_text("output 2", exact=True).wait_for()
    await page.keyboard.press("]")
    await page.get_by_text("the last call").wait_for()
    for number in (1, 0):
        await page.keyboard.press("[")
        await page.get_by_text(f"output {number}", exact=True).wait_for()
    await page.keyboard.press("[")

    await page.get_by_text("the first call").wait_for()
    await page.go_back()
    await page.get_by_text("output 1", exact=True).wait_for()


async def test_a_session_whose_name_is_a_kilobyte_is_opened_on_a_narrow_screen(
    watched: Watched, client: Client
) -> None:
    name = ("a/b {c} ?#&% \\ 😀 " * 80)[:900]
    entry = await client.put("of the long name\n", tool=name[:200], session=name, call_id=name[:200])
    await client.put("of it too\n", tool="second", session=name, call_id="2")
    page = watched.page
    await page.set_viewport_size({"width": 390, "height": 800})
    await watched.sign_in(KEYS["acme"], "/sessions?name=a/b {c}")
    await page.get_by_role("link", name="a/b {c} ?#&%").first.click()
    await page.get_by_role("link", name="second").wait_for()
    for view in (page.url, f"{watched.url}/#/captures/{entry.id}", f"{watched.url}/#/captures"):
        await page.goto(view)
        await page.locator("h1").wait_for()
        await page.wait_for_load_state("networkidle")
        assert await page.evaluate("document.scrollingElement.scrollWidth") <= 390, view
        assert (await box_height(page, "h1")) < 120, view


async def box_height(page: Page, selector: str) -> float:
    found = await page.locator(selector).first.bounding_box()
    assert found is not None
    return float(found["height"])


async def test_the_list_of_captures_goes_on_to_older_ones_and_back(watched: Watched, client: Client) -> None:
    for number in range(60):
        await client.put(f"{number}\n", tool=f"t{number}", session="paged", call_id=f"{number}")
    await watched.sign_in(KEYS["acme"], "/captures?session=paged")
    page = watched.page
    await page.get_by_role("link", name="t59", exact=True).wait_for()
    assert await page.locator("tbody tr").count() == 50
    await page.get_by_role("button", name="Older captures").click()
    await page.get_by_role("link", name="t0", exact=True).wait_for()

    assert await page.locator("tbody tr").count() == 10
    await page.reload()
    await page.get_by_role("link", name="t0", exact=True).wait_for()
    await page.get_by_role("link", name="Newest").click()
    await page.get_by_role("link", name="t59", exact=True).wait_for()
