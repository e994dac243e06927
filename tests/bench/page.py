"""The web page in Chromium: what a capture of a GB costs to look at, beside one of a MB, in one run."""

from __future__ import annotations

import importlib
import json
import shutil
import statistics
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from overspill import SyncClient

from tests.bench.servers import Unavailable, program
from tests.bench.table import Goal, Row, mebibytes, number

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.bench.scale import Scale
    from tests.bench.servers import Servers

FLAGS: Final = (
    *("--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"),
    *("--js-flags=--expose-gc", "--enable-precise-memory-info"),
)
LINE: Final = b"2026-01-15T10:00:00Z INFO line %010d of this log, as long as others are\n"
TO: Final = (
    "part => { const box = document.querySelector('.lines'); box.scrollTop = part * box.scrollHeight }"
)
TASKS: Final = "disabled-by-default-devtools.timeline"
"""Events for every task of a thread, with its CPU time: other work on the machine does not count."""
WHEEL_PIXELS: Final = 600
LINE_PIXELS: Final = 20


def measure(servers: Servers, scale: Scale) -> Iterator[Row]:
    service = servers.embedded
    large = scale.pick(1_000_000_000, 5_000_000) // len(LINE % 0)
    with SyncClient(service.url) as client, chromium() as page:
        ids = {lines: store(client, lines) for lines in (large, 1_000_000 // len(LINE % 0))}
        yield from rows(page, service.url, ids, large, scale)


def store(client: SyncClient, lines: int) -> str:
    return client.put((LINE % number for number in range(1, lines + 1)), call_id=f"{lines} lines").id


@contextmanager
def chromium() -> Iterator[Any]:
    """A page of a real browser. Raises `Unavailable`."""
    try:
        playwright = importlib.import_module("playwright.sync_api")
    except ImportError as error:
        raise Unavailable("no Playwright: uv sync --group browser") from error
    path = shutil.which("chromium-headless-shell") or program("chromium")
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=path, args=[*FLAGS])
        yield browser.new_page(viewport={"width": 1200, "height": 800})
        browser.close()


def rows(page: Any, url: str, ids: dict[int, str], large: int, scale: Scale) -> Iterator[Row]:
    fetched: list[int] = []
    page.on("response", lambda answer: fetched.append(int(answer.headers.get("content-length", 0))))
    seconds: dict[int, list[float]] = {lines: [] for lines in ids}
    for _ in range(scale.rounds + 1):  # the first one fills the browser's cache
        for lines, capture in ids.items():
            fetched.clear()
            seconds[lines].append(opened(page, url, capture))
    ratio = statistics.median(seconds[large][1:]) / statistics.median(seconds[min(ids)][1:])
    yield Row("first lines of 1 GB, of the time for 1 MB", ratio, Goal(2.0))
    opened(page, url, ids[large])
    page.wait_for_timeout(scale.pick(2_000, 100))
    before = heap(page)
    fetched.clear()
    jump(page, large // 2)
    yield Row("bytes fetched to jump to the middle of 1 GB", sum(fetched), Goal(2**20), number)
    lines = scale.pick(10_000, 200)
    yield Row(f"longest task while scrolling {lines:,} lines, ms", scrolling(page, lines), Goal(50), number)
    steps = scale.pick(60, 6)
    for step in range(steps + 1):
        page.evaluate(TO, step / steps)
        page.wait_for_timeout(60)
    page.wait_for_timeout(scale.pick(1_000, 100))
    yield Row(
        "heap after scrolling through 1 GB, over the start", heap(page) - before, Goal(64 * 2**20), mebibytes
    )


def opened(page: Any, url: str, capture: str) -> float:
    """Return the seconds until the first lines of a capture are shown, in a page that shows nothing else."""
    page.goto("about:blank")
    since = time.perf_counter()
    page.goto(f"{url}/#/captures/{capture}")
    shown(page, 3)
    return time.perf_counter() - since


def shown(page: Any, line: int) -> None:
    page.locator(f'[data-line="{line}"] code').get_by_text(f"line {line:010d}").wait_for()


def jump(page: Any, line: int) -> None:
    page.locator("#jump").fill(str(line))
    page.keyboard.press("Enter")
    shown(page, line)


def scrolling(page: Any, lines: int) -> float:
    """Return the longest task of the page's main thread, in milliseconds of its CPU time."""
    browser = page.context.browser
    browser.start_tracing(page=page, categories=[TASKS])
    page.locator(".lines").hover()
    for _ in range(lines * LINE_PIXELS // WHEEL_PIXELS):
        page.mouse.wheel(0, WHEEL_PIXELS)
        page.wait_for_timeout(16)
    seen = json.loads(browser.stop_tracing())["traceEvents"]
    main = {(each["pid"], each["tid"]) for each in seen if each["args"].get("name") == "CrRendererMain"}
    tasks = (each for each in seen if each["name"] == "RunTask" and (each["pid"], each["tid"]) in main)
    longest: float = max(each.get("tdur", 0) for each in tasks) / 1_000  # the last one may have no end yet
    return longest


def heap(page: Any) -> int:
    size: int = page.evaluate("(gc(), performance.memory.usedJSHeapSize)")
    return size
