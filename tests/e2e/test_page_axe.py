"""Every view of the web page in both themes, empty and full, with what opens over it: axe finds nothing."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Literal

import pytest
import pytest_asyncio
from overspill import wire
from overspill.transfer.client import Client
from overspill_service.tenants.keys import new_key

from tests.e2e.web_page import AXE, Watched, complaints_of, guard_of, service_with
from tests.faults.traffic import until

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from playwright.async_api import Browser, Page

    from tests.servers.overspill import ForkedService

KEYS = {name: new_key() for name in ("acme", "operators", "empty")}
LOG = "".join(f"{'ERROR' if n % 1000 == 7 else 'WARN'} line {n} of the log\n" for n in range(1, 5_001))
COLOURS = "".join(f"\x1b[{style};{ground}mtext\x1b[0m" for style in (1, 3, 4, 9) for ground in range(30, 48))
SHELL = "$ ls\n\x1b]633;E;ls\x07\x1b]133;C\x07a\n\x1b]133;D;0\x07$ x\n\x1b]133;C\x07\x1b]133;D;1\x07"
FILES = {
    "log": ("acme/log", {"labels": {wire.SEEN_LABEL: "1-3,1007"}, "status": "error"}, LOG),
    "colours": ("acme/log", {"status": "success"}, f"{COLOURS}\n"),
    "table": ("acme/data", {"content_type": "text/csv"}, "name,amount\n" + "ada,1\n" * 50),
    "tree": ("acme/data", {}, '{"user": {"name": "ada", "tags": ["x", 1, null, true]}}'),
    "nothing": ("acme/data", {}, ""),
    "shell": ("acme/log", {"labels": {wire.TERMINAL_LABEL: "work"}, "status": "exit 1"}, SHELL),
    "long": ("acme/data", {}, f"{'x' * 200_000}\nnext\n"),
}
VIEWS = (
    "/",
    "/?range=1h&compare=1&kept=tokens",
    "/?range=1h&tool=build",
    "/?since=2026-01-15T10:00:00Z&until=2026-01-15T11:00:00Z",
    "/captures",
    "/captures?largest=1",
    "/captures?tool=none&range=1h",
    "/sessions",
    "/sessions?name=none",
    "/terminals",
    "/terminals?all=1",
    "/sessions/acme%2Flog",
    "/sessions/none",
    "/no/such/view",
    "/captures/cap_aaaaaaaaaaaaaaaaaaaa",
    "/captures/{log}?q=ERROR&lines=7-9",
    "/captures/{log}?q=ERROR&only=2&seen=1",
    "/captures/{log}?q=(&regex=1",
    "/captures/{colours}",
    "/captures/{shell}",
    "/captures/{table}?as=data",
    "/captures/{tree}",
    "/captures/{nothing}",
    "/captures/{long}",
    "/captures/{deleted}",
)

pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.skipif(not AXE.exists(), reason="no axe-core: npm ci in service/page brings it"),
]


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with service_with(tmp_path_factory.mktemp("axe"), KEYS) as started:
        yield started


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def ids(service: ForkedService) -> dict[str, str]:
    """Store an output of each kind, and let a guard report some."""
    async with Client(service.url, key=KEYS["acme"]) as client, guard_of(client, "guarded") as guard:
        found = {}
        for name, (session, facts, content) in FILES.items():
            entry = await client.put(content, tool="build", session=session, call_id=name, **facts)  # type: ignore[arg-type]
            found[name] = entry.id
        found["deleted"] = (await client.put("deleted", call_id="deleted")).id
        await client.delete(found["deleted"])
        for number in range(80):
            for tool in ("build", "search"):
                await guard.process(f"{number} {LOG[:60_000]}", tool=tool, call_id=f"{tool} {number}")

        async def is_counted() -> bool:
            stats = await client.stats(total=True)
            return sum(row.figures.get("captures", 0) for row in stats.rows if row.tool == "search") >= 80

        await until(is_counted, 60)
    return found


@pytest.fixture(params=["light", "dark"])
def scheme(request: pytest.FixtureRequest) -> Literal["light", "dark"]:
    return request.param  # type: ignore[no-any-return]


@pytest.fixture
def rule(scheme: str) -> str | None:
    """The only rule that the second theme can break: the others need not run again."""
    return None if scheme == "light" else "color-contrast"


@pytest_asyncio.fixture(loop_scope="module")
async def watched(
    browser: Browser, service: ForkedService, scheme: Literal["light", "dark"]
) -> AsyncIterator[Watched]:
    async with await browser.new_context(
        color_scheme=scheme, reduced_motion="reduce", viewport={"width": 1400, "height": 900}
    ) as context:
        yield Watched(await context.new_page(), service.url)


async def settled(page: Page) -> None:
    await page.wait_for_load_state("networkidle")
    await page.get_by_text("Loading…").first.wait_for(state="detached")
    await page.wait_for_timeout(100)


async def test_no_view_has_a_violation(watched: Watched, ids: dict[str, str], rule: str | None) -> None:
    page = watched.page
    await watched.go("/")
    await page.get_by_label("Key", exact=True).wait_for()
    complaints = {"sign in": await complaints_of(page, rule)}
    await watched.sign_in_by_hand(KEYS["acme"])
    for view in VIEWS:
        await watched.go(view.format(**ids))
        await settled(page)
        complaints[view] = await complaints_of(page, rule)

    assert {view: found for view, found in complaints.items() if found} == {}


async def test_no_dialog_menu_or_table_that_opens_has_a_violation(
    watched: Watched, ids: dict[str, str], rule: str | None
) -> None:
    page = watched.page
    await watched.sign_in(KEYS["acme"])
    steps: list[tuple[str, Callable[[], Awaitable[Any]]]] = [
        (f"/captures/{ids['log']}", lambda: page.get_by_role("button", name="Delete…").click()),
        (f"/captures/{ids['log']}", lambda: page.keyboard.press("?")),
        (f"/captures/{ids['log']}", lambda: page.keyboard.press("z")),
        (f"/captures/{ids['log']}", lambda: page.keyboard.press("w")),
        (f"/captures/{ids['shell']}", lambda: page.get_by_role("button", name="Commands").click()),
        ("/captures", lambda: page.get_by_role("button", name=re.compile("^acme")).click()),
        ("/?range=1h&compare=1", lambda: page.get_by_text("These charts as tables").click()),
        ("/?range=1h", lambda: page.get_by_text("All of it as a policy file").click()),
        ("/?range=1h", lambda: page.get_by_text("From … to …").click()),
        ("/sessions/acme%2Flog", page.get_by_text("What the model saw").first.click),
    ]
    complaints = {}
    for number, (view, act) in enumerate(steps):
        await watched.go("/no/such/view")
        await watched.go(view)
        await settled(page)
        await act()
        await settled(page)
        complaints[number] = await complaints_of(page, rule)
        await page.keyboard.press("Escape")
        if number == 2:
            await page.keyboard.press("z")

    assert {number: found for number, found in complaints.items() if found} == {}


async def test_no_view_of_somebody_new_or_of_an_operator_has_a_violation(
    watched: Watched, ids: dict[str, str], rule: str | None
) -> None:
    page = watched.page
    complaints = {}
    for key, views in {
        "empty": ("/", "/captures", "/sessions", "/terminals"),
        "operators": ("/?fleet=1&range=1h",),
    }.items():
        await watched.sign_in_by_hand(KEYS[key])
        for view in views:
            await watched.go(view)
            await settled(page)
            complaints[view] = await complaints_of(page, rule)
        await page.get_by_role("button", name=re.compile(f"^{key}")).click()
        await page.get_by_role("button", name="Sign out").click()
        await page.get_by_label("Key", exact=True).wait_for()

    assert {view: found for view, found in complaints.items() if found} == {}
