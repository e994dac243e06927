"""The outputs of the audit log: a file that is only appended to, or syslog."""

from __future__ import annotations

import os
import socket
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol
from urllib.parse import urlsplit

from overspill_service.resources.private_files import FILE, make_private_folder

if TYPE_CHECKING:
    from collections.abc import Sequence

SYSLOG_SOCKET: Final = "/dev/log"
SYSLOG_PORT: Final = 601
"""The port of syslog over TCP (RFC 3195, and usual for RFC 6587)."""
SYSLOG_SECONDS: Final = 5.0
PRIORITY: Final = 13 * 8 + 5
"""Facility `log audit` and severity `notice` (RFC 5424, section 6.2.1)."""
NAME: Final = "overspill-service"


class PartlyWritten(OSError):
    """The first `count` lines are there, and not all of the others."""

    def __init__(self, message: str, count: int) -> None:
        super().__init__(message)
        self.count: int = count


class Output(Protocol):
    """Takes whole lines. Called in a thread, never twice at once."""

    def write(self, lines: Sequence[bytes]) -> None:
        """Write the lines, each with its newline.

        Raises `PartlyWritten` if it is known which are there, else `OSError` if they may not all be there.
        """

    def close(self) -> None:
        """Release what is open."""


def open_output(text: str) -> Output:
    """Return the output that a setting names: a path, `syslog:` or `syslog://host:port`.

    Raises `ValueError`, and `OSError` if nothing can be written to the file.
    """
    if not text.startswith("syslog:"):
        file = FileOutput(Path(text))
        file.write([])
        return file
    url = urlsplit(text)
    if url.netloc:
        if not url.hostname or url.path or url.query or url.username:
            raise ValueError(f"{text!r}: write syslog://host:port")
        return SyslogStream(url.hostname, url.port or SYSLOG_PORT)
    return SyslogSocket(url.path or SYSLOG_SOCKET)


class FileOutput:
    """A file for this user only, opened for each batch: whoever rotates it needs to signal nobody.

    Lines of several processes never mix: each batch is one write with `O_APPEND`. A batch of any process that
    a full disk has cut short spoils no line of another: the next one begins a new line.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._is_torn = False
        """The last write of this process to a pipe did not end."""

    def write(self, lines: Sequence[bytes]) -> None:
        make_private_folder(self._path.parent)
        # Nothing would ever come out of a pipe that its writer has open to read too.
        access = os.O_RDWR if self._path.is_file() else os.O_WRONLY
        flags = access | os.O_APPEND | os.O_CREAT | os.O_NONBLOCK
        descriptor = os.open(self._path, flags, FILE)
        try:
            is_torn = _ends_within_line(descriptor) if access == os.O_RDWR else self._is_torn
            self._append(descriptor, [b"\n", *lines] if is_torn and lines else lines)
        finally:
            os.close(descriptor)

    def close(self) -> None:
        pass

    def _append(self, descriptor: int, parts: Sequence[bytes]) -> None:
        data = b"".join(parts)
        written = os.write(descriptor, data)
        self._is_torn = 0 < written < len(data) or (self._is_torn and not written)
        if written < len(data):
            message = f"only {written} of {len(data)} bytes could be written"
            raise PartlyWritten(message, data[:written].removeprefix(b"\n").count(b"\n"))


def _ends_within_line(descriptor: int) -> bool:
    size = os.lseek(descriptor, 0, os.SEEK_END)
    if not size:
        return False
    os.lseek(descriptor, size - 1, os.SEEK_SET)  # where is written is the end all the same
    return os.read(descriptor, 1) != b"\n"


def syslog_message(line: bytes) -> bytes:
    """Return a line as a message of RFC 5424, without the newline."""
    at = datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
    host = socket.gethostname()[:255] or "-"
    head = f"<{PRIORITY}>1 {at} {host} {NAME} {os.getpid()} audit - "
    return head.encode("ascii", "replace") + line.rstrip(b"\n")


def local_message(line: bytes) -> bytes:
    """Return a line as syslog(3) sends it to the daemon of this machine, without the newline."""
    month_to_second = time.asctime()[4:19]
    return f"<{PRIORITY}>{month_to_second} {NAME}[{os.getpid()}]: ".encode("ascii") + line.rstrip(b"\n")


class SyslogSocket:
    """The syslog daemon of this machine: one datagram for each line."""

    def __init__(self, path: str) -> None:
        self._path = path

    def write(self, lines: Sequence[bytes]) -> None:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as daemon:
            daemon.settimeout(SYSLOG_SECONDS)
            daemon.connect(self._path)
            for count, line in enumerate(lines):
                try:
                    daemon.send(local_message(line))
                except OSError as error:
                    raise PartlyWritten(str(error), count) from error

    def close(self) -> None:
        pass


class SyslogStream:
    """A syslog server over TCP, with each message behind its length (RFC 6587, section 3.4.1)."""

    def __init__(self, host: str, port: int) -> None:
        self._address = host, port
        self._connection: socket.socket | None = None

    def write(self, lines: Sequence[bytes]) -> None:
        if self._connection is not None and _has_ended(self._connection):
            self.close()
        if self._connection is None:
            self._connection = socket.create_connection(self._address, timeout=SYSLOG_SECONDS)
        messages = [syslog_message(line) for line in lines]
        try:
            self._connection.sendall(b"".join(b"%d %s" % (len(each), each) for each in messages))
        except OSError:
            self.close()
            raise

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
        self._connection = None


def _has_ended(connection: socket.socket) -> bool:
    """Return whether the other side has closed the connection: it never sends anything."""
    connection.setblocking(False)
    try:
        return connection.recv(1) == b""
    except BlockingIOError:
        return False
    except OSError:
        return True
    finally:
        connection.settimeout(SYSLOG_SECONDS)
