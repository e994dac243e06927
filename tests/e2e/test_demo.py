"""`overspill demo`, as a newcomer runs it."""

import re
import signal
import subprocess
import sys
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

import pytest
from overspill import SyncClient
from overspill.cli.demo import fleet
from overspill.cli.demo.service import running

from tests.client.shell import CAPTURE_ID, Shell, command, interruptible
from tests.servers.overspill import clean_environment
from tests.servers.redis import wait_until

TOOLS = ("grep_search", "describe_python", "run_command")
STORED = re.compile(r"^  (\w+) +([\d,]+) +([\d,]+) +[\d.]+ +([\d,]+)$", re.MULTILINE)
SECONDS = 250


def environment(scratch: Path) -> dict[str, str]:
    """Variables of a newcomer whose own settings must not matter, with temporary files in `scratch`."""
    return clean_environment(
        TMPDIR=str(scratch), OVERSPILL_URL="http://127.0.0.1:1", OVERSPILL_SESSION="other"
    )


def someones_project(folder: Path) -> Path:
    """A deep folder in a project whose own settings for tests must not matter."""
    (folder / "pytest.ini").write_text("[pytest]\naddopts = --no-such-option\n")
    scratch = folder / "/".join(["a-rather-long-name"] * 8)
    scratch.mkdir(parents=True)
    return scratch


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return someones_project(tmp_path_factory.mktemp("demo"))


@pytest.fixture(scope="module")
def told(scratch: Path) -> str:
    result = subprocess.run(
        command("demo"),
        env=environment(scratch),
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )

    assert (result.returncode, result.stderr) == (0, "")
    return result.stdout


def test_three_real_tools_are_captured(told: str) -> None:
    assert re.findall(r"^\d\. (\w+):", told, re.MULTILINE) == list(TOOLS)
    assert told.count("outcome              captured") == len(TOOLS)


def test_a_notice_is_shown_whole_with_the_failure_in_the_middle(told: str) -> None:
    third = told.partition("3. run_command")[2].partition("Reading back")[0]
    capture = CAPTURE_ID.findall(third)[0]

    assert "| [overspill] Output of run_command (" in third
    assert capture in third
    assert re.search(r"\| (line 78\d: )?test_invoice.*0777 .*FAIL", third)
    assert "| [/overspill " in third


def test_the_failure_is_found_by_handle(told: str) -> None:
    reads = told.partition("Reading back")[2]

    assert re.findall(r"\$ overspill (\w+)", reads)[:4] == ["tail", "grep", "grep", "lines"]
    assert re.search(r"\| 78\d:test_invoices.py.*test_invoice_0777", reads)
    assert re.search(r"\(\d requests? to the object store; the capture has [\d,]+ bytes\)", reads)


def test_the_figures_show_what_was_kept_out(told: str) -> None:
    figures = {
        tool: tuple(int(text.replace(",", "")) for text in numbers) for tool, *numbers in STORED.findall(told)
    }

    assert list(figures) == list(TOOLS)
    assert all(
        after < 5_000 < returned and stored < returned / 2 for returned, stored, after in figures.values()
    )


def test_nothing_is_left_behind(told: str, scratch: Path) -> None:
    url = re.findall(r"The service: (\S+),", told)[0]

    assert not list(scratch.iterdir())
    with pytest.raises(URLError):
        urlopen(url)


def test_it_says_how_to_keep_going(told: str) -> None:
    assert "overspill-service serve" in told
    assert "overspill demo --keep" in told


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 0), (signal.SIGTERM, 143)])
def test_kept_the_service_answers_until_it_is_told_to_stop(tmp_path: Path, number: int, code: int) -> None:
    scratch, data = someones_project(tmp_path), tmp_path / "data"
    with interruptible():
        process = subprocess.Popen(
            command("demo", "--keep", "--data", str(data)),
            env=environment(scratch),
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
    assert process.stdout is not None
    lines = iter(process.stdout.readline, "")
    url = next(line for line in lines if "export OVERSPILL_URL=" in line).partition("=")[2].strip()
    shown = next(line for line in lines if "overspill grep" in line).split()
    link = next(line for line in lines if line.strip().startswith(url)).strip()
    listed = Shell(url)("ls", "--session", "demo")
    found = Shell(url)(*shown[shown.index("grep") :])
    process.send_signal(number)
    process.communicate(timeout=SECONDS)

    assert re.fullmatch(re.escape(url) + r"/#code=[\w-]+\.[\w-]+&to=/", link)
    assert len(listed.out.splitlines()) == len(TOOLS)
    assert "0777 FAILED" in found.out
    assert process.returncode == code
    assert any(data.rglob("*"))
    with pytest.raises(URLError):
        urlopen(url)


def test_without_the_service_it_says_what_to_install(scratch: Path) -> None:
    hidden = (
        "import sys; sys.modules['overspill_service'] = None; sys.argv = ['overspill', 'demo'];"
        "from overspill.__main__ import main; sys.exit(main())"
    )
    result = subprocess.run(
        [sys.executable, "-c", hidden], env=environment(scratch), capture_output=True, text=True, check=False
    )

    assert result.returncode == 2
    assert "pip install ./service" in result.stderr
    assert not list(scratch.iterdir())


def test_a_simulated_fleet_is_counted_exactly(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("OVERSPILL_KEY_FILE")
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    with running(tmp_path) as service:
        key = fleet.run(service, tmp_path, seconds=3)
        told = re.findall(
            r"^  ([a-z-]+) +([\d,]+) +[\d,]+ +([\d,]+) +[\d,]+$", capsys.readouterr().out, re.MULTILINE
        )
        expected = {name: [int(each.replace(",", "")) for each in figures] for name, *figures in told}
        with SyncClient(service.url) as operator, SyncClient(service.url, key) as tenant:
            wait_until(lambda: counted(operator) == expected, "the sums of all tenants")
            usage = tenant.usage()

    assert expected.keys() == fleet.AGENTS.keys()
    assert usage.tenant == next(iter(fleet.AGENTS))


def counted(operator: SyncClient) -> dict[str, list[int]]:
    """Outputs and their bytes by tenant, as the service has them."""
    found: dict[str, list[int]] = {}
    for row in operator.fleet_stats(total=True).rows:
        sums = found.setdefault(row.tenant, [0, 0])
        sums[0] += row.figures.get("tool_outputs", 0)
        sums[1] += row.figures.get("tool_output_bytes", 0)
    return found
