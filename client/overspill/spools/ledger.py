r"""The number of bytes that a spool keeps, in its lock file. So no put has to look at every file.

    <total> <moved> <counted>\n    three numbers of 20 digits: bytes kept, bytes ever added or renamed, and
                                   when all files were counted last, in seconds since the epoch

Whoever holds the lock changes the numbers together with the files. If a process dies in between, the total is
at worst too high. A count of all files corrects it: whenever the total nears the bound, when the line is
missing or damaged, and every ten minutes.
"""

from __future__ import annotations

import os
import re
from typing import Final, NamedTuple

_LINE: Final = re.compile(rb"(\d{20}) (\d{20}) (\d{20})\n")
_LENGTH: Final = 63
UNKNOWN: Final = 10**19
"""A total above every bound, so that whoever wants to add anything counts first."""


class Account(NamedTuple):
    """The numbers of the ledger, in the order of its line. A total that nobody has counted is `UNKNOWN`."""

    total: int = UNKNOWN
    moved: int = 0
    counted: int = 0


class Ledger:
    """The line in an open lock file, for as long as it is locked. Methods raise `OSError`."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def read(self) -> Account:
        """Return what the ledger says; an unknown total if the file has no such line."""
        line = _LINE.fullmatch(os.pread(self._descriptor, _LENGTH + 1, 0))
        return Account() if line is None else Account(*map(int, line.groups()))

    def charge(self, size: int) -> None:
        """Count `size` bytes more; call it before their files are made."""
        account = self.read()
        total = account.total if account.total == UNKNOWN else account.total + size
        self._write(account._replace(total=total, moved=account.moved + size))

    def rename(self, size: int) -> None:
        """Note that files of `size` bytes get other names, under which a count may miss them."""
        account = self.read()
        self._write(account._replace(moved=account.moved + size))

    def discharge(self, size: int) -> None:
        """Count `size` bytes less; call it when their files are gone."""
        account = self.read()
        if account.total != UNKNOWN:
            self._write(account._replace(total=max(0, account.total - size)))

    def settle(self, before: Account, found: int, now: float) -> None:
        """Take over a count of all files that began when the account was `before`, and its bytes.

        The count may have missed, or seen, what was added, renamed or removed while it ran. A total within
        these limits is right; any other is replaced by the highest that can be true.
        """
        account = self.read()
        moved = max(0, account.moved - before.moved)
        is_right = account.total - moved <= found <= before.total + moved
        total = account.total if is_right and before.total != UNKNOWN else found + moved
        self._write(account._replace(total=total, counted=max(0, int(now))))

    def _write(self, account: Account) -> None:
        os.pwrite(self._descriptor, b"%020d %020d %020d\n" % account, 0)
