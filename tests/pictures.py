"""Make the README's pictures of the web page, from a simulated fleet.

uv sync --group browser && uv run --no-sync python -m tests.pictures
"""

from __future__ import annotations

import os
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

from overspill import SyncClient
from overspill.cli.demo import fleet
from overspill.cli.demo.service import running
from playwright.sync_api import sync_playwright

from tests.e2e.programs import program

FOLDER: Final = Path(__file__).parent.parent / "service" / "docs" / "pictures"
SECONDS: Final = 300.0
"""How long the fleet works, so that its charts have a few minutes."""
FLAGS: Final = ("--no-sandbox", "--disable-gpu", "--disable-background-networking", "--hide-scrollbars")


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="overspill-pictures-") as home:
        os.environ["HOME"] = home  # its service makes a key file there
        with running(Path(home)) as service:
            key = fleet.run(service, Path(home), SECONDS)
            with SyncClient(service.url, key) as client:
                take(client, largest(client))


def largest(client: SyncClient) -> str:
    """Return the id of the largest log among the newest captures."""
    captures = [each for each in client.list(tool="read_logs", limit=100).captures if each.lines > 1]
    return max(captures, key=lambda each: each.size).id


def take(client: SyncClient, capture: str) -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program("chromium"), args=[*FLAGS])
        page = browser.new_context(viewport={"width": 1100, "height": 700}).new_page()
        page.goto(client.page_link())
        shoot(page, client, f"/?compare=1&{_lately()}", ".u-over", "dashboard")
        shoot(page, client, f"/captures/{capture}?q=ERROR", ".row.match", "capture")
        browser.close()


def _lately() -> str:
    """Return the time in which the fleet worked, as an address of the page has it."""
    until = datetime.now(UTC).replace(second=0, microsecond=0)
    since = until - timedelta(seconds=SECONDS)
    return "&".join(f"{name}={at:%Y-%m-%dT%H:%M:%SZ}" for name, at in (("since", since), ("until", until)))


def shoot(page: Any, client: SyncClient, view: str, shown: str, name: str) -> None:
    page.wait_for_selector("main h1")
    page.goto(f"{client.address.url}/#{view}")
    page.wait_for_selector(shown)
    page.wait_for_timeout(1000)
    page.screenshot(path=FOLDER / f"{name}.png")


if __name__ == "__main__":
    main()
