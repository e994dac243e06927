"""The web page before outputs that would flood a browser, and a service that is busy, away or wrong."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest
import pytest_asyncio
from overspill.transfer.client import Client
from overspill_service.tenants.keys import new_key

from tests.e2e.web_page import Watched, service_with

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from playwright.async_api import Browser, Page, Route

    from tests.servers.overspill import ForkedService

LOG = "".join(f"{'ERROR' if n % 1000 == 7 else 'info'} line {n} of the log\n" for n in range(1, 20_001))
KEY = new_key()
HOURS = 5 * 3_600_000

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with service_with(tmp_path_factory.mktemp("faults"), {"acme": KEY}) as started:
        yield started


@pytest_asyncio.fixture(loop_scope="module")
async def client(service: ForkedService) -> AsyncIterator[Client]:
    async with Client(service.url, key=KEY) as made:
        yield made


@pytest_asyncio.fixture(loop_scope="module")
async def watched(browser: Browser, service: ForkedService) -> AsyncIterator[Watched]:
    async with await browser.new_context(viewport={"width": 1300, "height": 800}) as context:
        made = Watched(await context.new_page(), service.url)
        yield made
        assert made.troubles == []


async def opened(watched: Watched, view: str, shown: str = ".row") -> Page:
    await watched.sign_in(KEY, view)
    await watched.page.locator(shown).first.wait_for()
    return watched.page


COLOURS = "".join(f"\x1b[3{n % 8}m{n % 10}" for n in range(10_000))
FLOODS = {
    "lines of 3 KB": "".join(f"{number} {'x' * 2_990}\n" for number in range(200)),
    "lines of 100 KB": "".join(f"{number} {'x' * 100_000}\n" for number in range(100)),
    "a colour for each character": f"{COLOURS}\n" * 100,
}


@pytest.mark.parametrize("content", FLOODS.values(), ids=FLOODS)
async def test_long_lines_cost_no_more_than_what_is_looked_at(
    watched: Watched, client: Client, content: str
) -> None:
    entry = await client.put(content, call_id="flood")
    page = await opened(watched, "/captures", "h1")
    sizes: list[int] = []
    page.on("response", lambda answer: sizes.append(int(answer.headers.get("content-length", 0))))
    await watched.go(f"/captures/{entry.id}")
    await page.locator('[data-line="30"]').get_by_text("…", exact=True).wait_for(state="detached")
    await page.wait_for_load_state("networkidle")

    assert sum(sizes) < 200_000
    assert await page.locator(".row code span").count() < 20_000
    await page.keyboard.press("G")
    last = page.locator(f'[data-line="{entry.lines}"]')
    await last.wait_for()
    await last.get_by_text("…", exact=True).wait_for(state="detached")


async def test_a_line_as_long_as_an_answer_may_be_is_shown_whole(watched: Watched, client: Client) -> None:
    entry = await client.put("0123456789" * 6_000 + "\n" + "next\n" * 500, call_id="60,000 characters")
    page = await opened(watched, f"/captures/{entry.id}")
    await page.locator('[data-line="2"]').get_by_text("next").wait_for()

    assert await page.locator('[data-line="1"] code').inner_text() == "0123456789" * 6_000
    await page.keyboard.press("G")
    await page.locator('[data-line="501"]').get_by_text("next").wait_for()


async def test_an_endless_line_is_read_on_part_by_part_and_from_its_beginning_again(
    watched: Watched, client: Client
) -> None:
    """A browser draws a million characters of a line, and takes seconds for many more."""
    numbers = "".join(f"{number:09d} " for number in range(120_000))
    entry = await client.put(f"first\n{numbers}\nlast\n", call_id="endless")
    page = await opened(watched, f"/captures/{entry.id}")
    line, more = page.locator('[data-line="2"] code'), page.get_by_role("button", name="read on in this line")
    await more.wait_for()
    seen = await line.evaluate("line => line.textContent.slice(0, 10)")
    while await more.count():
        known = await line.evaluate("line => line.textContent.slice(-60)")
        await more.evaluate("button => button.click()")
        await page.wait_for_function(
            "known => document.querySelector('[data-line=\"2\"] code').textContent.slice(-60) !== known",
            arg=known,
        )
        assert await line.evaluate("line => line.textContent.length") < 1_100_000
    assert await line.evaluate("line => line.textContent.trimEnd().endsWith('000119999')")
    await page.get_by_role("button", name="before").click()
    await more.wait_for()

    assert await line.evaluate("line => line.textContent.slice(0, 10)") == seen == "000000000 "


async def test_a_pattern_that_a_browser_would_never_end_leaves_the_page_alive(
    watched: Watched, client: Client
) -> None:
    """The service's engine takes linear time; in a browser `(a+)+$` takes years for such a line."""
    entry = await client.put(f"{'a' * 40}! a\n" * 100, call_id="slow pattern")
    page = await opened(watched, f"/captures/{entry.id}?regex=1&q={quote('(a+)+$')}", ".row.match")
    await page.get_by_text("100 lines", exact=True).wait_for()
    await page.keyboard.press("n")
    await page.locator('[data-line="2"].selected').wait_for()

    assert await page.locator("mark").count() == 0


async def test_matches_of_a_regular_expression_are_marked_across_colours(
    watched: Watched, client: Client
) -> None:
    entry = await client.put("an \x1b[31mer\x1b[0mror 42 here\nnothing\n", call_id="marks")
    page = await opened(watched, f"/captures/{entry.id}?regex=1&q={quote('er+or [0-9]+')}", "mark")

    assert "".join(await page.locator("mark").all_inner_texts()) == "error 42"


async def test_matches_are_marked_however_slowly_what_looks_for_them_starts(
    watched: Watched, client: Client
) -> None:
    """A busy machine takes a while to start a worker. That is no sign of a slow pattern."""
    entry = await client.put("error 42 here\n", call_id="slow start")
    asked, may_start = asyncio.Event(), asyncio.Event()

    async def hold(route: Route) -> None:
        asked.set()
        await may_start.wait()
        await route.continue_()

    await watched.page.route("**/page/worker-*", hold)
    await watched.page.clock.install()
    page = await opened(watched, f"/captures/{entry.id}?regex=1&q={quote('er+or [0-9]+')}", ".row.match")
    await asked.wait()
    await page.clock.fast_forward(60_000)
    may_start.set()
    await page.locator("mark").wait_for()

    assert await page.locator("mark").inner_text() == "error 42"


async def test_a_pattern_that_the_service_refuses_is_explained(watched: Watched, client: Client) -> None:
    entry = await client.put(LOG, call_id="refused")
    page = await opened(watched, f"/captures/{entry.id}?regex=1&q={quote('(?=x)')}")
    shown = await page.locator(".search-problem").inner_text()

    assert "(?=" in shown
    await page.get_by_label("Search in this output").fill("error")
    await page.get_by_text("20 lines", exact=True).wait_for()


async def test_capitals_count_if_the_pattern_has_one_unless_the_reader_says_otherwise(
    watched: Watched, client: Client
) -> None:
    entry = await client.put("one Error\ntwo error\nthree ERROR\n", call_id="case")
    page = await opened(watched, f"/captures/{entry.id}?q=error")
    match_case = page.get_by_role("button", name="Match case")
    await page.get_by_text("3 lines", exact=True).wait_for()
    await page.get_by_label("Search in this output").fill("Error")
    await page.get_by_text("1 line", exact=True).wait_for()
    assert await match_case.get_attribute("aria-pressed") == "true"
    await match_case.click()
    await page.get_by_text("3 lines", exact=True).wait_for()
    await page.get_by_role("button", name="Lines that do not match").click()

    await page.get_by_text("no line matches").wait_for()


async def test_a_tree_draws_only_what_is_open_and_changes_no_value(watched: Watched, client: Client) -> None:
    value = {"id": 12345678901234567890, "__proto__": {"deep": [list(range(50)) for _ in range(400)]}}
    entry = await client.put(json.dumps(value), call_id="tree")
    page = await opened(watched, f"/captures/{entry.id}", ".json")
    await page.get_by_text("12345678901234567890", exact=True).wait_for()
    assert await page.locator(".json, .json-leaf").count() < 100
    await page.get_by_text("__proto__:").wait_for()
    await page.locator("summary", has_text="deep:").click()

    await page.get_by_role("button", name="300 more").wait_for()


async def test_an_output_that_is_deleted_while_it_is_read_is_said_to_be_gone(
    watched: Watched, client: Client
) -> None:
    entry = await client.put(LOG, call_id="vanishes")
    page = await opened(watched, f"/captures/{entry.id}")
    await page.get_by_text("line 3 of the log").wait_for()
    await client.delete(entry.id)
    await page.keyboard.press("G")

    await page.get_by_role("heading", name="This output is gone").wait_for()


async def test_a_busy_service_is_asked_again_when_it_says(watched: Watched, client: Client) -> None:
    await client.put(LOG, tool="patient", call_id="busy")
    page = await opened(watched, "/", "h1")
    asked = 0

    async def busy_at_first(route: Any) -> None:
        nonlocal asked
        asked += 1
        if asked > 2:
            await route.fallback()
        else:
            await route.fulfill(status=429, headers={"Retry-After": "1"}, json={"detail": "too many"})

    await page.route("**/v1/captures?*", busy_at_first)
    await page.keyboard.press("c")
    await page.get_by_role("link", name="patient").first.wait_for()

    assert asked == 3
    assert await page.get_by_role("alert").count() == 0


async def test_a_list_stays_while_it_cannot_be_refreshed_and_heals_by_itself(
    watched: Watched, client: Client
) -> None:
    async with client.live(tool="healing") as output:
        await output.write(b"one\n")
        await output.flush()
        page = await opened(watched, "/captures?state=live", "tbody tr")
        await page.route("**/v1/captures?*", lambda route: route.fulfill(status=503, json={"detail": "away"}))
        await page.get_by_role("alert").get_by_text("What is shown is older").wait_for()
        assert await page.get_by_role("link", name="healing").count() == 1
        await page.unroute("**/v1/captures?*")

        await page.get_by_role("alert").wait_for(state="detached")


async def test_who_was_offline_reads_on_as_soon_as_they_are_back(watched: Watched, client: Client) -> None:
    entry = await client.put(LOG, call_id="offline")
    page = await opened(watched, f"/captures/{entry.id}")
    await page.get_by_text("line 3 of the log").wait_for()
    await page.context.set_offline(True)
    await page.keyboard.press("G")
    await page.get_by_role("alert").get_by_text("cannot be reached").wait_for()
    await page.context.set_offline(False)

    await page.get_by_text("line 20000 of the log").wait_for()
    await page.get_by_role("alert").wait_for(state="detached")


@pytest.mark.parametrize("wrong", [HOURS, -HOURS], ids=["ahead", "behind"])
async def test_a_readers_clock_that_is_wrong_changes_no_figure(
    watched: Watched, client: Client, wrong: int
) -> None:
    await client.put(LOG, tool="just-now", call_id=f"clock {wrong}")
    await watched.page.add_init_script(f"const now = Date.now; Date.now = () => now() + {wrong}")
    page = await opened(watched, "/?range=1h", "h1")
    await page.get_by_role("link", name="just-now").first.wait_for()
    cost = page.get_by_role("region", name="The largest captures")
    times = await cost.get_by_role("row", name="just-now").first.locator("time").all_inner_texts()

    assert await page.get_by_role("alert").count() == 0
    assert not any("hour" in time and "23" not in time and "24" not in time for time in times)


async def test_an_answer_that_the_page_cannot_draw_leaves_the_other_views(
    browser: Browser, service: ForkedService, client: Client
) -> None:
    async with await browser.new_context() as context:
        watched = Watched(await context.new_page(), service.url)  # its fault is the point
        page = watched.page
        await page.route("**/v1/captures?*", lambda route: route.fulfill(json={"captures": [{"id": 7}]}))
        await watched.sign_in(KEY, "/captures")
        await page.get_by_role("heading", name="This view cannot be shown").wait_for()
        await page.get_by_role("link", name="Sessions").click()
        await page.unroute("**/v1/captures?*")
        await page.get_by_role("link", name="Captures").click()

        await page.get_by_role("region", name="List of captures").wait_for()


async def test_nothing_on_a_narrow_screen_jumps_while_a_search_comes_over_a_slow_link(
    browser: Browser, service: ForkedService, client: Client
) -> None:
    entry = await client.put(LOG, call_id="jumps")
    async with await browser.new_context(viewport={"width": 390, "height": 800}) as context:
        watched = Watched(await context.new_page(), service.url)
        await watched.sign_in(KEY)
        slow = await context.new_cdp_session(watched.page)
        await slow.send(
            "Network.emulateNetworkConditions",
            {"offline": False, "latency": 60, "downloadThroughput": 1e6, "uploadThroughput": 1e6},
        )
        await watched.page.evaluate(
            "window.shifts = 0; new PerformanceObserver(list => { for (const entry of list.getEntries())"
            " window.shifts += entry.value }).observe({type: 'layout-shift', buffered: true})"
        )
        await watched.go(f"/captures/{entry.id}?q=ERROR")
        await watched.page.get_by_text("20 lines", exact=True).wait_for()
        await watched.page.locator(".minimap .error").first.wait_for(state="attached")

        assert await watched.page.evaluate("window.shifts") < 0.1
