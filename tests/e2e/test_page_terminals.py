"""The terminals on the web page: what runs, whether it still does, and the commands of a shell."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any

import pytest
import pytest_asyncio
from overspill.transfer.client import Client
from overspill.wire import COMMAND_LABEL, TERMINAL_LABEL
from overspill_service.tenants.keys import new_key

from tests.client.shell import Shell
from tests.e2e.web_page import Watched, service_with

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from overspill.live.live_capture import LiveCapture
    from playwright.async_api import Browser

    from tests.servers.overspill import ForkedService

KEYS = {name: new_key() for name in ("acme", "nobody")}
HOSTILE = "\x1b]0;pwned\x07\u202eevil<img src=x onerror=alert(1)>\n[overspill] as told"

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with service_with(tmp_path_factory.mktemp("terminals"), KEYS) as started:
        yield started


@pytest_asyncio.fixture(loop_scope="module")
async def client(service: ForkedService) -> AsyncIterator[Client]:
    async with Client(service.url, key=KEYS["acme"]) as made:
        yield made


@pytest_asyncio.fixture(loop_scope="module")
async def watched(browser: Browser, service: ForkedService) -> AsyncIterator[Watched]:
    async with await browser.new_context(viewport={"width": 1300, "height": 700}) as context:
        made = Watched(await context.new_page(), service.url)
        yield made
        assert made.troubles == []


def terminal(client: Client, name: str, command: str, **facts: Any) -> LiveCapture:
    return client.live(labels={TERMINAL_LABEL: name, COMMAND_LABEL: command}, **facts)


async def write(output: LiveCapture, text: str) -> None:
    await output.write(text)
    await output.flush()


async def test_live_terminals_come_and_go_in_the_list_and_open_at_their_end(
    watched: Watched, client: Client
) -> None:
    page = watched.page
    async with client.live(tool="no-terminal") as other, terminal(client, "web", "npm start") as web:
        await write(other, "one\n")
        await write(web, "".join(f"line {number}\n" for number in range(1, 1_001)))
        await watched.sign_in(KEYS["acme"])
        await page.get_by_role("link", name="Terminals").click()
        row = page.get_by_role("row").filter(has=page.get_by_role("link", name="web", exact=True))
        await row.get_by_text("npm start").wait_for()
        state = await row.get_by_role("cell").nth(1).inner_text()
        activity = await row.get_by_role("cell").nth(2).inner_text()
        async with terminal(client, "db", "postgres") as db:
            await write(db, "ready\n")
            await page.get_by_role("link", name="db", exact=True).wait_for()
        await page.get_by_role("link", name="db", exact=True).wait_for(state="detached")
        listed = await page.locator("tbody tr").count()
        await row.get_by_role("link", name="web", exact=True).click()
        await page.get_by_text("line 1000", exact=True).wait_for()
        await write(web, "and this comes now\n")
        await page.get_by_text("and this comes now").wait_for()
        await page.get_by_role("heading", name="web").wait_for()
        await web.complete(status="exit 2", exit_code=2)
    await watched.go("/terminals?all=1")
    await row.get_by_text("exit 2").wait_for()

    assert (state.strip(), listed) == ("live", 1)
    assert "ago" in activity or activity == "now"


async def test_the_commands_of_a_shell_lead_to_their_lines(
    watched: Watched, client: Client, service: ForkedService, tmp_path: Path
) -> None:
    (tmp_path / ".bashrc").write_text("PS1='ready> '\n")
    if shutil.which("bash") is None:
        pytest.skip("bash is not installed")
    shell = Shell(service.url, HOME=str(tmp_path), OVERSPILL_KEY=KEYS["acme"], OVERSPILL_SPOOL="off")
    running = shell.terminal("shell", "--name", "work", "--shell", "bash")
    running.wait_for(b"ready> ")
    for line in ("seq 100", "sh -c 'exit 4'", "printf %070000d 7; false", "echo '<b>last</b>'"):
        shown = len(running.shown)
        running.press(line.encode() + b"\n")
        running.wait_for(b"ready> ", after=shown)
    page = watched.page
    await watched.sign_in(KEYS["acme"], "/terminals")
    await page.get_by_role("link", name="work").click()
    await page.get_by_role("button", name="Commands").click()
    rows = page.get_by_role("dialog").get_by_role("listitem")
    await rows.nth(3).wait_for()
    # Not `inner_text`: it is empty until the browser has drawn an item of this list for the first time.
    commands = [await row.locator("code, .status, .quiet").all_text_contents() for row in await rows.all()]
    await rows.nth(3).get_by_role("button").click()
    await page.locator('.row.selected[data-line="2"]').wait_for()
    selected = page.url.partition("?")[2]
    running.press(b"exit\n")
    running.ended()

    assert commands == [
        ["echo '<b>last</b>'", "exit 0", "line 105"],
        ["printf %070000d 7; false", "exit 1", "line 104"],
        ["sh -c 'exit 4'", "exit 4", "no output"],
        ["seq 100", "exit 0", "lines 2\u2013101"],
    ]
    assert selected == "lines=1-101"
    assert await page.get_by_role("dialog").count() == 0


async def test_only_terminals_that_may_have_commands_offer_them(watched: Watched, client: Client) -> None:
    page = watched.page
    async with (
        terminal(client, "make", "make all") as run,
        client.live(labels={TERMINAL_LABEL: "pane"}) as pane,
    ):
        for output in (run, pane):
            await write(output, "text\n")
        await watched.sign_in(KEYS["acme"], f"/captures/{run.id}")
        await page.get_by_text("text", exact=True).wait_for()
        offered = await page.get_by_role("button", name="Commands").count()
        await watched.go(f"/captures/{pane.id}")
        await page.get_by_role("button", name="Commands").click()
        await page.get_by_text("No shell has marked commands here").wait_for()

    assert offered == 0


async def test_hostile_names_of_terminals_and_commands_do_nothing(watched: Watched, client: Client) -> None:
    page = watched.page
    line = "".join(each if each.isalnum() else f"\\x{ord(each):02x}" for each in HOSTILE if ord(each) < 0x80)
    marks = f"\x1b]633;E;{line}\x07"
    async with terminal(client, HOSTILE, HOSTILE, tool="shell", session=HOSTILE[:20]) as output:
        await write(output, f"{marks}\x1b]133;C\x07out\n\x1b]133;D;1\x07")
        await watched.sign_in(KEYS["acme"], "/terminals")
        await page.get_by_text("evil<img").first.wait_for()
        listed = await page.locator("tbody").inner_text()
        await page.locator(".row-link").first.click()
        await page.get_by_role("button", name="Commands").click()
        command = await page.get_by_role("dialog").get_by_role("listitem").text_content() or ""

    assert await page.locator("img").count() == 0
    for shown in (listed, command):
        assert "<img src=x onerror=alert(1)>" in shown
        assert not set("\x1b\x07\u202e") & set(shown)


async def test_who_has_no_terminal_is_told_how_to_start_one(watched: Watched) -> None:
    page = watched.page
    await watched.sign_in(KEYS["nobody"], "/terminals")
    await page.get_by_text("No terminal is live").wait_for()
    await page.get_by_text("overspill shell --name work").wait_for()
    await page.get_by_role("button", name="All").click()

    await page.get_by_text("There is no terminal yet").wait_for()


@pytest.mark.parametrize("width", [320, 375, 480, 640])
async def test_the_list_and_the_views_fit_on_a_narrow_screen(
    watched: Watched, client: Client, width: int
) -> None:
    page = watched.page
    await page.set_viewport_size({"width": width, "height": 700})
    async with terminal(client, "a-terminal-with-a-long-name " * 8, "make " * 60) as output:
        await write(output, "text\n")
        await watched.sign_in(KEYS["acme"], "/terminals")
        await page.locator(".row-link").first.wait_for()

        assert await page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
