"""`overspill top`: what the table says, how it is drawn on a terminal, and how the terminal is left."""

from __future__ import annotations

import json
import re
import secrets
import shlex
import signal
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st
from overspill.cli.color import ColorMode, Paint
from overspill.cli.printable import printable_line
from overspill.cli.table import size as size_shown
from overspill.cli.table import width_of
from overspill.cli.top import figures
from overspill.cli.top.view import View
from overspill.transfer.sync import SyncClient
from overspill.wire import Observation, Observations, Outcome, Stats, StatsRow
from overspill_service.tenants.keys import hash_key, new_key
from rich.cells import cell_len

from tests.client.shell import Shell, Terminal, command
from tests.servers.overspill import ForkedService, ServiceProcess, running

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

ENTER: Final = b"\x1b[?1049h\x1b[?25l\x1b[?7l"
LEAVE: Final = b"\x1b[?7h\x1b[?25h\x1b[?1049l"
HOSTILE: Final = "evil\x1b[31m\x1b]0;title\x07\n\u202etool"
WIDE: Final = "日本語の道具" * 9
NOBODY: Final = "http://127.0.0.1:1"


def seen(tool: str, outcome: Outcome, count: int, before: int, after: int, **more: Any) -> Observation:
    return Observation(
        tool=tool, outcome=outcome, count=count, bytes_before=before, bytes_after=after, **more
    )


SEEN: Final = (
    seen("grep", Outcome.INLINE, 6, 6000, 6000),
    seen("grep", Outcome.CAPTURED, 3, 9_000_000, 3000, tokens_kept_out=2_250_000, identical=1, bursts=2),
    seen("grep", Outcome.TRUNCATED, 1, 50_000, 8000, tokens_kept_out=10_500),
    seen(HOSTILE, Outcome.INLINE, 1, 10, 10),
    seen(WIDE, Outcome.SPOOLED, 1, 1000, 600),
)


def report(url: str, *observations: Observation, key: str | None = None) -> None:
    with SyncClient(url, key) as client:
        client.observe(Observations(batch=secrets.token_hex(8), observations=list(observations)))


@pytest.fixture(scope="module")
def overspill(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shell]:
    """Of a service to which the outputs of `SEEN` are reported, and nothing else."""
    with running(ForkedService(tmp_path_factory.mktemp("service"))) as service:
        report(service.url, *SEEN)
        with SyncClient(service.url) as client:
            for number in range(4):
                client.put(f"{number}", tool="grep", call_id=f"{number}")
        service.restart()  # captures are counted in the statistics every few seconds, and at the end
        yield Shell(service.url)


def frames(shown: bytes) -> list[list[str]]:
    """The lines of each screen that was drawn, without colour."""
    text = re.sub(r"\x1b\[[0-9;]*m", "", shown.partition(ENTER)[2].partition(LEAVE)[0].decode())
    return [
        [line.removeprefix("\x1b[2K") for line in re.split(r"\r+\n", frame)]
        for frame in text.split("\x1b[H")[1:]
    ]


def quit_table(terminal: Terminal, awaited: bytes = b"TOTAL") -> list[list[str]]:
    """The screens up to that on which `awaited` appears; then the table is left by its key."""
    terminal.wait_for(awaited)
    terminal.press(b"q")
    assert terminal.ended() == 0, terminal.shown
    assert terminal.shown.startswith(ENTER)
    assert terminal.shown.endswith(LEAVE)
    return frames(terminal.shown)


# --- what it says ---------------------------------------------------------------------------------


def test_a_pipe_gets_exact_figures_with_their_names_and_their_sum(overspill: Shell) -> None:
    printed = overspill("top", "--sort", "outputs").out.replace("KEPT OUT", "KEPT")
    header, total, first, *_ = (line.split() for line in printed.splitlines())
    grep = dict(zip(header, first, strict=True))

    assert dict(zip(header, total, strict=True))["OUTPUTS"] == "12"
    assert (grep["TOOL"], grep["OUTPUTS"], grep["SPILLED"], grep["LOST"]) == ("grep", "10", "0.4", "0.1")
    assert (grep["BYTES"], grep["KEPT"]) == ("9056000", str(9_056_000 - 17_000))
    assert (grep["TOKENS"], grep["CAPTURES"], grep["READ"]) == ("2260500", "4", "0")
    assert (grep["SAME"], grep["BURSTS"]) == ("1", "2")


@pytest.mark.parametrize("heading", ["LOST", "same", "/min", "Kept Out"])
def test_a_heading_names_the_column_to_sort_by(overspill: Shell, heading: str) -> None:
    assert overspill("top", "--sort", heading).code == 0


def test_json_is_the_services_answer(overspill: Shell) -> None:
    answer = json.loads(overspill("top", "--json").out)
    outputs = {
        (row["tool"], row["outcome"]): row["figures"].get("tool_outputs", 0)
        for row in answer["rows"]
        if row["outcome"] in [*Outcome]
    }

    assert answer["step"] == 60
    assert outputs == {(each.tool, each.outcome): each.count for each in SEEN}


@pytest.mark.parametrize(
    ("since", "step"), [("3h", 60), ("4h", 900), ("7d", 900), ("8d", 86400), ("99w", 86400)]
)
def test_the_step_is_the_shortest_that_is_kept_for_the_whole_time(
    overspill: Shell, since: str, step: int
) -> None:
    answer = json.loads(overspill("top", "--json", "--since", since).out)

    assert answer["step"] == step
    assert sum(row["figures"].get("tool_outputs", 0) for row in answer["rows"]) == 12


@given(st.floats(min_value=0, max_value=1))
def test_a_share_is_0_or_100_percent_only_if_it_is(ratio: float) -> None:
    assert (figures.share(ratio) in ("0%", "0.0%")) == (ratio == 0)
    assert (figures.share(ratio) == "100%") == (ratio == 1)


@given(st.integers(min_value=-(10**17), max_value=10**17))
def test_figures_take_few_columns(number: int) -> None:
    assert len(figures.count(number)) <= 8
    assert len(size_shown(number)) <= 9


@pytest.mark.parametrize(
    ("number", "shown"),
    [(0, "0 B"), (999, "999 B"), (1000, "1.0 KB"), (999_960, "1.0 MB"), (-4200, "-4.2 KB")],
)
def test_sizes_are_in_decimal_units(number: int, shown: str) -> None:
    assert size_shown(number) == shown


NAMES: Final = st.text(max_size=20) | st.sampled_from(["", "TOTAL", "a" * 200, WIDE, HOSTILE])
AMOUNTS: Final = st.dictionaries(
    st.sampled_from(["tool_outputs", "tool_output_bytes", "tool_output_kept_bytes", "captures"]),
    st.integers(min_value=0, max_value=2**63),
)
ROWS: Final = st.builds(
    StatsRow,
    start=st.just(datetime(2026, 1, 1, tzinfo=UTC)),
    tenant=NAMES,
    tool=NAMES,
    outcome=st.sampled_from([*Outcome, "created", ""]),
    figures=AMOUNTS,
)


@given(
    st.lists(ROWS, max_size=12),
    st.text(max_size=50).map(printable_line),
    st.integers(min_value=1, max_value=120),
    st.integers(min_value=1, max_value=30),
    st.lists(st.sampled_from(["up", "down", "left", "right", "r", "page down", "home", "end", "x", ""])),
)
def test_whatever_is_shown_has_the_size_of_the_screen(
    rows: list[StatsRow], message: str, width: int, height: int, keys: list[str]
) -> None:
    until = datetime(2026, 1, 1, 1, tzinfo=UTC)
    stats = Stats(since=until - timedelta(hours=1), until=until, step=60, rows=rows)
    view = View(Paint(ColorMode.NEVER))
    for key in ["", *keys]:
        view.press(key)
        lines = view.lines(stats, message, width, height)

        assert len(lines) == height
        assert all(width_of(line) <= width for line in lines)
        assert all(line.isprintable() or printable_line(line) == line for line in lines)


# --- on a terminal --------------------------------------------------------------------------------


@pytest.mark.parametrize("columns", [20, 40, 80, 200])
def test_each_screen_fits_its_terminal_and_obeys_no_name(overspill: Shell, columns: int) -> None:
    screens = quit_table(overspill.terminal("top", columns=columns))

    assert all(len(screen) == 24 for screen in screens)
    assert all(cell_len(line) <= columns for screen in screens for line in screen)
    assert not re.search(r"[\x00-\x1f\x7f-\x9f\u202a-\u202e]", "".join(screens[-1]))
    assert [line.split()[0] for line in screens[-1][3:5]] == ["TOTAL", "grep"]


def test_the_table_has_the_size_that_the_terminal_has_now(overspill: Shell) -> None:
    terminal = overspill.terminal("top", columns=80)
    terminal.wait_for(b"TOTAL")
    before = len(terminal.shown)
    terminal.resize(200, 10)
    terminal.wait_for(b"/MIN", after=before)
    screens = quit_table(terminal)

    assert (len(screens[0]), len(screens[-1])) == (24, 10)
    assert "/MIN" not in "".join(screens[0])


def test_keys_change_the_order(overspill: Shell) -> None:
    terminal = overspill.terminal("top", "--sort", "name")
    terminal.wait_for("TOOL▾".encode())
    terminal.press(b"r")
    terminal.wait_for("TOOL▴".encode())
    terminal.press(b"\x1b[C")
    terminal.wait_for("OUTPUTS▴".encode())
    screens = quit_table(terminal)

    assert [line[:4].strip() for line in screens[0][4:7]] == ["evil", "grep", "日本語の"]
    assert screens[-1][6].startswith("grep")


def test_a_key_that_means_nothing_does_nothing(overspill: Shell) -> None:
    terminal = overspill.terminal("top", "--sort", "name")
    terminal.wait_for("TOOL▾".encode())
    for key in (b"\n", b"\t", b"\x1b", b"\x7f", "é".encode(), b"\x1b[Z", b"x"):
        drawn = len(terminal.shown)
        terminal.press(key)
        terminal.wait_for(b"TOTAL", after=drawn)
    terminal.press(b"r")

    quit_table(terminal, "TOOL▴".encode())


def test_a_terminal_that_is_no_screen_gets_the_table_once(overspill: Shell) -> None:
    for kind in ("dumb", ""):
        terminal = overspill.terminal("top", TERM=kind)

        assert terminal.ended() == 0
        assert re.search(rb"TOTAL +12 ", terminal.shown)
        assert b"\x1b[?" not in terminal.shown


def test_colour_is_as_the_user_wants_it(overspill: Shell) -> None:
    for words, no_color, is_colored in (
        ([], "", True),
        ([], "1", False),
        (["--color", "never"], "", False),
        (["--color", "always"], "1", True),
    ):
        terminal = overspill.terminal("top", *words, NO_COLOR=no_color)
        quit_table(terminal)

        assert (b"\x1b[1m" in terminal.shown) == is_colored


# --- how it ends ----------------------------------------------------------------------------------


def test_ctrl_c_and_a_signal_leave_the_terminal_as_it_was(overspill: Shell) -> None:
    interrupted, ended = overspill.terminal("top"), overspill.terminal("top")
    interrupted.wait_for(b"TOTAL")
    interrupted.press(b"\x03")
    ended.wait_for(b"TOTAL")
    ended.signal(signal.SIGTERM)

    assert interrupted.ended() == 130
    assert LEAVE in interrupted.shown
    assert ended.ended() == -signal.SIGTERM
    assert ended.shown.endswith(LEAVE)


def test_a_table_that_is_stopped_gives_the_terminal_back_until_it_goes_on(overspill: Shell) -> None:
    terminal = overspill.terminal("top")
    terminal.wait_for(b"TOTAL")
    terminal.press(b"\x1a")
    terminal.wait_for_stop()
    terminal.wait_for(LEAVE)
    before = len(terminal.shown)
    terminal.signal(signal.SIGCONT)
    terminal.wait_for(b"TOTAL", after=before)
    terminal.press(b"q")

    assert terminal.ended() == 0
    assert terminal.shown[:before].endswith(LEAVE)
    assert terminal.shown[before:].startswith(ENTER)
    assert terminal.shown.endswith(LEAVE)


def test_a_key_that_is_taken_back_ends_the_table(own_service: ServiceProcess, tmp_path: Path) -> None:
    terminal = Shell(own_service.url).terminal("top", "--interval", "1s")
    terminal.wait_for(b"quit")
    tenants = tmp_path / "tenants.toml"
    tenants.write_text(
        f'[[tenants]]\nname = "acme"\nkeys = [{{hash = "{hash_key(new_key())}", scopes = ["read"]}}]\n'
    )
    own_service.restart(tenants=tenants)

    assert terminal.ended() == 4
    assert LEAVE + b"overspill: " in terminal.shown
    assert b"Traceback" not in terminal.shown


@pytest.mark.parametrize("end", [b"q", b"\x03"])
def test_the_terminals_settings_are_the_same_afterwards(overspill: Shell, end: bytes) -> None:
    shell = Shell(overspill.environment["OVERSPILL_URL"], TERM="xterm")
    script = f"trap : INT; stty -g; {shlex.join(command('top'))}; stty -g"
    terminal = shell.script_on_terminal(script)
    terminal.wait_for(b"TOTAL")
    terminal.press(end)
    assert terminal.ended() == 0
    settings = re.findall(rb"[0-9a-f]+(?::[0-9a-f]+){10,}", terminal.shown)

    assert len(settings) == 2
    assert settings[0] == settings[1]


def test_a_service_that_comes_back_is_shown_again_and_the_last_table_stays_until_then(
    own_service: ServiceProcess,
) -> None:
    report(own_service.url, *SEEN)
    terminal = Shell(own_service.url).terminal("top", "--interval", "1s")
    terminal.wait_for(b"TOTAL")
    own_service.kill()
    terminal.wait_for(b"stale since")
    own_service.start()
    before = len(terminal.shown)
    report(own_service.url, seen("after", Outcome.INLINE, 1, 1, 1))
    terminal.wait_for(b"after", after=before)
    screens = quit_table(terminal)
    stale = [screen for screen in screens if screen[1].startswith("stale since")]

    assert all("grep" in screen[4] for screen in stale)
    assert screens[-1][1] == ""


@pytest.mark.parametrize(
    ("url", "words", "code", "said"),
    [
        (NOBODY, [], 5, "start one with"),
        ("{url}/older", [], 3, "this service keeps no statistics"),
        ("{url}", ["--sort", "nothing"], 2, "use name, outputs, "),
        ("{url}", ["--since", "nothing"], 2, "is not a duration"),
    ],
)
def test_failures_end_with_the_codes_of_all_commands(
    overspill: Shell, url: str, words: list[str], code: int, said: str
) -> None:
    shell = Shell(url.format(url=overspill.environment["OVERSPILL_URL"]))
    piped = shell("top", *words)
    terminal = shell.terminal("top", *words)

    assert (piped.code, piped.data) == (code, b"")
    assert said in " ".join(piped.err.split())
    assert terminal.ended() == code
    assert ENTER not in terminal.shown


# --- the fleet ------------------------------------------------------------------------------------


def test_the_fleet_is_shown_by_tenant_to_keys_that_may_see_it(
    own_service: ServiceProcess, tmp_path: Path
) -> None:
    keys = {name: new_key() for name in ("acme", "beta", "ops")}
    scopes = {"acme": '["read", "observe"]', "beta": '["observe"]', "ops": '["fleet"]'}
    file = tmp_path / "tenants.toml"
    file.write_text(
        "".join(
            f'[[tenants]]\nname = "{name}"\nkeys = [{{hash = "{hash_key(key)}", scopes = {scopes[name]}}}]\n'
            for name, key in keys.items()
        )
    )
    own_service.restart(tenants=file)
    for name, count in (("acme", 3), ("beta", 4)):
        report(own_service.url, seen("grep", Outcome.INLINE, count, 10, 10), key=keys[name])
    own_service.restart(tenants=file)  # sums of all tenants are written every few seconds, and at the end
    operator = Shell(own_service.url, OVERSPILL_KEY=keys["ops"])
    rows = [
        line.split()[:2]
        for line in operator("top", "--fleet", "--sort", "outputs").out.splitlines()
        if not line.startswith("ops ")  # what an operator's own requests count
    ]
    tenant, nobody = Shell(own_service.url, OVERSPILL_KEY=keys["acme"]), Shell(own_service.url)

    assert rows == [["TENANT", "OUTPUTS"], ["TOTAL", "7"], ["beta", "4"], ["acme", "3"]]
    assert [each("top", "--fleet").code for each in (tenant, nobody)] == [4, 4]
    assert "fleet" in tenant("top", "--fleet").err
    assert operator("top").code == 4
    assert "--fleet" in operator("top").err
