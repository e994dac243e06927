"""Texts of many kinds, as tools return them: made of random data, prose, and sources."""

from __future__ import annotations

import base64
import inspect
import json
import random
import string
import subprocess
import sys
import tomllib
import uuid
from datetime import UTC, datetime, timedelta
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

SIZE: Final = 20_000
WORDS: Final = (
    "connection",
    "request",
    "user",
    "cache",
    "worker",
    "database",
    "timeout",
    "retry",
    "failed",
    "started",
    "stopped",
    "upload",
    "queue",
    "session",
    "token",
    "index",
    "response",
    "payload",
)
PROSE: Final = tomllib.loads((Path(__file__).parent / "prose.toml").read_text("utf-8"))
RNG: Final = random.Random(16)
LETTERS: Final = string.ascii_letters + string.digits


def lines(make: Callable[[], str]) -> str:
    """Lines of `make`, about `SIZE` characters together."""
    made, size = [], 0
    while size < SIZE:
        made.append(make() + "\n")
        size += len(made[-1])
    return "".join(made)


def run(characters: str, count: int = SIZE) -> str:
    return "".join(RNG.choices(characters, k=count))


def hexadecimal(count: int) -> str:
    return RNG.randbytes(count).hex()


def words(count: int) -> str:
    return " ".join(RNG.choices(WORDS, k=count))


def when() -> datetime:
    return datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=RNG.random() * 1e7)


def record() -> dict[str, object]:
    return {
        "id": RNG.randrange(10**6),
        "name": words(2),
        "email": f"{RNG.choice(WORDS)}{RNG.randrange(99)}@example.com",
        "active": RNG.random() < 0.5,
        "balance": round(RNG.random() * 1e4, 2),
        "tags": RNG.choices(WORDS, k=3),
    }


def frame() -> str:
    name = RNG.choice(WORDS)
    return f'  File "/usr/lib/python3/site-packages/app/{name}.py", line {RNG.randrange(900)}, in {name}_all'


def mode_line() -> str:
    name = f"lib{RNG.choice(WORDS)}.so.{RNG.randrange(9)}"
    return f"-rw-r--r-- 1 root root {RNG.randrange(10**6):8} {when():%b %d %H:%M} {name}"


def program(*arguments: str) -> str:
    result = subprocess.run(arguments, capture_output=True, check=True, timeout=60)
    return result.stdout.decode(errors="replace")[:SIZE]


def uuids() -> str:
    return str(uuid.UUID(bytes=RNG.randbytes(16)))


def dump() -> str:
    return f"{RNG.randrange(2**32):08x}  {RNG.randbytes(16).hex(' ')}  |{words(1)[:6]:.<16}|"


def bundle() -> str:
    a, b, c = RNG.choices(string.ascii_lowercase, k=3)
    name = RNG.choice(WORDS)
    return f"function {a}({b},{c}){{return {b}.{name}&&!{c}[{RNG.randrange(9)}]?{b}.{name}({c}):void 0}};"


DATA: Final = {
    "base64": base64.encodebytes(RNG.randbytes(SIZE)).decode(),
    "base64_one_line": base64.b64encode(RNG.randbytes(SIZE)).decode(),
    "base32": base64.b32encode(RNG.randbytes(SIZE)).decode(),
    "base85": base64.b85encode(RNG.randbytes(SIZE)).decode(),
    "jwt": lines(
        lambda: f"eyJhbGciOi.{base64.urlsafe_b64encode(RNG.randbytes(90)).decode()}.{run(LETTERS, 43)}"
    ),
    "hex": hexadecimal(SIZE),
    "hex_upper": hexadecimal(SIZE).upper(),
    "hex_bytes": RNG.randbytes(SIZE // 2).hex(" "),
    "hexdump": lines(dump),
    "sha256": lines(lambda: f"{hexadecimal(32)}  dist/{RNG.choice(WORDS)}.tar.gz"),
    "md5": lines(lambda: hexadecimal(16)),
    "git_log": lines(lambda: f"{hexadecimal(4)[:7]} {words(5)}"),
    "uuid": lines(uuids),
    "uuid_json": json.dumps([uuids() for _ in range(500)]),
    "digits": run(string.digits),
    "binary_digits": run("01"),
    "csv_floats": lines(lambda: ",".join(f"{RNG.gauss(0, 100):.6f}" for _ in range(8))),
    "csv_integers": lines(lambda: ",".join(str(RNG.randrange(10 ** RNG.randint(1, 9))) for _ in range(8))),
    "csv_small": lines(lambda: ",".join(str(RNG.randrange(100)) for _ in range(20))),
    "json_floats": json.dumps([[RNG.random() for _ in range(6)] for _ in range(170)]),
    "json_integers": json.dumps([RNG.randrange(10**6) for _ in range(2_500)]),
    "timestamps": lines(lambda: when().isoformat()),
    "ip": lines(lambda: ".".join(str(RNG.randrange(256)) for _ in range(4))),
    "mac": lines(lambda: RNG.randbytes(6).hex(":")),
    "ls": lines(mode_line),
    "dna": run("ACGT"),
    "random_lower": run(string.ascii_lowercase),
    "random_upper": run(string.ascii_uppercase),
    "random_letters": lines(lambda: run(LETTERS, 40)),
    "passwords": lines(lambda: run(string.printable[:94], 16)),
    "punctuation": run(string.punctuation),
    "control": run("".join(map(chr, (*range(1, 9), *range(14, 32))))),
    "url_encoded": lines(lambda: "".join(f"%{byte:02X}" for byte in RNG.randbytes(30))),
    "minified_js": lines(bundle).replace("\n", ""),
    "stack_trace": lines(frame),
    "java_trace": lines(
        lambda: f"\tat org.example.{words(1)}.{words(1).title()}(App.java:{RNG.randrange(999)})"
    ),
    "emoji": "".join(chr(RNG.randrange(0x1F300, 0x1F650)) for _ in range(4_000)),
    "emoji_text": lines(lambda: f"{RNG.choice('✅❌🚀🔥📦')} {words(3)} {RNG.choice('😀😂🙏👍')}"),
    "box_drawing": lines(lambda: f"├── {words(1)}-{words(1)}@{RNG.randrange(9)}.{RNG.randrange(30)}.1"),
    "random_chinese": "".join(chr(RNG.randrange(0x4E00, 0x9FA5)) for _ in range(5_000)),
    "random_hangul": "".join(chr(RNG.randrange(0xAC00, 0xD7A4)) for _ in range(5_000)),
    "random_cyrillic": "".join(chr(RNG.randrange(0x430, 0x450)) for _ in range(5_000)),
    "random_latin": "".join(chr(RNG.randrange(0xA1, 0x100)) for _ in range(5_000)),
    "random_astral": "".join(chr(RNG.randrange(0x10000, 0x20000)) for _ in range(3_000)),
    "private_use": "".join(chr(RNG.randrange(0xE000, 0xF900)) for _ in range(3_000)),
    "spaces": " " * SIZE,
    "one_letter": "a" * SIZE,
    "replaced": "\ufffd" * 3_000,
}
"""Data, of which a limit must hold too."""

_SOURCES: Final = [
    Path(inspect.getfile(import_module(name))).read_text("utf-8")
    for name in ("msgspec._json_schema", "click.core", "pydantic.main", "prometheus_client.registry", "uuid")
]
"""Of locked packages but for the last, so that they are the same under every Python."""
LICENSE: Final = (Path(__file__).parents[2] / "LICENSE").read_text("utf-8")
SERVICE: Final = (Path(__file__).parents[2] / "service" / "README.md").read_text("utf-8")

USUAL: Final = {
    "english_license": LICENSE,
    "english_manual": str(inspect.getdoc(subprocess))
    + str(inspect.getdoc(subprocess.Popen))
    + SERVICE[:6_000],
    **{f"code_{at}": source[:SIZE] for at, source in enumerate(_SOURCES)},
    "log": lines(
        lambda: (
            f"{when():%Y-%m-%d %H:%M:%S} {RNG.choice(['INFO', 'ERROR'])} app.{words(1)}: {words(6)} "
            f"id={RNG.randrange(10**5)} took {RNG.randrange(999)} ms"
        )
    ),
    "log_access": lines(
        lambda: (
            f'10.0.{RNG.randrange(255)}.7 - - [{when():%d/%b/%Y:%H:%M:%S} +0000] "GET /api/{words(1)}/'
            f'{RNG.randrange(9999)} HTTP/1.1" 200 {RNG.randrange(10**5)} "-" "curl/8.5.0"'
        )
    ),
    "log_syslog": lines(
        lambda: (
            f"{when():%b %d %H:%M:%S} host-{RNG.randrange(9)} systemd[{RNG.randrange(10**5)}]: "
            f"Started {words(2)}."
        )
    ),
    "json_pretty": json.dumps([record() for _ in range(90)], indent=2),
    "json_compact": json.dumps([record() for _ in range(140)], separators=(",", ":")),
    **{name: PROSE[name] * 20 for name in ("chinese", "japanese", "korean")},
}
"""What people and models read most, of which the estimate for display must be near."""

ALL: Final = {
    **DATA,
    **USUAL,
    **{name: text * 20 for name, text in PROSE.items()},
    "python": sys.version * 100,
}
