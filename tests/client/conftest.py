"""No test touches the spool of whoever runs the tests, or leaves work in the background to the next."""

from __future__ import annotations

import os
import socket
import sys
import uuid
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(autouse=True, scope="session")
def states_of_this_run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("states")
    with pytest.MonkeyPatch.context() as patched:
        for name in [name for name in os.environ if name.startswith("OVERSPILL_SPOOL")]:
            patched.delenv(name)
        patched.setenv("XDG_STATE_HOME", str(folder))
        yield folder


@pytest.fixture(autouse=True)
def states_of_this_test(states_of_this_run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder of its own, which is made when something is first kept in it: most tests keep nothing."""
    monkeypatch.setenv("XDG_STATE_HOME", str(states_of_this_run / uuid.uuid4().hex))


@pytest.fixture
def no_spool(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing can be spooled."""
    monkeypatch.setenv("OVERSPILL_SPOOL", "off")


@pytest.fixture
def hanging() -> Iterator[str]:
    """The URL of a service that accepts connections and never answers."""
    from tests.client.scripted import scripted_in_thread, silence  # noqa: PLC0415  (few tests need it)

    with scripted_in_thread(silence) as service:
        yield service.url


@pytest.fixture(autouse=True)
def nothing_left_in_the_background() -> Iterator[None]:
    yield
    module = sys.modules.get("overspill.delivery.backgrounds")
    for background in list(module.backgrounds.of_addresses.values()) if module else ():
        background.close()
        background.job_thread.join(10)


@pytest.fixture
def nowhere() -> Iterator[str]:
    """The URL of a port that nobody listens on."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{taken.getsockname()[1]}"
