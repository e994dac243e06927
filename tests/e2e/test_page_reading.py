"""Reading outputs on the web page, as people do who read logs all day, in a real browser."""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING, Any

import pytest
import pytest_asyncio
from aiohttp import ClientSession
from overspill import wire
from overspill.errors import Deleted
from overspill.transfer.client import Client
from overspill_service.tenants.keys import hash_key, new_key

from tests.e2e.web_page import AXE, Watched, complaints_of, service_with
from tests.faults.traffic import until
from tests.servers.overspill import ForkedService

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from playwright.async_api import Browser, Locator, Page

LOG = "".join(f"{'ERROR' if n % 1000 == 7 else 'info'} line {n} of the log\n" for n in range(1, 50_001))
KEYS = {name: new_key() for name in ("acme", "globex")}

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with service_with(tmp_path_factory.mktemp("reading"), KEYS) as started:
        yield started


@pytest_asyncio.fixture(loop_scope="module")
async def client(service: ForkedService) -> AsyncIterator[Client]:
    async with Client(service.url, key=KEYS["acme"]) as made:
        yield made


@pytest_asyncio.fixture(loop_scope="module")
async def watched(browser: Browser, service: ForkedService) -> AsyncIterator[Watched]:
    rights = ["clipboard-read", "clipboard-write"]
    async with await browser.new_context(
        viewport={"width": 1300, "height": 700}, permissions=rights
    ) as context:
        made = Watched(await context.new_page(), service.url)
        yield made
        assert made.troubles == []


async def opened(watched: Watched, view: str) -> Page:
    await watched.sign_in(KEYS["acme"], view)
    await watched.page.locator(".row").first.wait_for()
    return watched.page


async def box(of: Locator) -> Any:
    found = await of.bounding_box()
    assert found is not None
    return found


async def end_of(of: Locator) -> float:
    found = await box(of)
    return float(found["y"] + found["height"])


async def test_a_wrapped_line_of_many_screens_is_read_to_its_end_and_back(
    watched: Watched, client: Client
) -> None:
    words = b"0123456789 " * 5_000
    after = b"".join(b"line %d\n" % number for number in range(3, 3_000))
    entry = await client.put(b"short\n" + words + b"the end\n" + after, call_id="wrapped")
    page = await opened(watched, f"/captures/{entry.id}")
    await page.keyboard.press("w")
    lines, long = page.locator(".lines"), page.locator('[data-line="2"]')
    await lines.hover()
    assert (await box(long.locator("button")))["y"] <= (await box(long))["y"] + 2  # its number is at its top

    async with asyncio.timeout(60):
        while not await long.count() or await end_of(long) > await end_of(lines):
            await page.mouse.wheel(0, 400)
    assert await long.locator("code").inner_text() == words.decode() + "the end"
    async with asyncio.timeout(60):
        while not await page.locator('[data-line="1"]').count() or (
            (await box(page.locator('[data-line="1"]')))["y"] < (await box(lines))["y"]
        ):
            await page.mouse.wheel(0, -400)
    await page.keyboard.press("G")
    await page.get_by_text("line 2999", exact=True).wait_for()


async def test_wrapping_keeps_the_place(watched: Watched, client: Client) -> None:
    content = b"".join(b"line %d %s\n" % (number, b"word " * (number % 90)) for number in range(1, 20_001))
    entry = await client.put(content, call_id="place")
    page = await opened(watched, f"/captures/{entry.id}?lines=15000")
    line = page.locator('[data-line="15000"]')
    await line.wait_for()
    for _ in range(2):
        await page.keyboard.press("w")
        await page.wait_for_timeout(300)
        await page.locator(".lines").hover()
        await page.mouse.wheel(0, 20)
        await page.wait_for_timeout(300)
        assert await line.count() == 1


async def test_wrapped_live_output_keeps_its_end_in_view(watched: Watched, client: Client) -> None:
    async with client.live(tool="server") as output:
        await output.write(b"".join(b"line %d %s\n" % (n, b"word " * 60) for n in range(1, 100)))
        await output.flush()
        page = await opened(watched, f"/captures/{output.id}")
        await page.keyboard.press("w")
        await page.get_by_role("button", name="Follow").click()
        for number in range(100, 104):
            await output.write(b"line %d %s\n" % (number, b"word " * 60))
            await page.get_by_text(f"line {number} word").wait_for()
            row = page.locator(f'[data-line="{number}"]')
            await page.wait_for_function(
                "n => document.querySelector(`[data-line='${n}']`)?.getBoundingClientRect().bottom"
                " <= document.querySelector('.lines').getBoundingClientRect().bottom + 2",
                arg=number,
            )
            assert await row.is_visible()


async def test_who_follows_goes_on_until_they_scroll_up_and_again_once_they_scroll_to_the_end(
    watched: Watched, client: Client
) -> None:
    async with client.live(tool="server") as output:
        await output.write(b"line\n" * 500)
        await output.flush()
        page = await opened(watched, f"/captures/{output.id}")
        follow = page.get_by_role("button", name="Follow", exact=True)
        following = page.get_by_role("button", name="Following", exact=True)
        for height in (400, 900, 700):
            await page.set_viewport_size({"width": 1300, "height": height})
            await page.wait_for_function(f"document.querySelector('.lines').clientHeight > {height - 250}")
        await output.write(b"one more\n")
        await page.get_by_text("one more", exact=True).wait_for()
        for _ in range(2):  # wrapped, and not
            await page.keyboard.press("w")
            await following.wait_for()
            await page.locator(".lines").hover()
            await page.mouse.wheel(0, -400)
            await follow.wait_for()
            await page.mouse.wheel(0, 100_000)
            await following.wait_for()
        await output.write(b"the last\n")
        await page.get_by_text("the last", exact=True).wait_for()


async def test_who_has_scrolled_up_stays_there_while_thousands_of_lines_come(
    watched: Watched, client: Client
) -> None:
    async with client.live(tool="server") as output:
        await output.write(b"".join(b"line %d\n" % number for number in range(1, 2_001)))
        await output.flush()
        page = await opened(watched, f"/captures/{output.id}")
        await page.get_by_role("button", name="Follow").click()
        await page.get_by_text("line 2000", exact=True).wait_for()
        await page.locator(".lines").hover()
        await page.mouse.wheel(0, -3_000)
        await page.get_by_text("line 1850", exact=True).wait_for()
        before = await page.locator(".row").first.get_attribute("data-line")
        for _ in range(3):
            await output.write(b"more\n" * 1_000)
            await output.flush()
        await page.get_by_role("region", name="Output, 5,000 lines").wait_for()

        assert await page.locator(".row").first.get_attribute("data-line") == before


async def test_only_the_matches_are_shown_with_lines_around_and_lead_into_the_whole(
    watched: Watched, client: Client
) -> None:
    entry = await client.put(LOG, call_id="only")
    page = await opened(watched, f"/captures/{entry.id}?q=ERROR")
    await page.keyboard.press("&")
    only = page.get_by_role("region", name="Only the lines that match")
    await only.get_by_text("ERROR line 49007 of the log").wait_for()
    shown = await only.locator(".row").count()
    await page.get_by_label("Show").select_option("10")
    await only.get_by_text("line 40017 of the log").wait_for()
    await only.get_by_role("button", name="Line 33007").click()
    await page.locator('.row.selected[data-line="33007"]').wait_for()

    assert shown == 5 * 50
    assert await only.count() == 0
    await page.go_back()
    await only.wait_for()


@pytest.mark.parametrize("regex", ["", "&regex=1"])
async def test_a_match_far_into_its_line_is_in_view(watched: Watched, client: Client, regex: str) -> None:
    far = f"{'x' * 1_500} needle {'y' * 1_500}"
    entry = await client.put(f"a needle at once\n{far}\n" + "next\n" * 500, call_id=f"far{regex}")
    page = await opened(watched, f"/captures/{entry.id}?q=needle{regex}")
    lines = await box(page.locator(".viewer .lines"))
    marks = page.locator("mark")
    await marks.nth(1).wait_for()

    async def is_in_view(number: int) -> bool:
        mark = await box(marks.nth(number))
        number_end = await box(page.locator(".row .number").nth(number))
        left = number_end["x"] + number_end["width"]
        return bool(left <= mark["x"] and mark["x"] + mark["width"] <= lines["x"] + lines["width"])

    assert await is_in_view(0)
    await page.keyboard.press("n")
    await until(lambda: is_in_view(1))
    await page.keyboard.press("n")
    await until(lambda: is_in_view(0))


async def test_a_match_far_into_the_only_line_is_in_view_where_only_matches_are_shown(
    watched: Watched, client: Client
) -> None:
    entry = await client.put(f"{'x' * 150_000} needle {'y' * 150_000}", call_id="far in one line")
    page = await opened(watched, f"/captures/{entry.id}?q=needle&only=0")
    lines = await box(page.locator(".viewer .lines"))
    mark = page.locator("mark")
    await mark.wait_for()

    async def is_in_view() -> bool:
        found = await box(mark)
        return bool(lines["x"] <= found["x"] and found["x"] + found["width"] <= lines["x"] + lines["width"])

    await until(is_in_view)


async def test_more_matches_than_one_answer_has_are_fetched(watched: Watched, client: Client) -> None:
    entry = await client.put(LOG, call_id="more matches")
    page = await opened(watched, f"/captures/{entry.id}?q=0")
    await page.get_by_label("Show").select_option("0")
    rows = page.locator(".only .row")
    await rows.nth(99).wait_for()
    await page.get_by_role("button", name="More matches").click()
    await rows.nth(199).wait_for()

    assert len({await row.get_attribute("data-line") for row in await rows.all()}) == 200


async def test_the_browsers_find_key_searches_the_whole_output(watched: Watched, client: Client) -> None:
    """The browser's own find knows only the lines that are drawn."""
    entry = await client.put(LOG, call_id="find")
    page = await opened(watched, f"/captures/{entry.id}")
    await page.keyboard.press("Control+f")
    await page.keyboard.type("line 49999 of")

    await page.get_by_text("1 line", exact=True).wait_for()
    await page.locator('.row.match[data-line="49999"]').wait_for()


async def test_selected_lines_are_copied_whole_without_their_numbers(
    watched: Watched, client: Client
) -> None:
    """Far more than are drawn, and without escape sequences."""
    entry = await client.put("\x1b[31mred\x1b[0m\n" + LOG, call_id="copy")
    page = await opened(watched, f"/captures/{entry.id}?lines=1-20001")
    await page.get_by_role("button", name="Copy 20,001 lines").click()
    await page.get_by_role("button", name="Copied").wait_for()
    copied = await page.evaluate("navigator.clipboard.readText()")

    assert copied.splitlines() == ["red", *LOG.splitlines()[:20_000]]


async def test_a_list_of_live_captures_follows_what_happens(watched: Watched, client: Client) -> None:
    async with client.live(tool="first-server") as output:
        await output.write(b"one\n")
        await output.flush()
        await watched.sign_in(KEYS["acme"], "/captures?state=live")
        page = watched.page
        await page.get_by_role("cell", name="first-server").wait_for()
        async with client.live(tool="second-server") as other:
            await other.write(b"two\n")
            await other.flush()
            await page.get_by_role("cell", name="second-server").wait_for()
    await page.get_by_text("No capture fits").wait_for()


async def test_what_is_not_there_says_what_to_do_next(watched: Watched, client: Client) -> None:
    entry = await client.put(LOG, call_id="deleted while open")
    await watched.sign_in(KEYS["acme"], "/captures/cap_aaaaaaaaaaaaaaaaaaaa")
    page = watched.page
    await page.get_by_text("There is no such output here").wait_for()
    await client.delete(entry.id)
    await watched.go(f"/captures/{entry.id}")
    await page.get_by_text("This output is gone").wait_for()
    await page.get_by_role("link", name="All captures").click()
    await page.get_by_role("heading", name="Captures").wait_for()


async def test_a_handle_or_a_call_is_opened_from_the_list(watched: Watched, client: Client) -> None:
    entry = await client.put("by its call", call_id="call 77")
    await watched.sign_in(KEYS["acme"], "/captures")
    for handle in (entry.id, "call:call 77"):
        await watched.go("/captures")
        await watched.page.get_by_label("Handle", exact=True).fill(handle)
        await watched.page.keyboard.press("Enter")
        await watched.page.get_by_text("by its call").wait_for()


async def test_everything_is_reached_with_the_keyboard_alone(watched: Watched, client: Client) -> None:
    entry = await client.put(LOG, tool="keyboard", session="keyboard", call_id="keyboard")
    page = watched.page
    await watched.go("/")
    await page.locator("input[name=key]:focus").wait_for()
    await page.keyboard.type(KEYS["acme"])
    await page.keyboard.press("Enter")
    await page.get_by_role("heading", name="Tenant acme").wait_for()
    await _tab_to(page, ".account")
    await page.keyboard.press("Enter")
    await _tab_to(page, "#account .choice button:last-of-type")
    await page.keyboard.press("Enter")
    await page.locator("html[data-theme=dark]").wait_for(state="attached")
    await page.keyboard.press("Escape")
    await page.locator("#account").wait_for(state="hidden")
    await page.keyboard.press("c")
    await page.get_by_role("heading", name="Captures").wait_for()
    await page.keyboard.press("/")
    await page.keyboard.type("keyboard")
    await page.keyboard.press("Enter")
    await page.wait_for_function("() => location.hash.includes('tool=keyboard')")
    await page.get_by_role("link", name="keyboard").first.wait_for()
    await _tab_to(page, "tbody a")
    await page.keyboard.press("Enter")
    await page.get_by_text("line 3 of the log").wait_for()
    await _tab_to(page, ".lines")
    await page.keyboard.press("End")
    await page.get_by_text("line 50000 of the log").wait_for()
    await page.keyboard.press("s")
    await page.get_by_role("link", name="keyboard").wait_for()
    await _tab_to(page, 'a[href="#/sessions/keyboard"]')
    await page.keyboard.press("Enter")
    await _tab_to(page, ".timeline summary")
    await page.keyboard.press("Enter")
    await page.get_by_text("line 10 of the log").wait_for()
    await _tab_to(page, ".timeline a")
    await page.keyboard.press("Enter")
    await _tab_to(page, ".changes .danger")
    await page.keyboard.press("Enter")
    await page.get_by_role("dialog").wait_for()
    await page.keyboard.press("Tab")  # from what takes nothing away to what does
    await page.keyboard.press("Enter")
    await page.get_by_role("heading", name="Captures").wait_for()

    with pytest.raises(Deleted):
        await client.get(entry.id)


async def _tab_to(page: Page, selector: str) -> None:
    """Press Tab until the first such element has the focus."""
    await page.evaluate("document.activeElement?.blur()")
    async with asyncio.timeout(30):
        while not await page.evaluate("s => document.activeElement === document.querySelector(s)", selector):
            await page.keyboard.press("Tab")


async def test_narrow_screens_need_no_sideways_scrolling_of_the_page(
    browser: Browser, service: ForkedService, client: Client
) -> None:
    long_name = "a_tool_with_a_name_of_many_letters_" * 3
    entry = await client.put(LOG, tool=long_name, session=long_name, call_id=long_name)
    async with await browser.new_context(viewport={"width": 320, "height": 700}) as context:
        watched = Watched(await context.new_page(), service.url)
        await watched.sign_in(KEYS["acme"])
        for view in ("/", "/captures", f"/sessions/{long_name}", f"/captures/{entry.id}?lines=3-9&q=line"):
            await watched.go(view)
            await watched.page.wait_for_timeout(700)
            assert await watched.page.evaluate("document.scrollingElement.scrollWidth") <= 320, view


async def test_tabs_of_two_tenants_never_mix(
    browser: Browser, service: ForkedService, client: Client
) -> None:
    """Two tabs of one browser have one cookie: the later sign-in. The first tab shows nothing of it."""
    await client.put("acme's own", tool="acme-tool", call_id="mixed")
    async with Client(service.url, key=KEYS["globex"]) as globex, await browser.new_context() as context:
        await globex.put("globex's own", tool="globex-tool", call_id="mixed")
        first, second = [Watched(await context.new_page(), service.url) for _ in range(2)]
        await first.sign_in(KEYS["acme"], "/captures")
        await first.page.get_by_text("acme-tool").first.wait_for()
        await second.page.goto(await globex.page_link())
        await second.page.get_by_role("heading", name="Tenant globex").wait_for()
        await first.page.get_by_role("link", name="Dashboard").click()
        await first.page.get_by_text("This session has ended").wait_for()

        assert await first.page.get_by_text("globex").count() == 0
        assert first.troubles + second.troubles == []


async def test_a_key_that_is_revoked_ends_an_open_page_at_its_next_step(
    watched: Watched, service: ForkedService
) -> None:
    headers = {"Authorization": f"Bearer {KEYS['acme']}"}
    async with ClientSession(headers=headers) as session:
        async with session.post(f"{service.url}{wire.Path.KEYS}", json={"scopes": ["read"]}) as answer:
            made = await answer.json()
        await watched.sign_in(made["key"])
        path = f"{wire.Path.KEYS}/{made['about']['id']}"
        async with session.delete(f"{service.url}{path}") as answer:
            assert answer.status == 200

    async with asyncio.timeout(60):
        while not await watched.page.get_by_text("This session has ended").count():
            for view in ("Captures", "Dashboard"):
                if await watched.page.get_by_role("link", name=view).count():
                    await watched.page.keyboard.press(view[0].lower())
                    await watched.page.wait_for_timeout(1000)


async def test_a_slow_link_shows_figures_before_charts(watched: Watched, client: Client) -> None:
    await client.put(LOG, tool="slow", call_id="slow")
    page, late = watched.page, asyncio.Event()

    async def held(route: Any) -> None:
        await late.wait()
        await route.continue_()

    await page.route(re.compile(r"/page/plot-"), held)
    await watched.sign_in(KEYS["acme"], "/?range=1h")
    async with asyncio.timeout(60):
        while not await page.get_by_role("row", name="slow").count():
            await page.reload()
            await page.wait_for_timeout(1_000)
    assert await page.locator(".u-over").count() == 0
    late.set()
    await page.locator(".u-over").first.wait_for()


async def test_what_the_model_saw_is_read_beside_the_whole(watched: Watched, client: Client) -> None:
    label = {wire.SEEN_LABEL: "1-3,20007,49999-50000"}
    entry = await client.put(LOG, call_id="beside", labels=label)
    page = await opened(watched, f"/captures/{entry.id}")
    await page.get_by_role("button", name="Beside").click()
    seen = page.get_by_role("region", name="Lines seen by the model")
    await seen.get_by_text("line 50000 of the log").wait_for()
    numbers = [await row.get_attribute("data-line") for row in await seen.locator(".row").all()]
    gaps = await seen.locator(".gap").all_inner_texts()
    await seen.get_by_role("button", name="Line 20007").click()
    await page.get_by_role("region", name="Output, 50,000 lines").get_by_text("line 20008 of").wait_for()

    assert numbers == ["1", "2", "3", "20007", "49999", "50000"]
    assert gaps == ["… 20,003 lines", "… 29,991 lines"]
    await page.keyboard.press("p")
    await seen.wait_for(state="detached")


async def test_a_link_to_lines_of_a_search_opens_these_lines(watched: Watched, client: Client) -> None:
    entry = await client.put(LOG, call_id="linked match")
    page = await opened(watched, f"/captures/{entry.id}?lines=100")
    await watched.go(f"/captures/{entry.id}?q=ERROR&lines=30007")
    await page.get_by_text("50 lines", exact=True).wait_for()
    await page.locator('.row.match.selected[data-line="30007"]').wait_for()
    await page.keyboard.press("n")
    await page.locator('.row.match.selected[data-line="31007"]').wait_for()

    assert await page.locator('[data-line="7"]').count() == 0


async def test_who_looks_at_the_end_goes_on_with_it_however_much_comes_at_once(
    watched: Watched, client: Client
) -> None:
    async with client.live(tool="server") as output:
        await output.write(b"".join(b"line %d\n" % number for number in range(1, 501)))
        await output.flush()
        page = await opened(watched, f"/captures/{output.id}")
        await page.get_by_role("button", name="Follow").click()
        await page.get_by_text("line 500", exact=True).wait_for()
        for number in range(1_000, 4_000, 1_000):
            await output.write(b"more\n" * 999 + b"line %d\n" % number)
            await output.flush()
            await page.get_by_text(f"line {number}", exact=True).wait_for()


async def test_who_read_an_output_first_and_when_is_said(watched: Watched, client: Client) -> None:
    entry = await client.put(LOG, call_id="who read it")
    page = await opened(watched, f"/captures/{entry.id}")
    await page.get_by_text("not yet", exact=True).wait_for()
    await client.tail(entry.id, 3)

    async def is_noted() -> bool:
        return (await client.get(entry.id)).first_read is not None

    await until(is_noted, 30)
    await page.reload()
    key = hash_key(KEYS["acme"])[:12]

    await page.locator(".facts").get_by_text(f"by key {key}").wait_for()


async def key_of(service: ForkedService, **fields: object) -> Client:
    """A client with a key of its own."""
    headers, body = {"Authorization": f"Bearer {KEYS['acme']}"}, {"scopes": ["read"], **fields}
    async with (
        ClientSession() as session,
        session.post(f"{service.url}{wire.Path.KEYS}", headers=headers, json=body) as answer,
    ):
        return Client(service.url, key=(await answer.json())["key"])


async def test_all_who_have_read_an_output_are_told_and_who_has_looked_at_it_here(
    watched: Watched, client: Client, service: ForkedService
) -> None:
    entry = await client.put(LOG, call_id="readers")
    for _ in range(4):
        async with await key_of(service) as agent:
            await agent.tail(entry.id, 3)
    page = await opened(watched, f"/captures/{entry.id}")
    facts, own = page.locator(".facts"), hash_key(KEYS["acme"])[:12]

    async def are_noted() -> bool:
        return len((await client.readers(entry.id)).readers) == 5

    await until(are_noted, 30)
    await page.reload()
    listed = facts.get_by_role("listitem")
    await listed.first.wait_for()
    first, before = await listed.first.inner_text(), await listed.count()
    whole = facts.get_by_role("button", name="All 5")
    await whole.focus()
    await page.keyboard.press("Enter")
    after = await listed.count()
    complaints = await complaints_of(page) if AXE.exists() else []

    assert re.fullmatch(rf"key {own}\n.* ago, on this page|key {own}\njust now, on this page", first)
    assert (before, after) == (3, 5)
    assert complaints == []
    assert await facts.get_by_role("button", name="Fewer").get_attribute("aria-expanded") == "true"


async def test_a_key_of_one_session_sees_no_other_readers(
    watched: Watched, client: Client, service: ForkedService
) -> None:
    entry = await client.put(LOG, call_id="bound", session="bound")
    agent = await key_of(service, session="bound")
    await watched.sign_in(agent.address.key, f"/captures/{entry.id}")
    facts = watched.page.locator(".facts")
    await facts.get_by_text("First read").wait_for()

    assert await facts.get_by_text("Read by").count() == 0


async def test_no_key_reaches_the_page_behind_a_dialog(watched: Watched, client: Client) -> None:
    entry = await client.put(LOG, call_id="dialog")
    page = await opened(watched, f"/captures/{entry.id}")
    await page.get_by_role("button", name="Delete…").click()
    await page.get_by_role("dialog").wait_for()
    for key in ("d", "c", "G", "?"):
        await page.keyboard.press(key)
    await page.keyboard.press("Escape")
    await page.get_by_role("dialog").wait_for(state="detached")
    await page.get_by_text("line 3 of the log").wait_for()

    assert page.url.endswith(entry.id)


async def test_facts_are_put_away_and_the_output_is_shown_alone(watched: Watched, client: Client) -> None:
    entry = await client.put(LOG, tool="facts", call_id="facts")
    page = await opened(watched, f"/captures/{entry.id}")
    facts = page.get_by_role("complementary", name="Facts")
    await facts.get_by_text(entry.sha256).wait_for()
    await facts.get_by_role("button", name="Copy code").click()
    copied = await page.evaluate("navigator.clipboard.readText()")
    await page.keyboard.press("i")
    await facts.wait_for(state="detached")
    rows = await page.locator(".row").count()
    await page.keyboard.press("z")
    await page.wait_for_function("rows => document.querySelectorAll('.row').length > rows", arg=rows)
    top = await page.locator(".capture").bounding_box()

    assert copied == f'client.content("{entry.id}")'
    assert top is not None
    assert top["y"] == 0
    await page.keyboard.press("z")
    await page.get_by_role("navigation", name="Views").wait_for()


async def test_every_view_is_a_link_that_survives_a_reload(watched: Watched, client: Client) -> None:
    entry = await client.put(LOG, tool="linked", session="a/b ?#{c} 😀", call_id="linked")
    views = {
        "/?range=7d&compare=1&kept=tokens": "Tenant acme",
        "/captures?tool=linked&range=1h": "Captures",
        "/sessions?name=a/b": "Sessions",
        "/sessions/a%2Fb%20%3F%23%7Bc%7D%20%F0%9F%98%80": "Session a/b ?#{c} 😀",
        f"/captures/{entry.id}?q=ERROR&only=2": "linked complete",
    }
    page = watched.page
    await watched.sign_in(KEYS["acme"], "/no/such/view")
    for view, heading in views.items():
        await watched.go(view)
        await page.get_by_role("heading", name=heading, exact=True, level=1).wait_for()
        await page.reload()
        await page.get_by_role("heading", name=heading, exact=True, level=1).wait_for()
        assert page.url.endswith(view)
    for heading in [*reversed(views.values())][1:]:
        await page.go_back()
        await page.get_by_role("heading", name=heading, exact=True, level=1).wait_for()
    for heading in [*views.values()][1:]:
        await page.go_forward()
        await page.get_by_role("heading", name=heading, exact=True, level=1).wait_for()


async def test_the_keys_of_the_help_are_those_that_do_something(watched: Watched, client: Client) -> None:
    """And no key is kept from the browser that the help does not name."""
    label = {wire.SEEN_LABEL: "1-2"}
    entry = await client.put(LOG, session="keys", call_id="keys", labels=label)
    page = await opened(watched, f"/captures/{entry.id}?q=ERROR")
    await page.keyboard.press("?")
    named = {
        name.replace("Space", " ")
        for key in await page.locator(".keys kbd").all()
        for name in [await key.inner_text()]
    } - {"Esc", "Ctrl+F"}
    await page.keyboard.press("Escape")
    taken = await page.evaluate(
        """() => [...Array(95)].map((_, at) => String.fromCharCode(32 + at)).filter(key => {
            document.activeElement?.blur();
            const event = new KeyboardEvent("keydown", {key, bubbles: true, cancelable: true});
            document.body.dispatchEvent(event);
            document.querySelector("dialog[open]")?.close();
            return event.defaultPrevented;
        })"""
    )

    assert set(taken) == named


async def test_the_very_bytes_of_an_output_are_downloaded(watched: Watched, client: Client) -> None:
    content = bytes(range(256)) * 1_000
    entry = await client.put(content, call_id="download")
    page = await opened(watched, f"/captures/{entry.id}")
    async with page.expect_download() as begun:
        await page.get_by_role("link", name="Download").click()
    path = await (await begun.value).path()

    assert path.read_bytes() == content
