"""The command advise: suggests changes of the policy, tool by tool, with reasons."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated

from overspill.advice.advice import Now, advice_on
from overspill.advice.figures import figures_of
from overspill.advice.policy_text import toml_of
from overspill.cli import output
from overspill.cli.color import Paint
from overspill.cli.declaration import command
from overspill.cli.exit_codes import usage_errors
from overspill.cli.invocation import Invocation
from overspill.cli.options import COLORED, Span
from overspill.cli.parameters import option
from overspill.cli.table import Column, Table
from overspill.guard.policy import Policy
from overspill.guard.policy_file import OTHER_LIMITS
from overspill.text.limits import Limits
from overspill.wire import Advice


@command(
    "overspill advise",
    "overspill advise --since 30d -o policy.toml",
    "overspill advise --json | jq -r '.[] | select(.max_bytes) | .tool'",
    options=COLORED,
)
def advise(
    invocation: Invocation,
    *,
    since: Span = "7d",  # type: ignore[assignment]  # the parser reads the default too
    policy: Annotated[
        Path | None,
        option(metavar="FILE", help="The policy file in use (default: the built-in policy).", type=Path),
    ] = None,
    target: Annotated[
        Path | None,
        option("-o", "--output", metavar="FILE", help="Write the advice as a policy file.", type=Path),
    ] = None,
) -> None:
    """Suggest a threshold and a preview for each tool.

    The advice comes from counts: captures that nobody read, captures that were read at once, and what the
    reads asked for. With -o it is written as a file for `Policy.load`, together with the tools of --policy.
    """
    with usage_errors(OSError, ValueError):
        now = Policy() if policy is None else Policy.load(policy)
    with invocation.client() as client:
        found = client.stats(since=datetime.now(UTC) - timedelta(seconds=since), total=True)
    advice = [advice_on(each, _now(now, each.tool)) for each in figures_of(found)]
    if invocation.json:
        invocation.answer(advice)
    elif advice:
        _print(invocation, advice, now)
    else:
        output.say("no tool was counted in this time; guards report theirs once a minute")
    if target is not None:
        write_policy(target, advice, now, since)


def _now(policy: Policy, tool: str) -> Now:
    return Now(max_bytes=policy.limits(tool).max_bytes, strategy=policy.cut_strategy(tool).name.upper())


def _print(invocation: Invocation, advice: Iterable[Advice], policy: Policy) -> None:
    columns = (
        Column("TOOL", min_width=6),
        Column("LIMIT"),
        Column("PREVIEW", rank=1),
        Column("WHY", min_width=14, wraps=True),
    )
    rows = []
    for each in advice:
        now = _now(policy, each.tool)
        limit = f"{now.max_bytes:,}" + (f" -> {each.max_bytes:,}" if each.max_bytes else "")
        preview = now.strategy + (f" -> {each.strategy}" if each.strategy else "")
        rows.append((each.tool, limit, preview, _explanation(each)))
    Table(columns, Paint(invocation.color)).print(rows)


def _explanation(advice: Advice) -> str:
    if advice.missing:
        return f"not enough data: {advice.missing}"
    return "; ".join(advice.reasons) or "fine as it is"


def write_policy(path: Path, advice: Iterable[Advice], policy: Policy, since: int) -> None:
    """Write the suggested changes, and the tools of the policy in use. Raises `OSError`."""
    changes = {each.tool: each for each in advice if each.is_change}
    own = {tool: limit for tool, limit in policy.tools.items() if Policy().tools.get(tool) != limit}
    tools: dict[str, tuple[dict[str, int | str], list[str]]] = {}
    for tool in sorted({*changes, *policy.strategies, *own}):
        found, now = changes.get(tool, Advice(tool=tool)), _now(policy, tool)
        settings = _other_limits(own.get(tool))
        if found.max_bytes or tool in own:
            settings["max_bytes"] = found.max_bytes or now.max_bytes
        if found.strategy or tool in policy.strategies:
            settings["strategy"] = found.strategy or now.strategy
        tools[tool] = settings, found.reasons
    head = (f"Written by `overspill advise` on {datetime.now(UTC):%Y-%m-%d}, from {since // 3600} hours.",)
    with output.into(str(path)):
        output.text(toml_of(tools, head=head), raw=True)


def _other_limits(limit: int | Limits | None) -> dict[str, int | str]:
    """Return the limits of a tool beside that in bytes."""
    if not isinstance(limit, Limits):
        return {}
    return {name: found for name in OTHER_LIMITS if (found := getattr(limit, name)) is not None}
