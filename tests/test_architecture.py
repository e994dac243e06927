"""The tree is the architecture: imports go downwards only."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
CLIENT, SERVICE = ROOT / "client/overspill", ROOT / "service/overspill_service"
PAGES = {CLIENT: ROOT / "client/docs/contributing.md", SERVICE: ROOT / "service/README.md"}
MODULE = re.compile(r"\b([a-z_]+)/([a-z_0-9]+)\b")


def test_imports_go_downwards_only() -> None:
    result = subprocess.run(
        [Path(sys.executable).parent / "lint-imports", "--no-cache"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )

    assert result.returncode == 0, result.stdout


def test_the_client_alone_imports_no_service_code() -> None:
    code = (
        "import sys, overspill; sys.exit(any(name.startswith('overspill_service') for name in sys.modules))"
    )
    result = subprocess.run([sys.executable, "-c", code], check=False)

    assert result.returncode == 0


def test_the_bounded_readers_do_no_io() -> None:
    code = (
        "import sys, overspill.reading.summary, overspill.reading.content_kind;"
        "sys.exit(str({'asyncio', 'socket', 'numpy', 'aiohttp', 'subprocess'} & sys.modules.keys() or ''))"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)

    assert result.stderr.strip() == ""


def test_the_service_imports_what_s3_and_redis_need_only_for_them() -> None:
    code = (
        "import sys, overspill_service.dispatch;sys.exit(str({'boto3', 'redis'} & sys.modules.keys() or ''))"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)

    assert result.stderr.strip() == ""


def test_help_of_the_service_imports_no_server() -> None:
    code = (
        "import sys, atexit; from overspill_service.__main__ import main;"
        "atexit.register(lambda: print({'aiohttp', 'numpy', 'zstandard'} & sys.modules.keys() or ''));"
        "sys.argv[1:] = ['serve', '--help']; main()"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert "--max-uploads" in result.stdout
    assert result.stdout.splitlines()[-1] == ""


@pytest.mark.parametrize("package", PAGES, ids=lambda package: package.name)
def test_the_architecture_page_names_every_room(package: Path) -> None:
    rooms = PAGES[package].read_text().partition("Where a change belongs")[0]
    units = {each.stem for each in package.iterdir() if each.is_dir() or each.suffix == ".py"}

    assert [unit for unit in sorted(units) if unit[0] != "_" and not re.search(rf"\b{unit}\b", rooms)] == []


@pytest.mark.parametrize("package", PAGES, ids=lambda package: package.name)
def test_every_module_that_an_architecture_page_names_is_there(package: Path) -> None:
    named = {pair for pair in MODULE.findall(PAGES[package].read_text()) if (package / pair[0]).is_dir()}

    assert len(named) > 20
    assert [
        f"{room}/{module}" for room, module in sorted(named) if not is_there(package / room / module)
    ] == []


def is_there(path: Path) -> bool:
    return path.is_dir() or path.with_suffix(".py").is_file()


def test_only_modules_that_ask_for_the_version_import_what_newer_pythons_have_themselves() -> None:
    importing = re.compile(r"^\s*(?:from|import) backports\b", re.MULTILINE)
    files = [path for folder in (CLIENT, SERVICE, ROOT / "tests") for path in folder.rglob("*.py")]
    texts = [path.read_text(encoding="utf-8") for path in files if ".venv" not in path.parts]
    found = [text for text in texts if importing.search(text)]

    assert found
    assert all("if sys.version_info >= (3, 14):" in text for text in found)
