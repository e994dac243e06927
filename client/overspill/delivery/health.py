"""Says whether to use a service now. If not, it says since when the service fails, and why.

ServiceHealth   for one destination
  Circuit       what this process knows of the service, from all guards and keys
  Absence       what all processes of this machine know, if they share a spool

Safe to use from any thread. Only `Absence` reads and writes files; nothing here asks the service.
"""

from __future__ import annotations

import threading
import time
import weakref
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from overspill.delivery.circuit import FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS, Circuit
from overspill.execution import forks
from overspill.spools.absence import Away

if TYPE_CHECKING:
    from overspill.spools.absence import Absence

_FIRST_ALONE: Final = 1.0
_LONGEST_ALONE: Final = 5.0
"""Seconds that a failing service is left alone, at first and at most, if there is no spool beside it."""


class _Circuits:
    """The circuit of each service, by its URL, as long as a destination uses it."""

    def __init__(self) -> None:
        self._of_urls: weakref.WeakValueDictionary[str, Circuit] = weakref.WeakValueDictionary()
        self.reset_after_fork()
        forks.register(self)

    def reset_after_fork(self) -> None:
        self._lock = threading.RLock()

    def of(self, url: str) -> Circuit:
        with self._lock:
            found = self._of_urls.get(url)
            if found is None:
                found = self._of_urls[url] = Circuit()
            return found


_circuits: Final = _Circuits()


class ServiceHealth:
    """The health of a service for one destination. `absence` is what its partition remembers, if any."""

    def __init__(self, url: str, absence: Absence | None, *, has_spool: bool) -> None:
        self.url: str = url
        self._absence = absence
        self._pauses = (
            (FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS) if has_spool else (_FIRST_ALONE, _LONGEST_ALONE)
        )
        self._circuit: Circuit | None = None

    @property
    def circuit(self) -> Circuit:
        """The state of the service as this process knows it."""
        if self._circuit is None:
            self._circuit = _circuits.of(self.url)
        return self._circuit

    def forget(self) -> None:
        """Release the circuit. Its state is forgotten when no destination uses it."""
        self._circuit = None

    @property
    def is_away(self) -> bool:
        """Whether this process or another one sends nothing to the service for now."""
        return self.circuit.is_open or (self._absence is not None and self._absence.pause() > 0)

    def refusal(self) -> str | None:
        """Return why the service is not asked now, or None if it is. A due try is for one caller."""
        if self._allows():
            return None
        since, reason = self.circuit.failing_since, self.circuit.last_failure
        return (
            f"the service has failed{'' if since is None else f' since {since:%Y-%m-%dT%H:%M:%SZ}'}: {reason}"
        )

    def _allows(self) -> bool:
        circuit = self.circuit
        if circuit.is_open:
            first, longest = self._pauses
            return circuit.allows(first=first, longest=longest)
        away = None if self._absence is None else self._absence.known()
        if away is None:
            return True
        circuit.failing_since, circuit.last_failure = datetime.fromtimestamp(away.since, UTC), away.why
        if away.next_try > time.time():
            return False
        self._note(replace(away, next_try=time.time() + FIRST_PAUSE_SECONDS))
        return True

    def failed(self, reason: str, *, slow: bool) -> None:
        """Note that the service failed, and why. `slow`: it did not answer in time."""
        since = self.circuit.failed(reason, slow=slow)
        if slow:
            self._note(Away(time.time() + FIRST_PAUSE_SECONDS, since.timestamp(), reason))

    def _note(self, away: Away) -> None:
        if self._absence is not None:
            self.circuit.absences.add(self._absence)
            self._absence.note(away)

    def answered(self) -> None:
        """Note that the service works."""
        circuit = self.circuit
        circuit.succeeded()
        with suppress(KeyError):  # another thread ended the last one
            while circuit.absences:
                circuit.absences.pop().end()
