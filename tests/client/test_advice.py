"""Advice on a policy: its rules at their borders, and a policy file that changes what a guard does."""

from __future__ import annotations

import json
import os
import time
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode
from urllib.request import urlopen

import pytest
from hypothesis import given
from hypothesis import strategies as st
from overspill import Guard, Policy, SyncClient, wire
from overspill.advice.advice import MAX_BYTES, MIN_BYTES, Now, advice_on
from overspill.advice.figures import LARGEST, Share, ToolFigures, figures_of
from overspill.advice.policy_text import toml_of
from overspill.advice.usual import TOOL_BYTES, usual_settings
from overspill.cli.commands.advise import write_policy
from overspill.guard.policy_file import MAX_FILE_BYTES
from overspill.previews.cut import PREVIEW, TAIL
from overspill.text.limits import Limits
from overspill.wire import Advice, Stats, StatsRow

from tests.client.shell import Shell

if TYPE_CHECKING:
    from pathlib import Path

    from tests.servers.overspill import ServiceProcess

USUAL = Now(max_bytes=50_000, strategy="PREVIEW")
LOG = "".join(f"line {number} {'.' * 30}\n" for number in range(1_400))


def figures(**given: Any) -> ToolFigures:
    return ToolFigures(
        **{"tool": "make", "outputs": 200, "spilled": 100, "captures": 100, "read": 50, **given}
    )


# --- shares ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("part", "whole", "low", "high"),
    # By hand from Wilson's formula; the last is the example of Newcombe, Statistics in Medicine 17 (1998).
    [(0, 10, 0.0, 0.2775), (5, 10, 0.2366, 0.7634), (10, 10, 0.7225, 1.0), (81, 263, 0.2553, 0.3662)],
)
def test_an_interval_is_wilsons(part: int, whole: int, low: float, high: float) -> None:
    share = Share.of(part, whole)

    assert [share.low, share.high] == pytest.approx([low, high], abs=5e-4)


def test_of_nothing_a_share_may_be_anything() -> None:
    assert Share.of(0, 0)[2:] == (0.0, 1.0)
    assert str(Share.of(0, 0)) == "0 of 0 (0 %)"


def test_what_stands_for_many_tools_gets_no_advice() -> None:
    now = datetime.now(UTC)
    rows = [
        StatsRow(start=now, tenant="t", tool=tool, outcome="created", figures={"captures": 1})
        for tool in ("", "other", "(other)", "make")
    ]

    assert [each.tool for each in figures_of(Stats(since=now, until=now, step=60, rows=rows))] == ["make"]


# --- rules ----------------------------------------------------------------------------------------


def test_of_few_captures_there_is_no_advice() -> None:
    advice = advice_on(figures(captures=29, read=0), USUAL)

    assert advice.missing == "29 of the 30 captures that advice needs"
    assert not advice.is_change


def test_what_is_mostly_read_at_once_gets_a_larger_limit() -> None:
    at_once = {65_536: 60, 262_144: 10, LARGEST: 2}
    advice = advice_on(figures(read=80, at_once=at_once), USUAL)

    assert advice.max_bytes == 65_536
    assert advice.reasons == [
        "72 of 100 (72 %) captures were read within a minute: the notice only cost a call"
    ]


@pytest.mark.parametrize(
    ("at_once", "now"),
    [
        ({65_536: 59}, USUAL),  # the interval begins below a half
        ({65_536: 90}, Now(max_bytes=65_536, strategy="PREVIEW")),
        ({LARGEST: 90}, Now(max_bytes=MAX_BYTES, strategy="PREVIEW")),
    ],
)
def test_a_limit_is_not_raised_without_need(at_once: dict[int, int], now: Now) -> None:
    assert advice_on(figures(read=95, at_once=at_once), now).max_bytes is None


def test_no_limit_is_raised_beyond_what_hosts_take() -> None:
    assert advice_on(figures(read=95, at_once={LARGEST: 90}), USUAL).max_bytes == MAX_BYTES


def test_what_is_never_read_gets_a_smaller_limit_until_it_is_small() -> None:
    limits, now = [], USUAL
    while True:
        advice = advice_on(figures(read=0), now)
        if advice.max_bytes is None:
            break
        limits.append(advice.max_bytes)
        now = Now(max_bytes=advice.max_bytes, strategy="PREVIEW")

    assert limits == [25_000, 12_500, MIN_BYTES]


def test_a_tool_that_is_run_again_keeps_its_limit_and_says_so() -> None:
    advice = advice_on(figures(read=0, again=40), USUAL)

    assert not advice.is_change
    assert advice.reasons == [
        "run again after 40 of 100 (40 %) spills: give the agent inspect_output, or tell it to use it"
    ]


@pytest.mark.parametrize(
    ("modes", "strategy"),
    [
        ({"tail": 40, "grep": 10}, "TAIL"),
        ({"head": 40, "grep": 10}, "HEAD"),
        ({"grep": 40, "tail": 10}, None),
        ({"tail": 29}, None),
        ({"tail": 26, "head": 24}, None),
    ],
)
def test_the_preview_shows_the_end_that_reads_ask_for(modes: dict[str, int], strategy: str | None) -> None:
    assert advice_on(figures(modes=modes), USUAL).strategy == strategy


@given(
    st.builds(
        figures,
        captures=st.integers(0, 500),
        read=st.integers(0, 500),
        again=st.integers(0, 500),
        at_once=st.dictionaries(st.sampled_from([16_384, 65_536, 262_144, LARGEST]), st.integers(0, 500)),
        modes=st.dictionaries(st.sampled_from(["head", "tail", "grep"]), st.integers(0, 500)),
    ),
    st.integers(MIN_BYTES, 10 * MAX_BYTES),
)
def test_advice_that_is_followed_is_never_taken_back_by_the_same_figures(
    found: ToolFigures, limit: int
) -> None:
    now = Now(max_bytes=limit, strategy="PREVIEW")
    first = advice_on(found, now)
    then = Now(max_bytes=first.max_bytes or limit, strategy=first.strategy or "PREVIEW")
    second = advice_on(found, then)

    assert second.strategy is None
    if first.max_bytes is not None and second.max_bytes is not None:
        assert (second.max_bytes < then.max_bytes) == (first.max_bytes < limit)


def test_captures_read_at_once_are_read_whatever_the_other_sum_says() -> None:
    found = figures(captures=73, read=0, again=0, at_once={16384: 45}, modes={})

    assert advice_on(found, Now(max_bytes=16_384, strategy="PREVIEW")).max_bytes is None


# --- the file -------------------------------------------------------------------------------------


def test_a_policy_file_sets_limits_and_previews_of_tools(tmp_path: Path) -> None:
    path = tmp_path / "policy.toml"
    path.write_text(
        'version = 1\nmax_bytes = 9000\nmax_lines = 70\n[tools."a b"]\nmax_bytes = 5\n'
        '[tools.make]\nstrategy = "tail"\n[tools.x]\nmax_bytes = 1\nmax_chars = 2\n'
    )
    policy = Policy.load(path)

    assert policy.limits("other").max_bytes == 9_000
    assert policy.limits("a b")[:2] == (5, 70)
    assert policy.limits("x")[:3] == (1, 70, 2)
    assert policy.limits("make").max_bytes == 9_000
    assert (policy.cut_strategy("make"), policy.cut_strategy("x")) == (TAIL, PREVIEW)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "version must be 1, not None"),
        ("version = 2", "version must be 1, not 2"),
        ("version = 1\nmax_byte = 5", "there is no setting 'max_byte'; do you mean 'max_bytes'?"),
        ("version = 1\n[tools.x]\nmax_line = 5", "there is no setting of the tool 'x' 'max_line'"),
        ("version = 1\ntools = 5", "tools must be tables"),
        ("version = 1\n[tools.x]\nmax_lines = 5", "a tool with limits needs max_bytes"),
        ("version = 1\n[tools.x]\nmax_bytes = -5", "the limit of x must be 0 or more, not -5"),
        ('version = 1\n[tools.x]\nstrategy = "ALL"', "the strategy of 'x' must be PREVIEW, HEAD, TAIL, ENDS"),
        ("version = 1\nversion = 1", "is not a policy"),
        ("version = ", "is not a policy"),
        ("\xff", "is not a policy"),
        ("version = true", "version must be 1, not True"),
        ("version = 1.0", "version must be 1, not 1.0"),
        ("version = 1\na = " + "[" * 50_000, "its values are nested too deeply"),
        ("version = 1\na = " + "{b = " * 5000 + "1" + "}" * 5000, "its values are nested too deeply"),
        ("version = 1\nreader = 5", "reader must be a text, not 5"),
        ("version = 1\nidentical = 'no'", "identical must be true or false, not 'no'"),
        ("#" * (MAX_FILE_BYTES + 1), "it has more than 1,048,576 bytes"),
    ],
)
def test_a_mistake_in_a_file_is_named(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "policy.toml"
    path.write_bytes(text.encode("latin-1"))

    with pytest.raises(ValueError, match=said.replace("?", r"\?")) as raised:
        Policy.load(path)
    assert str(raised.value).startswith(f"{path} is not a policy: ")


def test_what_is_no_file_is_refused_at_once(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)

    for path in (pipe, os.devnull, "/dev/zero"):
        with pytest.raises(ValueError, match="it is not a regular file"):
            Policy.load(path)
    with pytest.raises(IsADirectoryError):
        Policy.load(tmp_path)


@pytest.mark.parametrize(("mode", "warnings"), [(0o644, 0), (0o664, 0), (0o666, 1)])
def test_a_policy_that_anyone_can_change_is_said(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, mode: int, warnings: int
) -> None:
    path = tmp_path / "policy.toml"
    path.write_text("version = 1\n")
    path.chmod(mode)
    Policy.load(path)

    assert [f"change {path}" in each for each in caplog.messages] == [True] * warnings


def test_a_link_to_a_policy_is_read_as_the_file_is(tmp_path: Path) -> None:
    (tmp_path / "mounted.toml").write_text("version = 1\nmax_bytes = 9000\n")
    (tmp_path / "policy.toml").symlink_to("mounted.toml")

    assert Policy.load(tmp_path / "policy.toml").max_bytes == 9_000


@pytest.mark.parametrize(
    "name", ["\x1b[2J", "\x9b31m", "a\u202eb", "a\u200bb", "a\u2028b", '"]\nmax_bytes = 1 #']
)
def test_a_hostile_name_of_a_tool_is_seen_in_the_file_and_obeyed_by_nothing(
    tmp_path: Path, name: str
) -> None:
    path = tmp_path / "policy.toml"
    path.write_text(toml_of({name: ({"max_bytes": 5}, [])}, head=[]), encoding="utf-8")

    assert path.read_text(encoding="utf-8").replace("\n", "").isprintable()
    assert Policy.load(path).limits(name).max_bytes == 5


SETTINGS = st.fixed_dictionaries(
    {"max_bytes": st.integers(0, 10**9), "strategy": st.sampled_from(["HEAD", "TAIL", "ENDS"])}
)
NAMES = st.text(st.characters(codec="utf-8"))


@pytest.fixture(scope="module")
def path_of_all(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file that all examples of a test write anew."""
    return tmp_path_factory.mktemp("policies") / "policy.toml"


@given(st.dictionaries(NAMES, SETTINGS, max_size=5))
def test_what_is_written_is_read(path_of_all: Path, tools: dict[str, Any]) -> None:
    text = toml_of({tool: (each, ["because ✓"]) for tool, each in tools.items()}, head=["made by a test"])
    path_of_all.write_bytes(text.encode())
    policy = Policy.load(path_of_all)

    for tool, each in tools.items():
        assert policy.limits(tool).max_bytes == each["max_bytes"]
        assert policy.cut_strategy(tool).name.upper() == each["strategy"]


def test_the_strategy_of_a_tool_is_in_its_notice() -> None:
    guard = Guard(policy=Policy(tools={"make": 500}, strategies={"make": "TAIL"}))
    shown = str(guard.process_sync(LOG, tool="make").value)

    assert "line 1399 " in shown
    assert "line 0 " not in shown
    assert Policy(tools={"x": Limits(5)}).cut_strategy("x") is PREVIEW


def test_a_written_file_keeps_all_limits_of_the_tools_of_the_policy_in_use(tmp_path: Path) -> None:
    path = tmp_path / "policy.toml"
    tools: dict[str, int | Limits] = {"x": Limits(5, 6, 7, 8), "y": 9, "z": Limits(1)}
    write_policy(path, [Advice(tool="x", max_bytes=50)], Policy(tools=tools), since=3600)
    policy = Policy.load(path)

    assert policy.limits("x")[:4] == (50, 6, 7, 8)
    assert policy.limits("y")[:4] == Policy(tools=tools).limits("y")[:4]
    assert policy.limits("z")[:4] == Policy(tools=tools).limits("z")[:4]


# --- from counts to a policy ----------------------------------------------------------------------


class Agent:
    """Calls three tools, and treats what each spills in its own way."""

    def __init__(self, client: SyncClient, policy: Policy | None = None) -> None:
        self._client, self._policy = client, policy

    def run(self, calls: int) -> int:
        """Make so many calls of each tool; return how many outputs spilled."""
        with Guard(self._client, self._policy, spool=False) as guard:
            for number in range(calls):
                for tool in ("wanted", "ignored", "tailed"):
                    text = f"{number} {time.time_ns()}\n{LOG}"
                    spilled = guard.process_sync(text, tool=tool, call_id=f"{tool} {time.time_ns()}")
                    if spilled.capture is not None and tool == "wanted":
                        self._client.grep(spilled.capture, "line 77 ")
                    if spilled.capture is not None and tool == "tailed" and number % 3 == 0:
                        self._client.tail(spilled.capture, 3)
            return guard._pipeline.tally.spilled


def test_three_kinds_of_agents_get_the_advice_that_fits_and_then_it_is_quiet(
    own_service: ServiceProcess, tmp_path: Path
) -> None:
    path = tmp_path / "policy.toml"
    shell = Shell(own_service.url)
    with SyncClient(own_service.url, session="advice") as client:
        assert Agent(client).run(93) == 279
        wait_for(client, reads=93 + 31)
        advice = {each["tool"]: each for each in json.loads(shell("advise", "--json").out)}
        printed = shell("advise", "-o", str(path))
        policy = Policy.load(path)
        narrow = shell.terminal("advise", columns=40)
        again = shell("advise", "--policy", str(path))
        shown = overview(own_service.url)

        assert Agent(client, policy).run(1) == 2

    assert narrow.ended() == 0
    for each in advice.values():  # no reason is cut off
        assert "; ".join(each["reasons"]) in " ".join(narrow.shown.decode().split())
    assert shown.keys() == advice.keys()
    for tool, each in shown.items():
        assert {name: each[name] for name in advice[tool]} == advice[tool]
        assert each["policy"] in path.read_text()
    assert advice["wanted"]["max_bytes"] == 65_536
    assert advice["ignored"]["max_bytes"] == 25_000
    assert (advice["tailed"]["strategy"], advice["tailed"].get("max_bytes")) == ("TAIL", None)
    assert "captures were read within a minute" in printed.out
    assert "# 93 of 93 (100 %) captures were read within a minute" in path.read_text()
    assert (policy.limits("wanted").max_bytes, policy.cut_strategy("tailed")) == (65_536, TAIL)
    assert "wanted" in again.out
    assert "65,536 ->" not in again.out


def overview(url: str) -> dict[str, dict[str, Any]]:
    """Return the advice that the web page shows, by tool."""
    since = urlencode({"since": (datetime.now(UTC) - timedelta(days=7)).isoformat()})
    with urlopen(f"{url}{wire.Path.OVERVIEW}?{since}") as answer:
        return {each["tool"]: each for each in json.load(answer)["advice"]}


@pytest.mark.parametrize("tool", [*TOOL_BYTES, "any other"])
def test_the_usual_settings_are_those_of_a_policy_that_sets_none(tool: str) -> None:
    policy = Policy()

    assert usual_settings(tool) == Now(
        max_bytes=policy.limits(tool).max_bytes, strategy=policy.cut_strategy(tool).name.upper()
    )


def wait_for(client: SyncClient, *, reads: int) -> None:
    """Wait until the service has written all reads to its statistics."""
    until = time.monotonic() + 60
    while time.monotonic() < until:
        if sum(sum(each.modes.values()) for each in figures_of(client.stats(total=True))) >= reads:
            return
        time.sleep(0.2)
    raise AssertionError(client.stats(total=True))
