"""A browser before the web page: Debian's Chromium, which must ask nobody but the service."""

from __future__ import annotations

import shutil
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from overspill import Guard, Policy, wire
from overspill_service.tenants.keys import hash_key

from tests.e2e.programs import program
from tests.servers.overspill import ForkedService

playwright = pytest.importorskip("playwright.async_api")

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from overspill.transfer.client import Client
    from playwright.async_api import Browser, Page

FLAGS = [
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
]
"""Chromium runs as root here, and must ask nobody but the service."""
SHELL = "chromium-headless-shell"
"""Chromium without all that draws windows: the same engine for half of the CPU."""
LONGEST_WAIT = 120_000
"""Milliseconds to wait for what a page is to show: long, for a busy machine draws slowly."""
AXE = Path(__file__).parents[2] / "service" / "page" / "node_modules" / "axe-core" / "axe.min.js"


@asynccontextmanager
async def chromium() -> AsyncIterator[Browser]:
    path = shutil.which(SHELL) or program("chromium")
    async with playwright.async_playwright() as started:
        browser = await started.chromium.launch(executable_path=path, args=FLAGS)
        try:
            yield browser
        finally:
            await browser.close()


def _scopes_of(tenant: str) -> str:
    scopes = [scope for scope in wire.Scope if scope != "fleet" or tenant == "operators"]
    return ", ".join(f'"{scope}"' for scope in scopes)


@contextmanager
def service_with(folder: Path, keys: dict[str, str], **settings: object) -> Iterator[ForkedService]:
    """Run a service with a tenant for each key. Only that of the tenant `operators` may administer."""
    file = folder / "tenants.toml"
    file.write_text(
        "".join(
            f'[[tenants]]\nname = "{name}"\n'
            f'keys = [{{hash = "{hash_key(key)}", scopes = [{_scopes_of(name)}]}}]\n'
            for name, key in keys.items()
        )
    )
    service = ForkedService(folder / "run", tenants=file, anonymous=False, **settings)
    service.start()
    try:
        yield service
    finally:
        service.stop()


def guard_of(client: Client, session: str) -> Guard:
    """Return a guard that waits for the service as long as a busy machine takes, and spools nothing."""
    return Guard(client, Policy(wait=LONGEST_WAIT / 1000), session=session, spool=False)


class Watched:
    """A page whose errors, and requests to anybody else, fail the test."""

    def __init__(self, page: Page, url: str) -> None:
        self.page, self.url = page, url
        self.troubles: list[str] = []
        self.fetched = 0
        page.set_default_timeout(LONGEST_WAIT)
        page.on("pageerror", lambda error: self.troubles.append(f"error: {error}"))
        page.on("request", lambda asked: self._note(asked.url))
        page.on("console", lambda message: self._note_console(message.text, message.type))

    def _note(self, url: str) -> None:
        if not url.startswith(self.url):
            self.troubles.append(f"asked {url}")

    def _note_console(self, text: str, kind: str) -> None:
        if kind == "error" and "Failed to load resource" not in text:
            self.troubles.append(f"console: {text}")

    async def go(self, view: str) -> None:
        await self.page.goto(f"{self.url}/#{view}")

    async def sign_in(self, key: str, view: str = "/") -> None:
        """Open a view with a session that the page itself did not begin: that costs less.

        A page that is open already does not notice the session: it needs `sign_in_by_hand`.
        """
        answer = await self.page.context.request.post(
            f"{self.url}{wire.Path.PAGE_SESSION}", data={"key": key}
        )
        assert answer.ok, await answer.text()
        await self.go(view)
        await self.page.get_by_role("navigation", name="Views").wait_for()

    async def sign_in_by_hand(self, key: str, view: str = "/") -> None:
        await self.go(view)
        await self.page.get_by_label("Key").fill(key)
        await self.page.get_by_role("button", name="Sign in").click()
        await self.page.get_by_role("navigation", name="Views").wait_for()


async def complaints_of(page: Page, rule: str | None = None) -> list[str]:
    """Return what axe complains about, with `rule` only what breaks this one."""
    if not await page.evaluate("'axe' in window"):
        await page.evaluate(AXE.read_text(encoding="utf-8"))
    found = await page.evaluate("rule => axe.run(document, rule ? {runOnly: [rule]} : {})", rule)
    return [
        f"{rule['id']}: {node['html'][:200]} ({node['failureSummary']})"
        for rule in found["violations"]
        for node in rule["nodes"]
    ]
