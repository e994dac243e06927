"""The content that a test is parametrized with, by its name."""

from __future__ import annotations

import pytest

from tests.core.contents import CONTENTS


@pytest.fixture
def content(request: pytest.FixtureRequest) -> bytes:
    return CONTENTS[request.param]
