"""Read the settings from flags, environment and a file, in this order of precedence.

A variable is `OVERSPILL_` and the setting's name in capitals. The file is TOML, named by `--config` or
`OVERSPILL_CONFIG`. An unknown variable is not an error, because other programs set variables too;
`unknown_variables` names those that may be a mistake.
"""

from __future__ import annotations

import difflib
import math
import re
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, get_args, get_type_hints

import msgspec

from overspill_service.settings.addresses import hosts_of, networks_of, parse_address
from overspill_service.settings.errors import SettingError
from overspill_service.settings.help import allowed
from overspill_service.settings.settings import OWN_CATALOG, Settings
from overspill_service.settings.units import LONGEST_TTL, format_value, parse_value, unit_of

if TYPE_CHECKING:
    from collections.abc import Mapping

PREFIX = "OVERSPILL_"
FOREIGN: Final = re.compile(
    r"OVERSPILL_(CONFIG"  # the settings file; the next line has the client's own
    r"|URL|KEY|KEY_FILE|NOTICE_KEY|PLAIN_HTTP|SESSION|POLICY|SPOOL(_\w+)?|EXIT_SECONDS|WAITING_BYTES"
    r"|TERMINAL|ZDOTDIR|BASH_START"
    r"|(\w+_)?(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?))"
)
"""Variables that are neither settings nor mistakes. The last line has those that Kubernetes sets for a
Service.
"""
SERVICE_LINK: Final = re.compile(r"OVERSPILL_(\w+_)?PORT=(tcp|udp|sctp)://.*")
MIN_MEMORY: Final = 32 * 2**20
"""A compressed upload takes half of it, and may have 11/16 of a budget."""
MEMORY_FORMS: Final = "give 32MiB or more, or 0 for half of what there is"
MIN_SIMILARITY: Final = 0.7
"""How similar a name must be to be suggested, from 0 to 1."""


def load(flags: Mapping[str, str], environ: Mapping[str, str]) -> Settings:
    """Return the settings. Raises `SettingError` that names the first wrong one and its source."""
    config = flags.get("config") or environ.get(PREFIX + "CONFIG")
    names = frozenset(Settings.__struct_fields__)
    values: dict[str, tuple[Any, str]] = {}
    for name, value in (_read_file(Path(config)) if config else {}).items():
        if name not in names:
            raise SettingError(
                f"{name} in {config} is not a setting; settings are {', '.join(sorted(names))}"
            )
        values[name] = value, f"{name} in {config}"
    for name in names:
        variable = PREFIX + name.upper()
        if text := environ.get(variable):
            values[name] = text, variable
    for name, text in flags.items():
        if name in names:
            values[name] = text, "--" + name.replace("_", "-")
    return _build(values)


def unknown_variables(environ: Mapping[str, str]) -> list[str]:
    """Return a sentence for each `OVERSPILL_` variable that is not a setting, with a similar setting.

    The client's variables, and those that Kubernetes sets for a Service, are ignored.
    """
    names = [name.upper() for name in Settings.__struct_fields__]
    sentences = []
    for variable in sorted(set(environ) - {PREFIX + name for name in names}):
        is_foreign = FOREIGN.fullmatch(variable) or SERVICE_LINK.fullmatch(f"{variable}={environ[variable]}")
        if variable.startswith(PREFIX) and not is_foreign:
            similar = difflib.get_close_matches(
                variable.removeprefix(PREFIX), names, n=1, cutoff=MIN_SIMILARITY
            )
            advice = f"did you mean {PREFIX}{similar[0]}?" if similar else "`serve --help` lists the settings"
            sentences.append(f"{variable} is not a setting and is ignored; {advice}")
    return sentences


def _read_file(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise SettingError(f"the settings file {path} cannot be read: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingError(f"the settings file {path} is not TOML: {error}") from error
    except RecursionError:
        raise SettingError(f"the settings file {path} nests its values too deeply") from None


def _build(values: Mapping[str, tuple[Any, str]]) -> Settings:
    hints = get_type_hints(Settings, include_extras=True)
    ready = {name: _convert(value, hints[name], source) for name, (value, source) in values.items()}
    if ready.get("store") and not ready.get("catalog", OWN_CATALOG).startswith(OWN_CATALOG):
        ready.setdefault("data", Path())  # nothing is stored there: a missing home directory is not an error
    settings = Settings(**ready)
    listen_source = values["listen"][1] if "listen" in values else "listen"
    try:
        parse_address(settings.listen)
    except ValueError as error:
        raise SettingError(f"{listen_source}: {error}, such as 127.0.0.1:8750") from error
    for name in "trusted_proxies", "metrics_from":
        _require_networks(settings, name)
    _require_hosts(settings)
    if settings.jwt_keys and not settings.jwt_issuer:
        raise SettingError("jwt_keys is set, and jwt_issuer is not, so no token would be taken: name it too")
    if settings.default_ttl > settings.max_ttl:
        default, maximum = (
            format_value(each, "seconds") for each in (settings.default_ttl, settings.max_ttl)
        )
        raise SettingError(f"default_ttl ({default}) is longer than max_ttl ({maximum})")
    if 0 < settings.memory < MIN_MEMORY:
        raise SettingError(f"memory ({settings.memory}) is too little for a large upload: {MEMORY_FORMS}")
    return settings


def _convert(value: Any, hint: Any, source: str) -> Any:
    if isinstance(value, str) and _is_path(hint):
        return Path(value).expanduser()
    try:
        converted = msgspec.convert(parse_value(value, hint, source), hint, strict=False)
    except msgspec.ValidationError as error:
        raise SettingError(f"{source}={value}: {_wrong(hint)}") from error
    except ValueError as error:
        raise SettingError(str(error)) from error
    if isinstance(converted, float) and not math.isfinite(converted):
        raise SettingError(f"{source}={value}: {_wrong(hint)}")
    if unit_of(hint) == "seconds" and converted > LONGEST_TTL:  # no date is that far away
        raise SettingError(f"{source}={value}: this is longer than 100 years")
    return converted


def _wrong(hint: Any) -> str:
    return f"not allowed; allowed: {allowed(hint) or 'a text'}"


def _is_path(hint: Any) -> bool:
    return hint is Path or any(map(_is_path, get_args(hint)))


def _require_networks(settings: Settings, name: str) -> None:
    try:
        networks_of(getattr(settings, name))
    except ValueError as error:
        raise SettingError(
            f"{name}: {error}; write addresses and networks, such as 10.0.0.5, 192.168.7.0/24"
        ) from error


def _require_hosts(settings: Settings) -> None:
    try:
        hosts_of(settings.hosts)
    except ValueError as error:
        raise SettingError(
            f"hosts: {error}; write names as browsers send them, without scheme and port, such as "
            "captures.example, 192.0.2.7"
        ) from error
