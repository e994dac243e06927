"""One browser for all tests of a module."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest_asyncio

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from playwright.async_api import Browser


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def browser() -> AsyncIterator[Browser]:
    """A browser in which each test opens contexts of its own: they share no cookie, cache or page.

    Who asks for it runs on the event loop of the module, as the browser does.
    """
    from tests.e2e.web_page import chromium  # noqa: PLC0415  (without playwright its tests are skipped)

    async with chromium() as started:
        yield started
