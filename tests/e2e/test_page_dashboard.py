"""The dashboard of the web page in a real browser."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import pytest_asyncio
from aiohttp import ClientSession
from overspill import Policy, wire
from overspill.transfer.client import Client
from overspill_service.tenants.keys import new_key

from tests.e2e.web_page import Watched, guard_of, service_with
from tests.faults.traffic import until

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from playwright.async_api import Browser

    from tests.servers.overspill import ForkedService

KEY, NEW_KEY = new_key(), new_key()
OUTPUT = "one line of output\n" * 4_000

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with service_with(tmp_path_factory.mktemp("dashboard"), {"acme": KEY, "newcomer": NEW_KEY}) as started:
        yield started


@pytest_asyncio.fixture(loop_scope="module")
async def client(service: ForkedService) -> AsyncIterator[Client]:
    async with Client(service.url, key=KEY) as made:
        yield made


@pytest_asyncio.fixture(loop_scope="module")
async def watched(browser: Browser, service: ForkedService) -> AsyncIterator[Watched]:
    async with await browser.new_context(viewport={"width": 1200, "height": 900}) as context:
        made = Watched(await context.new_page(), service.url)
        yield made
        assert made.troubles == []


async def bound_key(service: ForkedService, **bound: object) -> str:
    """Make a key that is bound to sessions."""
    asked = {"scopes": ["read"], **bound}
    headers = {"Authorization": f"Bearer {KEY}"}
    async with (
        ClientSession(headers=headers) as session,
        session.post(f"{service.url}{wire.Path.KEYS}", json=asked) as answer,
    ):
        return str((await answer.json())["key"])


async def test_a_key_of_one_session_sees_the_captures_of_that_session_first(
    watched: Watched, service: ForkedService, client: Client
) -> None:
    await client.put(OUTPUT, tool="its-own", session="run-1", call_id="own")
    await client.put(OUTPUT, tool="foreign", session="run-2", call_id="foreign")
    await watched.sign_in(await bound_key(service, session="run-1"))
    await watched.page.get_by_text("This key is for one session").wait_for()
    await watched.page.get_by_text("its-own").wait_for()

    assert await watched.page.get_by_text("foreign").count() == 0
    assert await watched.page.get_by_role("alert").count() == 0


async def test_a_key_of_several_sessions_asks_for_one_of_them(
    watched: Watched, service: ForkedService, client: Client
) -> None:
    await client.put(OUTPUT, tool="its-own", session="team/7", call_id="own")
    await watched.sign_in(await bound_key(service, session="team/", is_prefix=True))
    await watched.page.get_by_role("link", name="Captures").click()
    await watched.page.get_by_role("heading", name="Captures").wait_for()
    await watched.page.get_by_role("heading", name="Your sessions").wait_for()
    await watched.page.get_by_label("Session").last.fill("team/7")
    await watched.page.keyboard.press("Enter")
    await watched.page.get_by_role("heading", name="Session team/7").wait_for()
    await watched.page.get_by_text("its-own").wait_for()


async def test_advice_has_the_lines_of_a_policy_to_copy(
    watched: Watched, service: ForkedService, client: Client, tmp_path: Path
) -> None:
    """Outputs that nobody reads, as an agent's guard reports them."""
    async with guard_of(client, "advice") as guard:
        for number in range(90):
            await guard.process(f"{number} {OUTPUT}", tool="ignored", call_id=f"call {number}")

    async def is_counted() -> bool:
        stats = await client.stats(total=True)
        return sum(row.figures.get("captures", 0) for row in stats.rows if row.tool == "ignored") >= 90

    await until(is_counted, 30)
    await watched.sign_in(KEY)
    page = watched.page
    await page.get_by_role("heading", name="Advice").wait_for()
    row = page.get_by_role("region", name="Advice").get_by_role("row", name="ignored")
    shown = await row.inner_text()
    lines = await row.get_by_role("button", name="Copy policy lines").get_attribute("title")
    await page.get_by_text("All of it as a policy file").click()
    path = tmp_path / "policy.toml"
    path.write_text(await page.get_by_role("region", name="Advice").locator("pre").inner_text())

    assert "50,000 → 25,000" in shown
    assert "captures were read: the preview was enough" in shown
    assert lines is not None
    assert lines in path.read_text()
    assert Policy.load(path).limits("ignored").max_bytes == 25_000


async def test_the_largest_captures_of_all_are_listed(watched: Watched, client: Client) -> None:
    largest = await client.put("x" * 3_000_000, tool="huge", call_id="the largest")
    for number in range(10):
        await client.put(f"{number}", tool="tiny", call_id=f"tiny {number}")
    await watched.sign_in(KEY)
    await watched.page.get_by_role("heading", name="The captures that cost most").wait_for()
    link = watched.page.get_by_role("region", name="The largest captures").locator("tbody a").first

    assert (await link.get_attribute("href") or "").endswith(largest.id)


async def test_one_tool_and_a_fixed_time_are_in_the_address(watched: Watched, client: Client) -> None:
    async with guard_of(client, "filters") as guard:
        for tool in ("loud", "quiet"):
            await guard.process(OUTPUT, tool=tool, call_id=f"filters {tool}")

    async def is_counted() -> bool:
        stats = await client.stats(total=True)
        return {"loud", "quiet"} <= {row.tool for row in stats.rows if row.figures.get("tool_outputs")}

    await until(is_counted, 30)
    await watched.sign_in(KEY, "/?range=1h")
    page = watched.page
    await page.get_by_role("region", name="Figures by tool").get_by_role("link", name="loud").click()
    await page.get_by_role("heading", name="Tenant acme, tool loud").wait_for()
    await page.get_by_text("1 of 1 output", exact=True).wait_for()
    assert await page.get_by_role("row", name="quiet").count() == 0
    await page.locator(".u-over").first.wait_for()
    chart = await page.locator(".u-over").first.bounding_box()
    assert chart is not None
    await page.mouse.move(chart["x"] + chart["width"] / 2, chart["y"] + 20)
    await page.wait_for_function(
        "() => [...document.querySelectorAll('.legend .at')].filter(at => at.textContent).length > 2"
    )
    await page.mouse.down()
    await page.mouse.move(chart["x"] + chart["width"] - 2, chart["y"] + 20, steps=5)
    await page.mouse.up()
    await page.locator(".span .chosen").wait_for()
    address = page.url
    await page.reload()
    await page.get_by_role("heading", name="Tenant acme, tool loud").wait_for()

    assert "since=" in address
    assert "until=" in address
    assert "tool=loud" in address
    assert page.url == address
    await page.get_by_role("button", name="Not only loud").click()
    await page.get_by_role("heading", name="Tenant acme", exact=True).wait_for()
    await page.go_back()
    await page.get_by_role("heading", name="Tenant acme, tool loud").wait_for()


async def test_tools_are_compared_over_time_and_the_table_has_the_same_numbers(
    watched: Watched, client: Client
) -> None:
    async with guard_of(client, "compared") as guard:
        for number in range(4):
            await guard.process(OUTPUT, tool="always-large", call_id=f"large {number}")
            await guard.process(
                OUTPUT if number else "short", tool="mostly-large", call_id=f"mostly {number}"
            )

    async def is_counted() -> bool:
        stats = await client.stats(total=True)
        outputs = [row for row in stats.rows if row.tool.endswith("-large") and "tool_outputs" in row.figures]
        return sum(row.figures["tool_outputs"] for row in outputs) == 8

    await until(is_counted, 30)
    await watched.sign_in(KEY, "/?range=1h")
    page = watched.page
    await page.get_by_role("button", name="The tools").click()
    chart = page.get_by_role("img", name="Outputs too large, in percent of all outputs.")
    await page.get_by_role("img", name="mostly-large: 75%.").wait_for()
    described = await chart.get_attribute("aria-label") or ""
    await page.get_by_text("These charts as tables").click()
    table = page.get_by_role("region", name="Shares of outputs too large")
    names = await table.get_by_role("columnheader").all_inner_texts()
    shares = await table.locator("tbody tr").first.locator("td").all_inner_texts()

    assert "always-large: 100%." in described
    assert "compare=1" in page.url
    assert shares[names.index("mostly-large")] == "75%"
    assert shares[names.index("always-large")] == "100%"


async def test_every_chart_has_its_unit_and_its_values_as_a_text(watched: Watched, client: Client) -> None:
    await client.put(OUTPUT, tool="described", call_id="described")
    await watched.sign_in(KEY, "/?range=1h")
    page = watched.page
    await page.locator(".chart[role=img]").nth(3).wait_for()
    told = [await each.get_attribute("aria-label") or "" for each in await page.locator(".chart").all()]
    units = ("in percent of all outputs", "in bytes", "number of captures", "number of bursts")
    await page.get_by_role("button", name="Tokens", exact=True).click()
    await page.get_by_role("img", name="Kept out of conversations, number of tokens").wait_for()

    assert len(told) == len(units)
    for text, unit in zip(told, units, strict=True):
        assert unit in text
        assert ": " in text
        assert "The table below has every value." in text


async def test_a_column_orders_the_tools(watched: Watched, client: Client) -> None:
    async with guard_of(client, "ordered") as guard:
        for number in range(40):
            await guard.process("short", tool="often", call_id=f"often {number}")
        await guard.process(OUTPUT * 9, tool="once", call_id="once")

    async def is_counted() -> bool:
        rows = (await client.stats(total=True)).rows
        return {"often", "once"} <= {row.tool for row in rows if row.figures.get("tool_outputs")}

    await until(is_counted, 30)
    await watched.sign_in(KEY, "/?range=1h")
    table = watched.page.get_by_role("region", name="Figures by tool")

    async def place(tool: str) -> int:
        return [await cell.inner_text() for cell in await table.locator("tbody td:first-child").all()].index(
            tool
        )

    await table.get_by_role("link", name="often").wait_for()
    assert await place("once") < await place("often")
    await table.get_by_role("button", name="Outputs", exact=True).click()
    await table.locator("th[aria-sort=descending]", has_text="Outputs").wait_for()

    assert await place("often") < await place("once")
    await watched.page.reload()
    await table.locator("th[aria-sort=descending]", has_text="Outputs").wait_for()


async def test_a_link_to_this_time_shows_the_same_figures_later(
    browser: Browser, service: ForkedService, client: Client
) -> None:
    await client.put(OUTPUT, tool="frozen", call_id="frozen")
    rights = ["clipboard-read", "clipboard-write"]
    async with await browser.new_context(permissions=rights) as context:
        watched = Watched(await context.new_page(), service.url)
        await watched.sign_in(KEY, "/?range=7d&kept=tokens")
        page = watched.page
        await page.get_by_role("button", name="Copy link to this time").click()
        await page.get_by_role("button", name="Copied").wait_for()
        address = await page.evaluate("navigator.clipboard.readText()")
        await page.goto(address)
        await page.locator(".since", has_text="From").wait_for()

        assert "since=" in address
        assert "until=" in address
        assert "range=" not in address
        assert "kept=tokens" in address


async def test_the_time_and_the_tool_go_along_to_the_list_of_captures(
    watched: Watched, client: Client
) -> None:
    await client.put(OUTPUT, tool="followed", call_id="followed")
    await client.put(OUTPUT, tool="left behind", call_id="left behind")
    await watched.sign_in(KEY, "/?range=1h&tool=followed")
    page = watched.page
    await page.get_by_role("link", name="Its captures").click()
    await page.get_by_role("link", name="followed", exact=True).wait_for()

    assert await page.get_by_label("Captured").input_value() == "1h"
    assert await page.get_by_role("link", name="left behind").count() == 0
    await page.goto(page.url.split("?")[0] + "?since=2026-01-15T10:00:00Z&until=2026-01-15T11:00:00Z")
    await page.get_by_role("heading", name="No capture fits").wait_for()
    await page.get_by_role("button", name="Not only").click()
    await page.get_by_role("link", name="left behind").wait_for()


async def test_what_is_stored_now_is_told_with_its_limits(watched: Watched, client: Client) -> None:
    await client.put(OUTPUT, call_id="stored")
    usage = await client.usage()
    await watched.sign_in(KEY, "/?range=1h")
    card = watched.page.get_by_role("region", name="Stored now")
    await card.get_by_text(f"{usage.captures:,} capture").wait_for()

    assert "At most" in (await card.locator("[title]").first.get_attribute("title") or "")


async def test_the_largest_captures_are_listed_first_on_request(watched: Watched, client: Client) -> None:
    largest = await client.put("y" * 4_000_000, tool="largest-of-all", call_id="largest first")
    await client.put("small", tool="newest", call_id="newest")
    await watched.sign_in(KEY, "/captures")
    await watched.page.get_by_role("button", name="Largest first").click()
    first = watched.page.locator("tbody tr").first
    await first.get_by_text("largest-of-all").wait_for()

    assert (await first.locator("a").first.get_attribute("href") or "").endswith(largest.id)


async def test_an_empty_dashboard_says_how_to_begin_and_fills_itself(
    watched: Watched, service: ForkedService
) -> None:
    await watched.sign_in(NEW_KEY, "/?range=1h")
    page = watched.page
    await page.get_by_role("heading", name="Nothing happened in this time").wait_for()
    shown = await page.get_by_role("region", name="Guard the tools of an agent").inner_text()
    async with Client(service.url, key=NEW_KEY) as client, guard_of(client, "first") as guard:
        await guard.process(OUTPUT, tool="first-tool", call_id="first")
    await page.get_by_role("region", name="Figures by tool").get_by_role("link", name="first-tool").wait_for()

    compile(shown.replace("async with", "async def run():\n  async with"), "shown", "exec")


async def test_the_dashboard_has_the_very_numbers_of_the_guard(
    watched: Watched, service: ForkedService, client: Client
) -> None:
    """What the load generator of this test has counted itself, tool by tool."""
    async with guard_of(client, "numbers") as guard:
        for number in range(30):
            output = OUTPUT * (1 + number % 3) if number % 3 else "short\n"
            shown = await guard.process(output, tool="counted", call_id=f"numbers {number}")
            if shown.capture and number % 2:
                await client.tail(shown.capture, 3)
        counts = [count for (tool, _), count in guard.stats.items() if tool == "counted"]
    kept_out = sum(count.bytes_before - count.bytes_after for count in counts)

    async def is_counted() -> bool:
        stats = await client.stats(total=True)
        return sum(row.figures.get("captures_read", 0) for row in stats.rows if row.tool == "counted") == 10

    await until(is_counted, 30)
    await watched.sign_in(KEY, "/?range=1h&tool=counted")
    await watched.page.get_by_text("20 of 30 outputs", exact=True).wait_for()
    found = await watched.page.evaluate("fetch('v1/overview?tool=counted').then(answer => answer.json())")
    sums = {
        name: sum(row["figures"].get(name, 0) for row in found["series"])
        for name in ("tool_output_bytes", "tool_output_kept_bytes")
    }

    assert sums["tool_output_bytes"] - sums["tool_output_kept_bytes"] == kept_out
    assert await watched.page.get_by_text("10 of 20 captures, 10 reads", exact=True).count() == 1
    assert await watched.page.get_by_text(f"{kept_out / 1e6:.1f} MB", exact=True).count() >= 1
