"""Notices of outputs that went to the service, or to the spool."""

from __future__ import annotations

from typing import TYPE_CHECKING

from overspill.previews.notice import make_notice
from overspill.previews.notice_facts import StoreResult
from overspill.wire import Outcome

if TYPE_CHECKING:
    from datetime import datetime

    from overspill.previews.notice_facts import Facts, Notice


def captured(facts: Facts, expires: datetime) -> Notice:
    return make_notice(facts, StoreResult(outcome=Outcome.CAPTURED, expires=expires))


def spooled(facts: Facts, expires: datetime | None, reason: str, path: str = "") -> Notice:
    return make_notice(facts, StoreResult(outcome=Outcome.SPOOLED, expires=expires, reason=reason, path=path))
