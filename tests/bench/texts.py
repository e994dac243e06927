"""Seven kinds of text that tools put out, made from a seed: the same bytes on every machine.

Words, and what is said with them, follow Zipf's law: most of what is frequent is near, and some of what is
rare comes again far away, where only a compressor with a wide window sees it. Blocks repeat after 8 MiB, four
times zstd's window at the level that is measured, so that none sees that.
"""

from __future__ import annotations

import json
import random
from functools import cache
from itertools import accumulate, count, cycle, islice
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

T = TypeVar("T")

MB: Final = 1_000_000
BLOCK: Final = 8 * 2**20

CONSONANTS: Final = ("b", "c", "d", "f", "g", "l", "m", "n", "p", "r", "s", "t", "v", "st", "tr", "pl", "ch")
VOWELS: Final = ("a", "e", "i", "o", "u", "ai", "ea", "io")
LEVELS: Final = ("INFO ",) * 16 + ("DEBUG",) * 6 + ("WARN ",) * 2 + ("ERROR",)
EVENTS: Final = (
    "request {hex} from {ip} took {n} ms",
    "cache miss for {word}:{customer}, loaded in {n} ms",
    "order {id} of customer {customer} is {word}",
    "GET /v1/{word}/{id} 200 {n} bytes for {customer} trace={hex}",
    "retry {digit} of 5 after a timeout of {word}-{digit}.internal",
    "failed to reach {word}: connection refused ({ip}:{n})",
    "{word}: exception in handler {hex}",
)
STATEMENTS: Final = (
    "def {0}_{1}(self, {2}: {3}) -> {4}:",
    "return self._{0}.{1}({2}, {3}={4})",
    "from {0}.{1} import {2}, {3}_{4}",
    "if {0} is None or {1}.{2} > {3}.{4}:",
    'raise {0}Error(f"{1} {2} {3}: {4}")',
    "for {0} in {1}.{2}({3}, {4}):",
    "self.{0} = {1}({2}={3}, {4}=None)",
)
RARE: Final = "Out of memory: killed process {id} ({word})"
SELDOM: Final = 60_000
"""Lines of a log between two of what is rare."""
FOLDERS: Final = ("src", "lib", "dist", "test", "tests", "core", "api", "types", "internal", "fixtures")


class Zipf(Generic[T]):
    """Draws of things, the n-th most frequent with a probability in proportion to 1/n."""

    def __init__(self, rng: random.Random, things: Sequence[T]) -> None:
        self._rng, self._things = rng, things
        self._weights = list(accumulate(1 / rank for rank in range(1, len(things) + 1)))

    def one(self) -> T:
        return self.some(1)[0]

    def some(self, count: int) -> list[T]:
        return self._rng.choices(self._things, cum_weights=self._weights, k=count)


def latin(rng: random.Random, size: int) -> Zipf[str]:
    """Words like `strealo`; the frequent ones are short."""
    words: dict[str, None] = {}
    while len(words) < size:
        syllables = 1 + min(len(words) // 50, 1) + rng.randrange(2)
        words["".join(rng.choice(CONSONANTS) + rng.choice(VOWELS) for _ in range(syllables))] = None
    return Zipf(rng, list(words))


def phrases(rng: random.Random, words: Zipf[str], size: int, longest: int, joint: str = " ") -> Zipf[str]:
    """What is said again and again."""
    return Zipf(rng, [joint.join(words.some(rng.randrange(1, longest))) for _ in range(size)])


def service_log(rng: random.Random) -> Iterator[str]:
    words, clock = latin(rng, 2_000), 0
    callers = Zipf(
        rng, [f"10.{rng.randrange(8)}.{rng.randrange(256)}.{rng.randrange(256)}" for _ in range(20_000)]
    )
    customers = Zipf(rng, [f"{rng.getrandbits(64):016x}" for _ in range(40_000)])
    for number in count(1):
        clock += rng.randrange(40)
        time = f"{clock // 3_600_000 % 24:02}:{clock // 60_000 % 60:02}:{clock // 1000 % 60:02}"
        event = EVENTS[min(rng.randrange(7), rng.randrange(7))] if number % SELDOM else RARE
        event = event.format(
            word=words.one(),
            hex=f"{rng.getrandbits(64):016x}",
            ip=callers.one(),
            id=rng.randrange(1_000_000),
            customer=customers.one(),
            n=int(rng.paretovariate(1.2) * 20),
            digit=rng.randrange(10),
        )
        level, worker = rng.choice(LEVELS), rng.randrange(16)
        yield f"2026-11-21T{time}.{clock % 1000:03}Z {level} worker-{worker} {event}\n"


def folders(rng: random.Random) -> Iterator[tuple[str, list[str]]]:
    """Folders of one source tree after the other, each with the stems of its files."""
    words = latin(rng, 4_000)
    stems = phrases(rng, words, 20_000, 4, "_")
    while True:
        package = f"./packages/{'-'.join(words.some(2))}"
        for _ in range(1 + rng.randrange(12)):
            inner = "/".join((rng.choice(FOLDERS), *words.some(rng.randrange(3))))
            yield f"{package}/{inner}", sorted({*stems.some(2 + rng.randrange(14)), "index"})


def grep_output(rng: random.Random) -> Iterator[str]:
    words = latin(rng, 6_000)
    usual = Zipf(rng, [rng.choice(STATEMENTS).format(*words.some(5)) for _ in range(30_000)])
    for folder, stems in folders(rng):
        for stem in stems:
            line = 0
            for _ in range(1 + rng.randrange(20)):
                line += 1 + rng.randrange(40)
                is_usual = rng.random() < 0.4
                statement = usual.one() if is_usual else rng.choice(STATEMENTS).format(*words.some(5))
                yield f"{folder}/{stem}.py:{line}:{'    ' * rng.randrange(4)}{statement}\n"


def records(rng: random.Random) -> Iterator[dict[str, Any]]:
    """The items of an API's answer."""
    words = latin(rng, 8_000)
    sentences = phrases(rng, words, 20_000, 12)
    logins = phrases(rng, words, 5_000, 3, "-")
    labels = phrases(rng, words, 200, 3)
    repositories = phrases(rng, words, 1_000, 3, "/")
    while True:
        login, number = logins.one(), rng.randrange(10**5)
        day = f"2026-{rng.randrange(1, 13):02}-{rng.randrange(1, 29):02}"
        yield {
            "id": rng.randrange(10**9),
            "url": f"https://api.example.com/repos/{repositories.one()}/issues/{number}",
            "number": number,
            "title": " ".join(words.some(rng.randrange(3, 9))),
            "state": rng.choice(("open", "open", "closed", "merged")),
            "user": {"login": login, "url": f"https://api.example.com/users/{login}", "site_admin": False},
            "labels": [
                {"name": name, "color": "ededed", "default": False} for name in labels.some(rng.randrange(4))
            ],
            "body": ". ".join((*sentences.some(rng.randrange(2)), " ".join(words.some(rng.randrange(40))))),
            "score": round(rng.random() * 100, 3),
            "created_at": f"{day}T{rng.randrange(24):02}:00:00Z",
            "closed_at": None,
        }


def pretty_json(rng: random.Random) -> Iterator[str]:
    for record in records(rng):
        text = json.dumps(record, indent=4)
        yield "".join(f"    {line}\n" for line in f"{text},".split("\n"))


def minified_json(rng: random.Random) -> Iterator[str]:
    return (json.dumps(record, separators=(",", ":")) + "," for record in records(rng))


def paths(rng: random.Random) -> Iterator[str]:
    for folder, stems in folders(rng):
        yield "".join(f"{folder}/{stem}.py\n" for stem in stems)
        yield "".join(f"{folder}/__pycache__/{stem}.cpython-311.pyc\n" for stem in stems)


def pytest_output(rng: random.Random) -> Iterator[str]:
    words = latin(rng, 3_000)
    names = phrases(rng, words, 30_000, 7, "_")
    for folder, stems in folders(rng):
        for stem in stems:
            group = words.one().capitalize()
            for _ in range(2 + rng.randrange(10)):
                is_usual = rng.random() < 0.4
                name = names.one() if is_usual else "_".join(words.some(rng.randrange(1, 7)))
                case = f"[{'-'.join(words.some(2))}]" * rng.randrange(2)
                outcome = rng.choice(("PASSED",) * 30 + ("SKIPPED", "FAILED"))
                test = f"{folder[2:]}/test_{stem}.py::Test{group}::test_{name}{case} {outcome}"
                yield f"{test:<110} [{rng.randrange(101):3}%]\n"


def cjk_prose(rng: random.Random) -> Iterator[str]:
    characters = Zipf(rng, [chr(0x4E00 + rng.randrange(0x51A5)) for _ in range(3_000)])
    words = Zipf(rng, ["".join(characters.some(rng.randrange(1, 4))) for _ in range(30_000)])
    clauses = phrases(rng, words, 30_000, 5, "")
    while True:
        said = (
            "".join(words.some(1 + rng.randrange(5))) + clauses.one() for _ in range(3 + rng.randrange(12))
        )
        yield "、".join(said) + "。\n"


KINDS: Final[dict[str, Callable[[random.Random], Iterator[str]]]] = {
    "service log": service_log,
    "grep -rn output": grep_output,
    "pretty JSON": pretty_json,
    "minified one-line JSON": minified_json,
    "paths": paths,
    "pytest -v": pytest_output,
    "CJK prose": cjk_prose,
}
LOG: Final = "service log"


@cache
def block(kind: str, size: int) -> bytes:
    """At least `size` bytes of a kind, whole lines or records."""
    pieces: list[bytes] = []
    length = 0
    for piece in KINDS[kind](random.Random(kind)):
        pieces.append(piece.encode())
        length += len(pieces[-1])
        if length >= size:
            break
    return b"".join(pieces)


def blocks(kind: str, size: int) -> Iterator[bytes]:
    """Blocks that together have `size` bytes."""
    whole = block(kind, min(size, BLOCK))
    full, rest = divmod(size, len(whole))
    yield from islice(cycle([whole]), full)
    if rest:
        yield whole[:rest]


def text(kind: str, size: int) -> bytes:
    """`size` bytes of a kind."""
    return b"".join(blocks(kind, size))
