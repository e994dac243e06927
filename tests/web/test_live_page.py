"""The lines of curl in docs/live.md, as a shell runs them against a service on this machine."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Final

import pytest

from tests.readme_examples import scripts_of
from tests.servers.overspill import ForkedService, clean_environment, running

PAGE: Final = Path(__file__).parent.parent.parent / "service" / "docs" / "live.md"


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not on the PATH")
@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl is not on the PATH")
def test_the_lines_of_curl_append_wait_follow_and_end(tmp_path: Path) -> None:
    (script,) = scripts_of(PAGE)
    key_file = tmp_path / ".config" / "overspill" / "local-key"
    service = ForkedService(tmp_path / "service", anonymous=False)
    service.variables = {"OVERSPILL_KEY_FILE": str(key_file)}
    with running(service):
        here = script.replace("http://127.0.0.1:8750", service.url).replace("curl ", "curl -sS --fail ")
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", here],
            env=clean_environment(HOME=str(tmp_path)),
            capture_output=True,
            encoding="utf-8",
            timeout=120,
            check=False,
        )

    assert (done.returncode, done.stderr) == (0, "")
    assert "http://127.0.0.1:8750" in script
    # The answers of wait and follow, which run beside the others, come in between.
    for offset in (0, 9, 15):
        assert f'"accepted":{offset},' in done.stdout
    assert '"reason":"pattern"' in done.stdout
    assert '"next_offset":15,' in done.stdout
    assert "event: end\n" in done.stdout
    assert '"state":"complete","size":15' in done.stdout
