"""The tree is the architecture: imports go downwards only."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent


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
        "import sys, overspill_service.__main__; sys.exit(str({'boto3', 'redis'} & sys.modules.keys() or ''))"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)

    assert result.stderr.strip() == ""
