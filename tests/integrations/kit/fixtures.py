"""The fixtures of the cases of all frameworks.

This is not a conftest: the project's own run would read it, and there is no framework then.
"""

from __future__ import annotations

import os
import uuid
from importlib import import_module
from typing import TYPE_CHECKING

import pytest
from overspill import Guard, SyncClient

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.integrations.kit.harness import Harness

HARNESS: Harness = import_module(f"tests.integrations.{os.environ['KIT_FRAMEWORK']}.harness").harness


@pytest.fixture(autouse=True)
def possible(request: pytest.FixtureRequest) -> None:
    """Skip what the framework itself cannot do; the reason is part of the documentation."""
    case = request.function.__name__.removeprefix("test_")
    if case in HARNESS.limits:
        pytest.skip(HARNESS.limits[case])


@pytest.fixture(params=HARNESS.ways)
def way(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def session() -> str:
    return f"kit-{uuid.uuid4()}"


@pytest.fixture
def guard(session: str) -> Iterator[Guard]:
    with (
        SyncClient(os.environ["OVERSPILL_URL"], session=session) as client,
        Guard(client, spool=False) as made,
    ):
        yield made
