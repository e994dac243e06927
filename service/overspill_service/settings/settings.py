"""Settings: read once at start from flags, environment and file, frozen, and refused by name when wrong.

A flag wins over the environment (`OVERSPILL_` + the name in capitals), which wins over the file (TOML,
`--config` or `OVERSPILL_CONFIG`), which wins over the default. A variable that is no setting is no error,
since others set variables too; `unknown_variables` names those that may be a mistake.
"""

from __future__ import annotations

import difflib
import ipaddress
import math
import os
import re
import sys
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, get_args, get_origin, get_type_hints

import msgspec
from msgspec import Meta, Struct, field
from overspill.wire import DEFAULT_TTL

from overspill_service.settings.units import BYTES, FORMS, SECONDS, metas, number, shown, unit_of

if TYPE_CHECKING:
    from collections.abc import Mapping

PREFIX = "OVERSPILL_"
FOREIGN: Final = re.compile(
    r"OVERSPILL_(CONFIG|URL|KEY|SESSION|SPOOL(_\w+)?|EXIT_SECONDS"  # the settings file; the client's own
    r"|(\w+_)?(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?))"
)
"""Variables that are neither settings nor mistakes. The second line is what Kubernetes makes of a Service."""
SERVICE_LINK: Final = re.compile(r"OVERSPILL_(\w+_)?PORT=(tcp|udp|sctp)://.*")
SIMILAR: Final = 0.7
"""How alike a name must be to be suggested, from 0 to 1."""


class SettingError(Exception):
    """A setting that cannot be used; the message names it and where it came from."""


def data_directory() -> Path:
    """Where the embedded back ends live when nobody says: the user's data directory.

    Raises `SettingError` for a user that has none.
    """
    try:
        return _data_directory()
    except RuntimeError as error:
        raise SettingError(
            "data: this user has no home directory and HOME is not set; name a folder with --data or "
            "OVERSPILL_DATA"
        ) from error


def _data_directory() -> Path:
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support" / "overspill"
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", Path.home() / "AppData" / "Local")) / "overspill"
    return Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share") / "overspill"


class Settings(Struct, frozen=True, kw_only=True):
    listen: Annotated[str, Meta(description="HOST:PORT to listen on; port 0 picks a free one")] = (
        "127.0.0.1:8750"
    )
    store: Annotated[
        str,
        Meta(
            description="s3://bucket/prefix?endpoint=…, file:///folder or memory: (empty: a folder in `data`)"
        ),
    ] = ""
    catalog: Annotated[
        str,
        Meta(description="redis://…, rediss://…, redis+sentinel://…, redis+cluster://… or sqlite:///file"),
    ] = "sqlite:"
    data: Annotated[Path, Meta(description="directory of the embedded store and catalog")] = field(
        default_factory=data_directory
    )
    workers: Annotated[int, Meta(ge=1, le=256, description="processes that share the port")] = 1
    tenants: Annotated[Path | None, Meta(description="TOML file of tenants and key hashes")] = None
    anonymous: Annotated[
        bool,
        Meta(
            description="serve without keys on other than loopback, as one tenant (everyone sees everything)"
        ),
    ] = False
    key_secret: Annotated[
        str, Meta(description="secret that keys are hashed with; the same on every replica")
    ] = ""
    previous_key_secret: Annotated[
        str, Meta(description="former secret, whose keys stay valid while clients get new ones")
    ] = ""
    private_metrics: Annotated[bool, Meta(description="/metrics needs a key with scope admin")] = False
    level: Annotated[int, Meta(ge=1, le=19, description="zstd level of stored frames")] = 3
    max_capture_size: Annotated[int, Meta(ge=1, description="bytes of one capture, at most", extra=BYTES)] = (
        10 * 2**30
    )
    max_stored_size: Annotated[
        int, Meta(ge=0, description="stored bytes of a tenant, at most (0: no limit)", extra=BYTES)
    ] = 0
    max_captures: Annotated[int, Meta(ge=0, description="captures of a tenant, at most (0: no limit)")] = 0
    default_ttl: Annotated[
        int, Meta(ge=1, description="retention in seconds where the client names none", extra=SECONDS)
    ] = DEFAULT_TTL
    max_ttl: Annotated[int, Meta(ge=1, description="longest retention in seconds", extra=SECONDS)] = (
        90 * 24 * 3600
    )
    max_uploads: Annotated[int, Meta(ge=1, description="uploads at once in one process")] = 64
    answer_lines: Annotated[int, Meta(ge=1, description="lines of one bounded read, at most")] = 1000
    answer_bytes: Annotated[
        int, Meta(ge=256, description="bytes of one bounded read, at most", extra=BYTES)
    ] = 64 * 1024
    scan_seconds: Annotated[
        float, Meta(gt=0, description="seconds that one grep or summary may scan", extra=SECONDS)
    ] = 10.0
    idle_timeout: Annotated[
        float, Meta(gt=0, description="seconds to wait for the next bytes of an upload", extra=SECONDS)
    ] = 60.0
    write_timeout: Annotated[
        float,
        Meta(gt=0, description="seconds that the client of a read may take no byte of it", extra=SECONDS),
    ] = 60.0
    memory: Annotated[
        int,
        Meta(
            ge=0,
            description="bytes that uploads and reads of one process may hold at once (0: by what there is)",
            extra=BYTES,
        ),
    ] = 0
    sweep_interval: Annotated[
        float, Meta(ge=0, description="seconds between sweeps (0: never)", extra=SECONDS)
    ] = 300.0
    orphan_age: Annotated[
        float,
        Meta(
            ge=0,
            description="seconds after its last segment at which an unfinished upload is an orphan; "
            "an hour at least while serving",
            extra=SECONDS,
        ),
    ] = 24 * 3600.0
    drain_delay: Annotated[
        float,
        Meta(
            ge=0,
            description="seconds that a stop goes on taking connections while /readyz says no",
            extra=SECONDS,
        ),
    ] = 0.0
    grace: Annotated[
        float, Meta(ge=0, description="seconds that a stop waits for requests in flight", extra=SECONDS)
    ] = 30.0
    log_level: Annotated[
        Literal["debug", "info", "warning", "error"], Meta(description="least level that is logged")
    ] = "info"
    log_format: Annotated[Literal["text", "json"], Meta(description="text for people, json for machines")] = (
        "text"
    )

    @property
    def address(self) -> tuple[str, int]:
        """Host and port of `listen`."""
        return parse_address(self.listen)

    @property
    def key_secrets(self) -> tuple[str, ...]:
        """The secrets that a valid key may be hashed with, the present one first."""
        return (self.key_secret, self.previous_key_secret) if self.previous_key_secret else (self.key_secret,)

    @property
    def is_loopback(self) -> bool:
        host = self.address[0]
        if host == "localhost":
            return True
        try:
            return ipaddress.ip_address(host).is_loopback
        except ValueError:
            return False


def parse_address(text: str) -> tuple[str, int]:
    """Host and port of `HOST:PORT` or `[IPv6]:PORT`. Raises `ValueError`."""
    host, colon, port = text.rpartition(":")
    if not (colon and host and port.isascii() and port.isdigit() and int(port) < 2**16):
        raise ValueError(f"{text!r} is not HOST:PORT")
    return host.removeprefix("[").removesuffix("]"), int(port)


def load(flags: Mapping[str, str], environ: Mapping[str, str]) -> Settings:
    """The settings in force. Raises `SettingError`, naming the first wrong one and its source."""
    config = flags.get("config") or environ.get(PREFIX + "CONFIG")
    known = frozenset(Settings.__struct_fields__)
    values: dict[str, tuple[Any, str]] = {}
    for name, value in (_read_file(Path(config)) if config else {}).items():
        if name not in known:
            raise SettingError(f"{name} in {config} is no setting; settings are {', '.join(sorted(known))}")
        values[name] = value, f"{name} in {config}"
    for name in known:
        variable = PREFIX + name.upper()
        if text := environ.get(variable):
            values[name] = text, variable
    for name, text in flags.items():
        if name in known:
            values[name] = text, "--" + name.replace("_", "-")
    return _build(values)


def unknown_variables(environ: Mapping[str, str]) -> list[str]:
    """Return a sentence for each `OVERSPILL_` variable that is no setting, with the one that it resembles.

    Variables of the client and those that Kubernetes makes of a Service's name are not mentioned.
    """
    known = [name.upper() for name in Settings.__struct_fields__]
    sentences = []
    for variable in sorted(set(environ) - {PREFIX + name for name in known}):
        is_foreign = FOREIGN.fullmatch(variable) or SERVICE_LINK.fullmatch(f"{variable}={environ[variable]}")
        if variable.startswith(PREFIX) and not is_foreign:
            similar = difflib.get_close_matches(variable.removeprefix(PREFIX), known, n=1, cutoff=SIMILAR)
            advice = f"did you mean {PREFIX}{similar[0]}?" if similar else "`serve --help` lists the settings"
            sentences.append(f"{variable} is no setting and is ignored; {advice}")
    return sentences


def _read_file(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise SettingError(f"the settings file {path} cannot be read: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingError(f"the settings file {path} is not TOML: {error}") from error


def _build(values: Mapping[str, tuple[Any, str]]) -> Settings:
    hints = get_type_hints(Settings, include_extras=True)
    ready = {name: _convert(value, hints[name], source) for name, (value, source) in values.items()}
    if ready.get("store") and not ready.get("catalog", "sqlite:").startswith("sqlite:"):
        ready.setdefault("data", Path())  # nothing lives there, so nobody needs a home for it
    settings = Settings(**ready)
    listen_source = values["listen"][1] if "listen" in values else "listen"
    try:
        parse_address(settings.listen)
    except ValueError as error:
        raise SettingError(f"{listen_source}: {error}, such as 127.0.0.1:8750") from error
    if settings.default_ttl > settings.max_ttl:
        raise SettingError(
            f"default_ttl ({settings.default_ttl}) is longer than max_ttl ({settings.max_ttl})"
        )
    return settings


def _convert(value: Any, hint: Any, source: str) -> Any:
    if isinstance(value, str) and _is_path(hint):
        return Path(value).expanduser()
    try:
        converted = msgspec.convert(number(value, hint, source), hint, strict=False)
    except msgspec.ValidationError as error:
        raise SettingError(f"{source}={value}: {error}; allowed: {allowed(hint)}") from error
    except ValueError as error:
        raise SettingError(str(error)) from error
    if isinstance(converted, float) and not math.isfinite(converted):
        raise SettingError(f"{source}={value}: not a finite number; allowed: {allowed(hint)}")
    return converted


def _is_path(hint: Any) -> bool:
    return hint is Path or any(map(_is_path, get_args(hint)))


class Described(Struct, frozen=True):
    """What a setting's help says. `default` and `allowed` are empty if there is nothing to say."""

    name: str
    meaning: str
    default: str
    allowed: str


def descriptions() -> list[Described]:
    """Return the help of every setting, in the order in which they are declared."""
    hints = get_type_hints(Settings, include_extras=True)
    found = []
    for each in msgspec.structs.fields(Settings):
        hint = hints[each.name]
        meaning = next(meta.description or "" for meta in metas(hint))
        found.append(Described(each.name, meaning, _default(each, hint), allowed(hint)))
    return found


def _default(setting: msgspec.structs.FieldInfo, hint: Any) -> str:
    value, unit = setting.default, unit_of(hint)
    if setting.name == "data":
        return "the user's data directory"
    if isinstance(value, bool):
        return str(value).lower()
    return shown(value, unit) if unit else str(value if value is not None else "")


def allowed(hint: Any) -> str:
    """Return what a setting takes: its choices, its bounds and its unit, as far as its type says."""
    kind = get_args(hint)[0]
    if get_origin(kind) is Literal:
        return ", ".join(get_args(kind))
    if kind is bool:
        return "true, false"
    meta, unit = next(metas(hint)), unit_of(hint)
    least = f"{meta.ge} or more" if meta.ge is not None else f"more than {meta.gt}"
    bounds = f"{meta.ge} to {meta.le}" if meta.le is not None else least
    if meta.ge is None and meta.gt is None:
        return ""
    return f"{bounds}; {FORMS[unit]}" if unit else bounds
