"""The demo's story: three guarded tools, what the model sees, reading back by handle, and what it cost."""

from __future__ import annotations

import asyncio
import os
import tempfile
import time
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from overspill import wire
from overspill.cli.demo import fleet as simulation
from overspill.cli.demo import page
from overspill.cli.demo import tools as demo_tools
from overspill.cli.demo.service import running
from overspill.cli.exit_codes import CommandFailure, ExitCode
from overspill.guard.call_context import calling
from overspill.guard.guard import Guard
from overspill.guard.policy import Policy
from overspill.text import quantities
from overspill.transfer.client import Client
from overspill.transfer.sync import SyncClient

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

    from overspill.cli.demo.service import DemoService

_PATIENT: Final = Policy(wait=60)
"""A busy machine is slow, and the demo shows what is stored."""
_SESSION: Final = "demo"
_PATTERN: Final = "raise "


@dataclass(frozen=True)
class GuardedCall:
    """One guarded call: the bytes that the tool returned and that the model got, and the stored entry."""

    tool: str
    bytes_before: int
    bytes_after: int
    entry: wire.Entry


@dataclass
class Story:
    """The things that all parts of the demo share: service, client, guard, and the calls so far."""

    service: DemoService
    client: Client
    guard: Guard
    seen: list[GuardedCall] = field(default_factory=list)


def run(data: Path | None, *, keep: bool, fleet: bool) -> None:
    """Run the demo, or a simulated fleet. With `keep` the service runs on until Ctrl-C.

    Raises `CommandFailure`.
    """
    started = time.monotonic()
    with _folder(data) as folder:
        with running(folder) as service:
            key = simulation.run(service, folder) if fleet else ""
            handle = "" if fleet else asyncio.run(_run_story(service))
            page.say(f"\nAll of this took {time.monotonic() - started:.0f} s.")
            if keep:
                _keep(service, handle, key)
        page.say(
            f"\nThe demo's service is stopped. Its data is {'kept in ' + str(data) if data else 'removed'}."
        )
    _say_next_steps(data)


@contextmanager
def _folder(data: Path | None) -> Iterator[Path]:
    """Give the folder for the service's data: `data`, or a temporary one that is removed afterwards."""
    with ExitStack() as stack:
        if data is None:
            data = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="overspill-demo-")))
        data.mkdir(parents=True, exist_ok=True)
        yield data


async def _run_story(service: DemoService) -> str:
    """Tell the whole story. Return the handle of the last output."""
    page.say("Overspill: an agent runs three real tools on this machine. Each returns far more than its")
    page.say("conversation has room for. The guard stores the whole output and hands over a short notice.")
    page.say(f"\nThe service: {service.url}, on its embedded back ends (SQLite and a folder).")
    async with Client(service.url, key="", session=_SESSION) as client:
        story = Story(service, client, Guard(client, _PATIENT))
        with tempfile.TemporaryDirectory(prefix="overspill-demo-tests-") as folder:
            title = f"every line with {_PATTERN!r} in Python's standard library"
            await _call_tool(story, demo_tools.grep_search, _PATTERN, title=title, show=page.abbreviated)
            title = "how this Python was built and what is installed in it, as a dict"
            await _call_tool(story, demo_tools.describe_python, title=title, show=page.abbreviated)
            title = "1,500 tests, of which one in the middle fails"
            await _call_tool(story, demo_tools.run_command, Path(folder), title=title, show=page.in_full)
        await _read_back(story)
    _print_totals(story)
    return story.seen[-1].entry.id


async def _call_tool(
    story: Story,
    tool: Callable[..., Awaitable[Any]],
    *arguments: Any,
    title: str,
    show: Callable[[Any], str],
) -> None:
    """Call a tool through the guard, as an agent does, and print what became of its output."""
    name, number = tool.__name__, len(story.seen)
    page.title(f"{number + 1}. {name}: {title}")
    with calling(f"call_{number}"):
        value = await story.guard.wrap(tool)(*arguments)
    outcome, count = next((key[1], count) for key, count in story.guard.stats.items() if key[0] == name)
    page.say(f"  the tool returned    {count.bytes_before:>11,} bytes")
    share = 100 * count.bytes_after / max(1, count.bytes_before)
    page.say(f"  the model was given  {count.bytes_after:>11,} bytes ({share:.2g} %)")
    page.say(f"  outcome              {outcome}")
    if outcome is not wire.Outcome.CAPTURED:
        raise CommandFailure(
            f"the output of {name} should have been captured: {page.in_full(value)[:500]}", ExitCode.FAILED
        )
    page.say("\n  What the model sees:\n")
    page.quote(show(value))
    entry = await story.client.get(page.handle_in(value))
    story.seen.append(GuardedCall(name, count.bytes_before, count.bytes_after, entry))


async def _read_back(story: Story) -> None:
    page.title("Reading back by handle, from any machine that reaches the service")
    found, described, tested = (seen.entry for seen in story.seen)
    ask, middle = story.client, found.lines // 2
    await _read(story, f"tail -n 4 {tested.id}", ask.tail(tested.id, 4))
    pattern = "FAILED|AssertionError"
    await _read(story, f"grep -m 3 {tested.id} '{pattern}'", ask.grep(tested.id, pattern, max_matches=3))
    pattern = '"name": '
    search = ask.grep(described.id, pattern, fixed=True, max_matches=2)
    await _read(story, f"grep -F -m 2 {described.id} '{pattern}'", search)
    await _read(story, f"lines {found.id} {middle}:{middle + 2}", ask.lines(found.id, middle, middle + 2))


async def _read(story: Story, command: str, reading: Awaitable[wire.Text]) -> None:
    before = story.service.store_requests()
    text = await reading
    requests = quantities.plural(story.service.store_requests() - before, "request")
    page.say(f"  $ overspill {command}")
    page.quote(text.content.rstrip("\n"))
    page.say(f"    ({requests} to the object store; the capture has {text.total_bytes:,} bytes)\n")


def _print_totals(story: Story) -> None:
    page.title("What it came to, in bytes")
    page.say(f"  {'tool':<16} {'returned':>12} {'stored':>12} {'ratio':>6} {'in the conversation':>20}")
    for seen in story.seen:
        entry = seen.entry
        figures = f"{entry.stored_size:>12,} {entry.size / entry.stored_size:>6.1f} {seen.bytes_after:>20,}"
        page.say(f"  {seen.tool:<16} {seen.bytes_before:>12,} {figures}")
    kept_out = sum(seen.bytes_before - seen.bytes_after for seen in story.seen)
    tokens = quantities.approx_tokens(kept_out)
    page.say(f"\n  About {tokens:,} tokens stayed out of the conversation, and not one byte is lost.")
    page.say(f"  Requests to the object store, storing and reading: {story.service.store_requests():,}.")


def _keep(service: DemoService, handle: str, key: str = "") -> None:
    """Say how to go on, and wait for Ctrl-C. `key` is one of a tenant of the simulated fleet."""
    page.title("The service stays until Ctrl-C. In another terminal:")
    page.say(f"  export OVERSPILL_URL={service.url}{' OVERSPILL_KEY=' + key if key else ''}")
    found = f"grep {handle} FAILED -C 2" if handle else "top"
    for words in ("ls", found, "run -- ls -lR /usr/lib"):
        page.say(f"  {_prefix()}overspill {words}")
    page.say("\n  Or in a browser. A link works once, for two minutes; `overspill open` makes another:")
    if key:
        page.say(f"  {_page_link(service.url, None)}?fleet=1  (all tenants)")
    page.say(f"  {_page_link(service.url, key or None)}")
    try:
        service.wait()
    except KeyboardInterrupt:
        page.say("")


def _page_link(url: str, key: str | None) -> str:
    with SyncClient(url, key) as client:
        return client.page_link()


def _say_next_steps(data: Path | None) -> None:
    page.title("To keep going")
    where = f" --data {data}" if data else ""
    page.say(f"  {_prefix()}overspill demo --keep{where}: the same, and the service stays for your own reads")
    page.say(f"  {_prefix()}overspill-service serve{where}: a service that stays; then, in another terminal,")
    page.say(f"  {_prefix()}overspill run -- COMMAND: any command, with its output guarded")


def _prefix() -> str:
    """Return `uv run ` if the demo was started by it, to print before commands."""
    return "uv run " if "UV_RUN_RECURSION_DEPTH" in os.environ else ""
