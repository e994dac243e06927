"""A key that goes to another machine over plain http is said once."""

from __future__ import annotations

import logging

import pytest
from overspill.transfer.address import Address
from overspill.transfer.key import own_key, warn_of_plain_http


def address(url: str, key: str = "secret") -> Address:
    return Address(url=url, key=key, timeout=1, connect_timeout=1, retries=0)


@pytest.fixture(autouse=True)
def nothing_said_yet() -> None:
    warn_of_plain_http.cache_clear()


def said(caplog: pytest.LogCaptureFixture, url: str, key: str = "secret") -> list[str]:
    with caplog.at_level(logging.WARNING, logger="overspill"):
        for _ in range(2):
            assert own_key(address(url, key)) == key
    return caplog.messages


def test_it_is_said_once_and_without_the_key(caplog: pytest.LogCaptureFixture) -> None:
    [message] = said(caplog, "http://captures.example:8750")

    assert "captures.example" in message
    assert "https" in message
    assert "secret" not in message


@pytest.mark.parametrize(
    ("url", "key"),
    [
        ("https://captures.example", "secret"),
        ("http://127.0.0.1:8750", "secret"),
        ("http://localhost:8750", "secret"),
        ("http://[::1]:8750", "secret"),
        ("http://captures.example", ""),
    ],
)
def test_what_nobody_else_reads_needs_no_word(caplog: pytest.LogCaptureFixture, url: str, key: str) -> None:
    assert said(caplog, url, key) == []


def test_who_says_that_it_is_meant_is_not_told(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OVERSPILL_PLAIN_HTTP", "true")

    assert said(caplog, "http://captures.example") == []
