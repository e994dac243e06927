"""The metric values of several processes, in shared memory. Any process can add them up.

Each worker writes to a memory of its own, made by the supervisor: there is no file that may be removed, and
no disk that may be full. A worker that replaces another one continues its memory. Memory is reserved before
it is used. A value without memory is counted by its process alone, and fails no request.

    0   8 bytes: bytes in use
    8   entries: 8 bytes: length of the key, the key padded to 8, 8 bytes: the value (IEEE 754)

A key is a JSON list: type, mode, name of the metric, name, labels, help.
"""

from __future__ import annotations

import json
import logging
import mmap
import os
import struct
import tempfile
import threading
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple

from prometheus_client.metrics_core import Metric
from prometheus_client.multiprocess import MultiProcessCollector

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

VARIABLE: Final = "OVERSPILL_FIGURES"
"""How a worker finds its memory: its number, a colon, and the descriptors of all memories with commas."""
FIRST_SIZE: Final = 64 * 1024
MAX_SIZE: Final = 64 * 2**20
"""Bytes of one memory, at most: about 300,000 values."""
HEADER_SIZE: Final = 8
_INTEGER: Final = struct.Struct("=q")
_VALUE: Final = struct.Struct("=d")

log = logging.getLogger(__name__)


def new_memory() -> int:
    """Return a descriptor of empty memory that other processes may inherit."""
    if hasattr(os, "memfd_create"):
        return os.memfd_create("overspill-figures", os.MFD_CLOEXEC)
    with tempfile.TemporaryFile(prefix="overspill-figures") as file:  # where there is no such memory
        return os.dup(file.fileno())


class SharedMemories(NamedTuple):
    """The descriptors of all memories, and which one is the worker's own."""

    own: int
    descriptors: Sequence[int]

    @classmethod
    def of(cls, text: str) -> SharedMemories:
        own, _, descriptors = text.partition(":")
        return cls(int(own), [int(each) for each in descriptors.split(",")])

    def __str__(self) -> str:
        return f"{self.own}:{','.join(map(str, self.descriptors))}"


class SharedValues:
    """The values of one process, for that process to write."""

    def __init__(self, descriptor: int) -> None:
        """Continue with the present values, but set gauges to 0: they described a process that has ended."""
        self._descriptor = descriptor
        self.lock = threading.Lock()
        self._positions: dict[str, int] = {}
        self._map: mmap.mmap | None = None
        self._used = HEADER_SIZE
        self._has_warned = False
        for key, _, position in entries(descriptor):
            self._positions[key] = position
            self._used = position + _VALUE.size
        if self._reserve(max(FIRST_SIZE, os.fstat(descriptor).st_size)):
            for key, position in self._positions.items():
                if json.loads(key)[0] == "gauge":
                    self.write(position, 0.0)

    def position(self, key: str) -> int | None:
        """Return where the value of a key is kept, None if there is no memory for it."""
        if key not in self._positions:
            position = self._append(key)
            if position is None:
                return None
            self._positions[key] = position
        return self._positions[key]

    def read(self, position: int) -> float:
        assert self._map is not None
        value: float = _VALUE.unpack_from(self._map, position)[0]
        return value

    def write(self, position: int, value: float) -> None:
        assert self._map is not None
        self._map[position : position + _VALUE.size] = _VALUE.pack(value)

    def _append(self, key: str) -> int | None:
        encoded = key.encode()
        padded = encoded + b" " * (-len(encoded) % HEADER_SIZE)
        entry = _INTEGER.pack(len(padded)) + padded + _VALUE.pack(0.0)
        size = len(self._map) if self._map is not None else 0
        while size < self._used + len(entry):
            size = max(FIRST_SIZE, size * 2)
        if (self._map is None or size > len(self._map)) and not self._reserve(size):
            return None
        assert self._map is not None
        start, self._used = self._used, self._used + len(entry)
        self._map[start : self._used] = entry
        self._map[:HEADER_SIZE] = _INTEGER.pack(
            self._used
        )  # written last: a concurrent reader sees whole entries only
        return self._used - _VALUE.size

    def _reserve(self, size: int) -> bool:
        """Reserve memory, and return whether that succeeded.

        Writing to an unreserved page may end the process.
        """
        if size > MAX_SIZE:
            self._warn_once(f"{MAX_SIZE} bytes are the limit")
            return False
        try:
            if hasattr(os, "posix_fallocate"):  # a sparse file would fail at the first write, with SIGBUS
                os.posix_fallocate(self._descriptor, 0, size)
            else:
                os.truncate(self._descriptor, size)
            self._map = mmap.mmap(self._descriptor, size)
        except (OSError, MemoryError) as error:
            self._warn_once(str(error))
            return False
        return True

    def _warn_once(self, reason: str) -> None:
        if not self._has_warned:
            log.warning("there is no memory for more figures, they are incomplete from now on: %s", reason)
        self._has_warned = True


def entries(descriptor: int) -> Iterator[tuple[str, float, int]]:
    """Yield keys and values of a memory, and where the values are."""
    data = os.pread(descriptor, os.fstat(descriptor).st_size, 0)
    used = _INTEGER.unpack_from(data)[0] if len(data) >= HEADER_SIZE else 0
    position = HEADER_SIZE
    while position < used:
        start = position + _INTEGER.size
        end = start + _INTEGER.unpack_from(data, position)[0]
        yield data[start:end].decode().rstrip(" "), _VALUE.unpack_from(data, end)[0], end
        position = end + _VALUE.size


class SharedValue:
    """One value, with the interface of `prometheus_client.values`. Subclasses set the memory."""

    memory: ClassVar[SharedValues]
    _multiprocess = True

    def __init__(
        self,
        typ: str,
        metric_name: str,
        name: str,
        labelnames: Sequence[str],
        labelvalues: Sequence[str],
        help_text: str,
        multiprocess_mode: str = "",
        **_: Any,
    ) -> None:
        labels = dict(zip(labelnames, labelvalues, strict=True))
        key = json.dumps([typ, multiprocess_mode, metric_name, name, labels, help_text], sort_keys=True)
        with self.memory.lock:
            self._position = self.memory.position(key)
            self._value = 0.0 if self._position is None else self.memory.read(self._position)

    def inc(self, amount: float) -> None:
        with self.memory.lock:
            self._keep(self._value + amount)

    def set(self, value: float, timestamp: float | None = None) -> None:  # noqa: ARG002  (the library's)
        with self.memory.lock:
            self._keep(value)

    def get(self) -> float:
        return self._value

    def set_exemplar(self, exemplar: object) -> None:
        """Do nothing: sums of several processes have no exemplars, and a memory holds numbers alone."""

    def get_exemplar(self) -> None:
        return None

    def _keep(self, value: float) -> None:
        self._value = value
        if self._position is not None:
            self.memory.write(self._position, value)


def value_class(values: SharedValues) -> type[SharedValue]:
    """Return the class for `prometheus_client` that keeps its values in this memory."""
    return type("SharedValue", (SharedValue,), {"memory": values})


class SumCollector(MultiProcessCollector):
    """A collector that adds up the values of all processes."""

    def __init__(self, descriptors: Iterable[int]) -> None:
        self._descriptors = list(descriptors)

    def collect(self) -> Iterable[Metric]:
        metrics: dict[str, Any] = {}
        for number, descriptor in enumerate(self._descriptors):
            for key, value, _ in entries(descriptor):
                kind, mode, metric_name, name, labels, text = json.loads(key)
                metric = metrics.setdefault(metric_name, Metric(metric_name, text, kind))
                metric._multiprocess_mode = mode  # noqa: SLF001  (how the library hands it over)
                own = (("pid", str(number)),) if kind == "gauge" else ()
                metric.add_sample(name, (*sorted(labels.items()), *own), value)
        added: Iterable[Metric] = self._accumulate_metrics(metrics, accumulate=True)  # type: ignore[no-untyped-call]
        return added
