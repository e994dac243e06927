"""The web page in a real browser, before a real service with real captures."""

from __future__ import annotations

import asyncio
import socket
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest
import pytest_asyncio
from aiohttp import ClientSession, web
from overspill import wire
from overspill.errors import Deleted
from overspill.transfer.client import Client
from overspill_service.tenants.keys import hash_key, new_key
from yarl import URL

from tests.e2e.web_page import AXE, Watched, complaints_of
from tests.faults.traffic import until
from tests.servers.overspill import ForkedService

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from playwright.async_api import Browser, BrowserContext

LOG = "".join(
    f"{'ERROR' if number % 1000 == 7 else 'info'} line {number} of the log\n" for number in range(1, 50_001)
)
PASSED_ON = {"Content-Type", "Set-Cookie", "Content-Security-Policy", "Cache-Control"}
KEYS = {name: new_key() for name in ("acme", "globex", "reader")}

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A service with two tenants, and a key of the first that may only read."""
    folder = tmp_path_factory.mktemp("page")
    every = ", ".join(f'"{scope}"' for scope in wire.Scope if scope != "fleet")
    file = folder / "tenants.toml"
    file.write_text(
        f'[[tenants]]\nname = "acme"\nkeys = [{{hash = "{hash_key(KEYS["acme"])}", scopes = [{every}]}}, '
        f'{{hash = "{hash_key(KEYS["reader"])}", scopes = ["read"]}}]\n'
        '[[tenants]]\nname = "globex"\n'
        f'keys = [{{hash = "{hash_key(KEYS["globex"])}", scopes = [{every}]}}]\n'
    )
    started = ForkedService(folder / "run", tenants=file, anonymous=False)
    started.start()
    yield started
    started.stop()


@pytest_asyncio.fixture(loop_scope="module")
async def client(service: ForkedService) -> AsyncIterator[Client]:
    async with Client(service.url, key=KEYS["acme"]) as made:
        yield made


@pytest_asyncio.fixture(loop_scope="module")
async def context(browser: Browser) -> AsyncIterator[BrowserContext]:
    async with await browser.new_context(viewport={"width": 1400, "height": 800}) as made:
        yield made


@pytest_asyncio.fixture(loop_scope="module")
async def watched(context: BrowserContext, service: ForkedService) -> AsyncIterator[Watched]:
    made = Watched(await context.new_page(), service.url)
    yield made
    assert made.troubles == []


async def test_a_wrong_key_is_refused_and_the_right_one_is_kept_over_a_reload(watched: Watched) -> None:
    await watched.go("/")
    await watched.page.get_by_label("Key").fill(new_key())
    assert await watched.page.get_by_text("session has ended").count() == 0
    await watched.page.get_by_role("button", name="Sign in").click()
    await watched.page.get_by_role("alert").wait_for()
    await watched.sign_in_by_hand(KEYS["acme"])
    await watched.page.reload()
    await watched.page.get_by_role("heading", name="Tenant acme").wait_for()

    assert KEYS["acme"] not in await watched.page.content()
    assert "ovs_" not in watched.page.url
    assert (
        await watched.page.evaluate("JSON.stringify([{...localStorage}, {...sessionStorage}])") == "[{},{}]"
    )
    await watched.page.get_by_role("button", name="acme").click()
    await watched.page.get_by_role("button", name="Sign out").click()
    await watched.page.get_by_label("Key").wait_for()
    await watched.page.reload()
    await watched.page.get_by_label("Key").wait_for()


async def test_a_link_signs_in_a_tab_that_shows_the_page_already(watched: Watched, client: Client) -> None:
    entry = await client.put("one\ntwo\n", call_id="a link in an open tab")
    await watched.go("/")
    await watched.page.get_by_label("Key").wait_for()
    await watched.page.goto(await client.page_link(entry.id))

    await watched.page.get_by_role("navigation", name="Views").wait_for()
    assert watched.page.url == f"{watched.url}/#/captures/{entry.id}"
    assert watched.troubles == []


async def test_a_link_signs_in_once_and_leaves_the_address(watched: Watched, client: Client) -> None:
    entry = await client.put(LOG, tool="build", call_id="by-link")
    await watched.page.goto(await client.page_link(entry.id))
    await watched.page.locator(".row").first.wait_for()

    assert watched.page.url == f"{watched.url}/#/captures/{entry.id}"


async def test_an_output_is_searched_and_walked_through_by_keys_alone(
    watched: Watched, client: Client
) -> None:
    entry = await client.put(LOG, tool="build", call_id="search")
    await watched.sign_in_by_hand(KEYS["acme"], f"/captures/{entry.id}")
    page = watched.page
    await page.get_by_text("line 3 of the log").wait_for()
    await page.keyboard.press("/")
    await page.keyboard.type("ERROR")
    await page.get_by_text("50 lines", exact=True).wait_for()
    await page.get_by_text("line 7 of the log").wait_for()
    await page.keyboard.press("Escape")
    await page.keyboard.press("n")
    await page.get_by_text("line 1007 of the log").wait_for()
    await page.keyboard.press("G")
    await page.get_by_text("line 50000 of the log").wait_for()
    await page.keyboard.press("?")
    await page.get_by_role("dialog").wait_for()
    await page.keyboard.press("Escape")
    await page.keyboard.press(":")
    await page.keyboard.type("25000")
    await page.keyboard.press("Enter")
    await page.get_by_text("line 25000 of the log").wait_for()

    assert "q=ERROR" in page.url
    assert "lines=25000" in page.url


async def test_a_live_output_grows_before_its_reader_until_it_ends(watched: Watched, client: Client) -> None:
    page = watched.page
    async with client.live(tool="server") as output:
        await output.write(b"".join(b"line %d\n" % number for number in range(1, 501)))
        await output.flush()
        await watched.sign_in(KEYS["acme"], f"/captures/{output.id}")
        await page.get_by_role("button", name="Following").wait_for()
        await page.get_by_text("line 500", exact=True).wait_for()
        await page.keyboard.press("g")
        await page.get_by_text("line 1", exact=True).wait_for()
        await output.write(b"line 501\n")
        await page.get_by_role(
            "region", name="Output, 501 lines"
        ).wait_for()  # the reader stays where they are
        in_view = await page.get_by_text("line 1", exact=True).is_visible()
        await page.get_by_role("button", name="Follow").click()
        await page.get_by_text("line 501", exact=True).wait_for()
        await output.write(b"line 5")
        await page.get_by_text("line 5", exact=True).wait_for()
        await output.write(b"02 is longer\nready\n")
        await page.get_by_text("line 502 is longer", exact=True).wait_for()
        await page.get_by_text("ready", exact=True).wait_for()
        complaints = await complaints_of(page) if AXE.exists() else []
    await page.locator("h1 .state.complete").wait_for()

    assert in_view
    assert complaints == []


async def test_the_map_shows_every_error_and_the_key_e_walks_through_them(
    watched: Watched, client: Client
) -> None:
    entry = await client.put(LOG, call_id="map")
    await watched.sign_in(KEYS["acme"], f"/captures/{entry.id}")
    await watched.page.locator(".minimap .error").first.wait_for(state="attached")
    shown = await watched.page.locator(".minimap .error").count()
    await watched.go(f"/captures/{entry.id}?lines=47000")
    await watched.page.locator('[data-line="47000"]').wait_for()
    await watched.page.keyboard.press("e")
    await watched.page.locator('[data-line="47007"].selected').wait_for()

    assert shown == 50


async def test_the_lines_that_the_model_saw_are_marked(watched: Watched, client: Client) -> None:
    label = {wire.SEEN_LABEL: "1-3,1007,49999-50000"}
    entry = await client.put(LOG, call_id="seen", labels=label)
    await watched.sign_in(KEYS["acme"], f"/captures/{entry.id}")
    await watched.page.get_by_role("button", name="6 lines seen by the model").wait_for()
    first = await watched.page.locator(".row.seen").count()
    for _ in range(2):
        await watched.page.get_by_role("button", name="6 lines seen").click()
    await watched.page.get_by_role("button", name="Line 1007, seen by the model").wait_for()

    assert first == 3
    assert await watched.page.get_by_text(wire.SEEN_LABEL).count() == 0


@pytest.mark.parametrize("label", ["", "5-2", "1-99999999", "<script>", "1-2,", "0"])
async def test_a_label_that_is_no_list_of_lines_marks_none(
    watched: Watched, client: Client, label: str
) -> None:
    entry = await client.put(LOG, call_id=f"not seen {label}", labels={wire.SEEN_LABEL: label})
    await watched.sign_in(KEYS["acme"], f"/captures/{entry.id}")
    await watched.page.get_by_text("line 3 of the log").wait_for()

    assert await watched.page.locator(".seen, .seen-count").count() == 0


async def test_a_link_to_lines_opens_them_and_back_goes_back(watched: Watched, client: Client) -> None:
    entry = await client.put(LOG, tool="build", call_id="deep")
    await watched.sign_in(KEYS["acme"], "/captures")
    await watched.go(f"/captures/{entry.id}?lines=40000-40002")
    await watched.page.get_by_text("line 40001 of the log").wait_for()

    assert await watched.page.locator(".row.selected").count() == 3
    await watched.page.go_back()
    await watched.page.get_by_role("heading", name="Captures").wait_for()
    await watched.page.go_forward()
    await watched.page.get_by_text("line 40001 of the log").wait_for()


HOSTILE = (
    "<script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">\n"
    "\x1b]8;;javascript:alert(1)\x07a link\x1b]8;;\x07 \x1b[31mred\x1b[0m \x1b[2J\x1b]0;owned\x07plain\n"
    "right\u202eto left\u2066 zero\u200bwidth \u2028 nul\x00 bell\x07\n"
)


async def test_hostile_text_is_shown_and_does_nothing(watched: Watched, client: Client) -> None:
    name = '<b onmouseover=alert(1)>\u202e"&amp;{}'
    entry = await client.put(
        HOSTILE.encode() + b"\xff\xfe not UTF-8\n", tool=name, session=name, call_id=name, labels={"a": name}
    )
    await watched.sign_in(KEYS["acme"], f"/captures/{entry.id}")
    page = watched.page
    await page.get_by_text("not UTF-8").wait_for()
    text = await page.locator(".lines").inner_text()

    assert "<script>document.title='owned'</script>" in text
    assert "a link red plain" in text
    assert "right⟨U+202E⟩to left⟨U+2066⟩ zero⟨U+200B⟩width ⟨U+2028⟩ nul␀ bell␇" in text
    assert await page.locator(".a-fg-red").inner_text() == "red"
    assert "owned" not in await page.title()
    assert await page.locator("main script, main b, main img").count() == 0
    for view in ("/captures", f"/sessions/{name}", "/"):
        await watched.go(view.replace("%", "%25").replace("#", "%23"))
        await page.wait_for_timeout(200)
    assert await page.locator("main b, main img").count() == 0


async def test_lines_of_a_terminal_show_what_they_were_last_rewritten_to(
    watched: Watched, client: Client
) -> None:
    content = b"\r\x1b[K 50%\r\x1b[K\x1b[31m100%\x1b[0m\r\x1b[K\nplain\n"
    entry = await client.put(content, labels={wire.TERMINAL_LABEL: "build"})
    await watched.sign_in(KEYS["acme"], f"/captures/{entry.id}")
    await watched.page.get_by_text("plain", exact=True).wait_for()
    text = await watched.page.locator(".lines").inner_text()

    assert "100%" in text
    assert "50%" not in text
    assert "␍" not in text
    assert await watched.page.locator(".a-fg-red").inner_text() == "100%"


async def test_a_very_long_line_is_read_on_in_place(watched: Watched, client: Client) -> None:
    entry = await client.put(b"short\n" + b"0123456789" * 30_000 + b"the end\nlast\n", call_id="long")
    await watched.sign_in(KEYS["acme"], f"/captures/{entry.id}")
    more = watched.page.get_by_role("button", name="read on in this line")
    await more.wait_for()
    for _ in range(6):
        if not await more.count():
            break
        await more.click()
        await watched.page.wait_for_timeout(300)

    assert (await watched.page.locator('[data-line="2"] code').inner_text()).endswith("the end")
    assert await watched.page.locator('[data-line="3"] code').inner_text() == "last"


async def test_a_long_output_costs_no_more_than_a_short_one(watched: Watched, client: Client) -> None:
    """Millions of lines: the first view is small, and so is a jump to the middle."""
    total = 3_000_000
    content = b"".join(b"%d\n" % number for number in range(1, total + 1))
    entry = await client.put(content, call_id="millions")
    page = watched.page
    await watched.sign_in(KEYS["acme"])
    sizes: list[int] = []

    def note(response: Any) -> None:
        sizes.append(int(response.headers.get("content-length", 0)))

    page.on("response", note)
    await watched.go(f"/captures/{entry.id}")
    await page.locator('[data-line="5"] code').get_by_text("5", exact=True).wait_for()
    first = sum(sizes)
    sizes.clear()
    await watched.go(f"/captures/{entry.id}?lines=1500000")
    await page.reload()
    await page.locator('[data-line="1500000"] code').get_by_text("1500000", exact=True).wait_for()
    middle = sum(sizes)
    await page.locator(".lines").evaluate("box => { box.scrollTop = box.scrollHeight }")
    await page.locator(f'[data-line="{total}"] code').get_by_text(str(total), exact=True).wait_for()
    await page.locator(".lines").evaluate("box => { box.scrollTop = 0 }")
    await page.locator('[data-line="1"] code').get_by_text("1", exact=True).wait_for()

    assert first < 200_000
    assert middle < 1_000_000


async def test_two_tenants_see_their_own(browser: Browser, service: ForkedService, client: Client) -> None:
    await client.put("acme's own output", tool="acme-tool", call_id="own")
    async with await browser.new_context() as one, await browser.new_context() as other:
        first, second = (
            Watched(await one.new_page(), service.url),
            Watched(await other.new_page(), service.url),
        )
        await first.sign_in(KEYS["acme"], "/captures")
        await second.sign_in(KEYS["globex"], "/captures")
        await first.page.get_by_text("acme-tool").first.wait_for()
        await second.page.get_by_text("Nothing is captured yet").wait_for()

        assert await second.page.get_by_text("acme-tool").count() == 0


async def test_who_may_only_read_is_offered_nothing_else(watched: Watched, client: Client) -> None:
    entry = await client.put(LOG, call_id="read only")
    await watched.sign_in(KEYS["reader"], f"/captures/{entry.id}")
    await watched.page.get_by_text("line 3 of the log").wait_for()

    assert await watched.page.get_by_role("button", name="Delete").count() == 0
    assert await watched.page.get_by_text("Keep for").count() == 0


async def test_a_capture_is_kept_longer_and_deleted(watched: Watched, client: Client) -> None:
    entry = await client.put(LOG, call_id="to be deleted")
    await watched.sign_in(KEYS["acme"], f"/captures/{entry.id}")
    await watched.page.get_by_label("Keep for").select_option("30 days")
    await watched.page.get_by_text("in 30 days").wait_for()
    await watched.page.get_by_role("button", name="Delete…").click()
    await watched.page.get_by_role("button", name="Cancel").click()
    assert (await client.get(entry.id)).id == entry.id
    await watched.page.get_by_role("button", name="Delete…").click()
    await watched.page.get_by_role("dialog").get_by_role("button", name="Delete for good").click()
    await watched.page.get_by_role("heading", name="Captures").wait_for()

    with pytest.raises(Deleted):
        await client.get(entry.id)


async def test_json_is_a_tree_and_csv_a_table(watched: Watched, client: Client) -> None:
    tree = await client.put(b'{"user": {"name": "<b>ada</b>", "tags": ["x", 1, null]}}', call_id="tree")
    rows = await client.put(
        b'name,note\nada,"says ""hi"", twice"\nbob,\n', call_id="rows", content_type="text/csv"
    )
    lines = await client.put(
        b'{"a": 1}\n{"a": 2, "b": "x"}\n', call_id="lines", content_type="application/x-ndjson"
    )
    await watched.sign_in(KEYS["acme"], f"/captures/{tree.id}")
    page = watched.page  # so small a document in one line is a tree at once
    await page.locator(".json-string").get_by_text('"<b>ada</b>"').wait_for()
    await watched.go(f"/captures/{rows.id}")
    await page.get_by_role("button", name="Table").click()
    await page.get_by_role("cell", name='says "hi", twice').wait_for()
    await watched.go(f"/captures/{lines.id}")
    await page.get_by_text('"b": "x"').wait_for()
    await page.keyboard.press("t")
    await page.get_by_role("columnheader", name="b", exact=True).wait_for()

    assert await page.locator(".structured tbody tr").count() == 2


async def test_a_key_that_is_revoked_ends_the_session_in_view(
    watched: Watched, service: ForkedService, client: Client
) -> None:
    """Its tenant is in the tenants' file, which the service reads again when it changes."""
    file = service.data.parent.parent / "tenants.toml"
    kept, key = file.read_text(), new_key()
    entry = await client.put(LOG, call_id="to be revoked")
    hashed = hash_key(key)
    added = f'[[tenants]]\nname = "leaving"\nkeys = [{{hash = "{hashed}", scopes = ["read"]}}]\n'
    file.write_text(kept + added)
    page = watched.page

    async def try_to_sign_in() -> bool:
        await watched.go("/")
        await page.get_by_label("Key").fill(key)
        await page.get_by_role("button", name="Sign in").click()
        await page.wait_for_timeout(500)
        return bool(await page.get_by_role("link", name="Captures").count())

    await until(try_to_sign_in, 30)
    file.write_text(kept)

    async def is_signed_out() -> bool:
        await watched.go(f"/captures/{entry.id}")
        await page.reload()
        await page.wait_for_timeout(500)
        return bool(await page.get_by_label("Key").count())

    await until(is_signed_out, 30)


async def test_a_service_that_restarts_is_said_and_found_again(
    watched: Watched, service: ForkedService, client: Client
) -> None:
    entry = await client.put(LOG, call_id="restart")
    await watched.sign_in(KEYS["acme"], f"/captures/{entry.id}")
    page = watched.page
    await page.get_by_text("line 3 of the log").wait_for()
    await asyncio.to_thread(service.stop)
    await page.keyboard.press("G")
    await page.get_by_text("The service cannot be reached").first.wait_for()
    await asyncio.to_thread(service.start)
    await page.get_by_role("button", name="Try again").click()
    await page.get_by_text("line 50000 of the log").wait_for()


@asynccontextmanager
async def behind_prefix(target: str, prefix: str) -> AsyncIterator[str]:
    """A proxy that serves `target` under a prefix of the path."""

    async def passed_on(request: web.Request) -> web.Response:
        assert request.raw_path.startswith(prefix)
        async with session.request(
            request.method,
            URL(target + request.raw_path.removeprefix(prefix), encoded=True),
            headers=request.headers,
            data=await request.read(),
        ) as answer:
            kept = {name: answer.headers[name] for name in answer.headers if name in PASSED_ON}
            return web.Response(body=await answer.read(), status=answer.status, headers=kept)

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", passed_on)
    runner = web.AppRunner(app)
    await runner.setup()
    listener = socket.create_server(("127.0.0.1", 0))
    await web.SockSite(runner, listener).start()
    try:
        async with ClientSession() as session:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}{prefix}"
    finally:
        await runner.cleanup()


async def test_the_page_works_behind_a_prefix_of_the_path(
    context: BrowserContext, service: ForkedService, client: Client
) -> None:
    entry = await client.put(LOG, call_id="prefix")
    async with behind_prefix(service.url, "/ops/overspill") as url:
        watched = Watched(await context.new_page(), url)
        await watched.sign_in(KEYS["acme"], f"/captures/{entry.id}?q=ERR.R&regex=1")
        await watched.page.get_by_text("50 lines", exact=True).wait_for()
        await watched.page.locator("mark").first.wait_for()
        await watched.go("/")
        await watched.page.locator(".u-over, .empty").first.wait_for()
        await context.close()

        assert watched.troubles == []


EXTREMES = {
    "one line of 200 MB": (lambda: b"x" * 200_000_000, "read on in this line"),
    "a million empty lines": (lambda: b"\n" * 1_000_000, "1000000"),
    "no end of a line": (lambda: b"the only line", "the only line"),
    "right to left": ("שלום עולם: שגיאה 42\n漢字 😀\n".encode, "שגיאה 42"),
    "bytes that are not text": (lambda: bytes(range(256)) * 400, "␀"),
}


@pytest.mark.parametrize(("content", "shown"), EXTREMES.values(), ids=EXTREMES)
async def test_extreme_outputs_are_shown(
    watched: Watched, client: Client, content: Callable[[], bytes], shown: str
) -> None:
    entry = await client.put(content(), call_id="extreme")
    await watched.sign_in(KEYS["acme"], f"/captures/{entry.id}")
    await watched.page.locator(".row").first.wait_for()
    await watched.page.keyboard.press("G")
    await watched.page.locator(".lines").get_by_text(shown).first.wait_for()

    assert await watched.page.locator(".row").count() <= 300
