"""The look of the web page: for an operator of all tenants, in a theme, with times, and with damaged data."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest
import pytest_asyncio
from overspill.transfer.client import Client
from overspill_service.tenants.keys import new_key

from tests.e2e.web_page import AXE, Watched, complaints_of, guard_of, service_with
from tests.faults.traffic import until

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from playwright.async_api import Browser

    from tests.servers.overspill import ForkedService

KEYS = {name: new_key() for name in ("acme", "globex", "operators")}
OUTPUT = "one line of output\n" * 4_000

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with service_with(tmp_path_factory.mktemp("looks"), KEYS) as started:
        yield started


@pytest_asyncio.fixture(loop_scope="module")
async def client(service: ForkedService) -> AsyncIterator[Client]:
    async with Client(service.url, key=KEYS["acme"]) as made:
        yield made


@pytest_asyncio.fixture(loop_scope="module")
async def watched(browser: Browser, service: ForkedService) -> AsyncIterator[Watched]:
    async with await browser.new_context(timezone_id="Pacific/Chatham", color_scheme="light") as context:
        made = Watched(await context.new_page(), service.url)
        yield made
        assert made.troubles == []


async def test_an_operator_sees_all_tenants_and_one_of_them(watched: Watched, service: ForkedService) -> None:
    for tenant in ("acme", "globex"):
        async with Client(service.url, key=KEYS[tenant]) as client, guard_of(client, "fleet") as guard:
            await guard.process(OUTPUT, tool="build", call_id="fleet")

    async def is_counted() -> bool:
        async with Client(service.url, key=KEYS["operators"]) as operator:
            rows = (await operator.fleet_stats(total=True)).rows
        return {row.tenant for row in rows if row.figures.get("tool_outputs")} >= {"acme", "globex"}

    await until(is_counted, 30)
    await watched.sign_in(KEYS["operators"], "/?range=1h")
    page = watched.page
    await page.get_by_role("button", name="By tenant").click()
    await page.get_by_role("heading", name="All tenants").wait_for()
    await page.get_by_role("row", name="acme").wait_for()
    await page.get_by_text("2 of 2 outputs", exact=True).wait_for()
    complaints = await complaints_of(page) if AXE.exists() else []
    await page.get_by_role("link", name="globex").click()
    await page.get_by_role("heading", name="All tenants, tenant globex").wait_for()
    await page.get_by_text("1 of 1 output", exact=True).wait_for()

    assert complaints == []


async def test_code_to_copy_is_shown_whole_on_a_phone_beside_its_button(watched: Watched) -> None:
    await watched.page.set_viewport_size({"width": 360, "height": 740})
    await watched.sign_in(KEYS["globex"], "/terminals")
    codes = watched.page.locator(".code")
    await codes.first.wait_for()

    for code in await codes.all():
        text, button = await code.locator("pre").bounding_box(), await code.locator("button").bounding_box()
        hidden = await code.locator("pre").evaluate("text => text.scrollWidth - text.clientWidth")
        assert text is not None
        assert button is not None
        assert text["x"] + text["width"] <= button["x"]
        assert hidden == 0


async def test_a_name_that_is_cut_to_one_line_fills_it(watched: Watched, client: Client) -> None:
    entry = await client.put(OUTPUT, session="s " + "x" * 200, tool="t", call_id="cut")
    await watched.page.set_viewport_size({"width": 360, "height": 740})
    await watched.sign_in(KEYS["acme"], f"/captures/{entry.id}")
    session = watched.page.locator(".facts-line .name")
    first_line = await session.evaluate(
        "name => { const range = document.createRange(); range.selectNodeContents(name);"
        " return range.getClientRects()[0].width }"
    )

    assert first_line > 200


async def test_bars_stand_below_each_other_beside_numbers_of_any_length(
    watched: Watched, client: Client
) -> None:
    for size in (7, 12_345, 123_456, 1_234_567):
        await client.put(b"x" * size, tool="t", session="bars", call_id=str(size))
    await watched.page.set_viewport_size({"width": 1300, "height": 740})
    await watched.sign_in(KEYS["acme"], "/captures?session=bars")
    bars = watched.page.locator("tbody .bar")
    await bars.nth(3).wait_for()

    places = [await bar.bounding_box() for bar in await bars.all()]
    assert len({place and place["x"] for place in places}) == 1


async def test_a_list_of_captures_is_not_cut_on_a_phone(watched: Watched, client: Client) -> None:
    for number in range(2):
        await client.put(b"x" * 123_456, tool="query_database", status="exit 130", call_id=f"phone {number}")
    await watched.page.set_viewport_size({"width": 390, "height": 740})
    await watched.sign_in(KEYS["acme"], "/captures?tool=query_database")
    hidden = await watched.page.locator(".scrolling").evaluate(
        "box => { for (const time of box.querySelectorAll('td time')) time.textContent = '42 minutes ago';"
        " return box.scrollWidth - box.clientWidth }"
    )
    status = await watched.page.locator("tbody .status").first.bounding_box()

    assert hidden == 0
    assert status is not None
    assert status["height"] < 30


async def test_who_administers_nothing_is_offered_no_other_tenant(watched: Watched, client: Client) -> None:
    await client.put(OUTPUT, call_id="own")
    await watched.sign_in(KEYS["acme"], "/?range=1h&fleet=1")
    await watched.page.get_by_role("heading", name="Tenant acme").wait_for()

    assert await watched.page.get_by_role("button", name="By tenant").count() == 0


async def test_a_theme_that_somebody_chose_stays_and_else_that_of_the_system_counts(watched: Watched) -> None:
    ground = "getComputedStyle(document.body).backgroundColor"
    page = watched.page
    await watched.sign_in(KEYS["acme"])
    light = await page.evaluate(ground)
    await page.emulate_media(color_scheme="dark")
    dark = await page.evaluate(ground)
    await page.get_by_role("button", name="acme").click()
    await page.get_by_role("button", name="Light").click()
    await page.reload()
    await page.get_by_role("button", name="acme").wait_for()

    assert light != dark
    assert await page.evaluate(ground) == light


async def test_a_time_has_the_exact_instant_in_the_readers_zone_behind_it(
    watched: Watched, client: Client
) -> None:
    entry = await client.put(OUTPUT, call_id="when")
    await watched.sign_in(KEYS["acme"], f"/captures/{entry.id}")
    time = watched.page.locator(".facts time").first
    at = datetime.fromisoformat(await time.get_attribute("datetime") or "")
    shown = await watched.page.evaluate("t => new Date(t).toLocaleString()", at.isoformat())

    assert abs((datetime.now(UTC) - at).total_seconds()) < 600
    assert (await time.get_attribute("title") or "").startswith(shown)
    assert "ago" in await time.inner_text() or await time.inner_text() == "now"


async def test_a_damaged_output_is_said_to_be_and_what_is_sound_of_it_is_shown(
    watched: Watched, service: ForkedService, client: Client
) -> None:
    content = "".join(f"{number} of {number * 7919 % 104_729}\n" for number in range(1, 200_001))
    entry = await client.put(content, call_id="damaged")
    (stored,) = [path for path in service.data.rglob(f"{entry.id}*") if path.is_file()]
    data = bytearray(stored.read_bytes())
    data[2_000:2_100] = bytes(100)
    stored.chmod(0o600)
    stored.write_bytes(data)
    await watched.sign_in(KEYS["acme"], f"/captures/{entry.id}")
    page = watched.page
    await page.get_by_role("alert").get_by_role("button", name="Try again").wait_for()
    await page.keyboard.press("G")

    await page.get_by_text(content.splitlines()[-1], exact=True).wait_for()
