"""Settings: sizes and durations as people write them, their help, and what is refused."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from overspill_service.command_line import main
from overspill_service.settings import units
from overspill_service.settings.errors import SettingError
from overspill_service.settings.help import descriptions
from overspill_service.settings.settings import Settings
from overspill_service.settings.sources import SERVICE_LINK, load
from overspill_service.tenants.directory import read_tenants

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("max_capture_size", "10GiB", 10 * 2**30),
        ("max_capture_size", "1.5 kib", 1536),
        ("max_capture_size", "5GB", 5 * 10**9),
        ("max_capture_size", "12", 12),
        ("max_stored_size", "0", 0),
        ("answer_bytes", "512KiB", 512 * 1024),
        ("default_ttl", "2h", 7200),
        ("max_ttl", "2w", 14 * 86_400),
        ("orphan_age", "1h30m", 5400.0),
        ("idle_timeout", "500ms", 0.5),
        ("grace", "1m 30s", 90.0),
        ("scan_seconds", "2.5", 2.5),
    ],
)
def test_a_size_or_duration_has_a_unit_in_flag_environment_and_file(
    name: str, text: str, value: float, tmp_path: Path
) -> None:
    file = tmp_path / "overspill.toml"
    file.write_text(f'{name} = "{text}"')

    assert getattr(load({name: text}, {}), name) == value
    assert getattr(load({}, {f"OVERSPILL_{name.upper()}": text}), name) == value
    assert getattr(load({"config": str(file)}, {}), name) == value


def test_every_size_and_duration_takes_a_unit() -> None:
    for each in descriptions():
        counts = ("seconds", "bytes")
        if any(word in each.meaning.split(" (")[0].split() for word in counts) or each.name.endswith("ttl"):
            assert " or such as " in each.allowed, each.name


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("max_capture_size", "10 gigabytes"),
        ("max_capture_size", "10G"),
        ("max_capture_size", "1GiB 1MiB"),
        ("max_capture_size", "2h"),
        ("max_capture_size", "0.5B"),
        ("max_capture_size", "0KiB"),
        ("default_ttl", "10GiB"),
        ("default_ttl", "500ms"),
        ("default_ttl", "h"),
        ("grace", "-5s"),
        ("grace", "inf"),
        ("grace", "nan"),
        ("workers", "2h"),
        ("level", "20"),
        ("log_level", "loud"),
        ("anonymous", "maybe"),
    ],
)
def test_what_a_setting_does_not_take_is_refused_with_what_it_takes(name: str, text: str) -> None:
    with pytest.raises(SettingError) as refused:
        load({name: text}, {})

    assert f"--{name.replace('_', '-')}" in str(refused.value)
    described = next(each for each in descriptions() if each.name == name)
    assert described.allowed.split("; ")[-1] in str(refused.value)


@pytest.mark.parametrize(
    ("name", "text"),
    [("anonymous", "maybe"), ("workers", "0"), ("workers", "many"), ("log_level", "loud"), ("level", "20")],
)
def test_a_refusal_has_no_words_of_python(name: str, text: str) -> None:
    with pytest.raises(SettingError) as refused:
        load({name: text}, {})

    assert "`" not in str(refused.value)
    assert f"={text}: not allowed; allowed: " in str(refused.value)


def test_a_refusal_of_two_durations_has_their_units() -> None:
    with pytest.raises(SettingError, match=r"default_ttl \(100d\) is longer than max_ttl \(90d\)"):
        load({"default_ttl": "100d"}, {})


def test_keys_of_an_issuer_without_its_name_are_refused() -> None:
    with pytest.raises(SettingError, match="jwt_keys is set, and jwt_issuer is not"):
        load({"jwt_keys": "keys.json"}, {})


@pytest.mark.parametrize(
    "name", ["http://a.example", "a.example:8750", "*", "*.example", "a b", "user@a.example"]
)
def test_what_no_request_could_name_as_its_host_is_refused(name: str) -> None:
    with pytest.raises(SettingError, match="is not a host name"):
        load({"hosts": f"b.example, {name}"}, {})


def test_hosts_are_names_and_addresses_as_people_write_them() -> None:
    given = "A.example, b.example., 192.0.2.7, ::1, [2001:db8::7],"

    assert load({"hosts": given}, {}).answered_hosts == frozenset(
        {
            "a.example",
            "b.example",
            "192.0.2.7",
            "::1",
            "2001:db8::7",
        }
    )


@pytest.mark.parametrize("name", ["live_flush_seconds", "grace", "default_ttl"])
def test_a_duration_beyond_all_dates_is_refused(name: str) -> None:
    with pytest.raises(SettingError, match="this is longer than 100 years"):
        load({name: "99999999999999999999"}, {})


def test_memory_with_which_no_large_upload_could_begin_is_refused() -> None:
    assert load({"memory": "32MiB"}, {}).memory == 32 * 2**20
    assert load({"memory": "0"}, {}).memory == 0
    with pytest.raises(SettingError, match="give 32MiB or more, or 0"):
        load({"memory": "31MiB"}, {})


@given(st.integers(0, 2**48), st.sampled_from(["bytes", "seconds"]))
def test_what_is_shown_of_a_quantity_means_it_again(value: int, unit: str) -> None:
    text = units.format_value(value, unit)

    assert (int(text) if text[-1].isdigit() else units.parse(text, unit)) == value


def test_limits_of_a_tenant_have_units_too(tmp_path: Path) -> None:
    file = tmp_path / "tenants.toml"
    file.write_text('[[tenants]]\nname = "a"\nmax_capture_size = "1MiB"\ndefault_ttl = "2h"\n')
    (tenant,) = read_tenants(file)

    assert (tenant.max_capture_size, tenant.default_ttl) == (2**20, 7200)


def test_a_wrong_limit_of_a_tenant_is_named(tmp_path: Path) -> None:
    file = tmp_path / "tenants.toml"
    file.write_text('[[tenants]]\nname = "a"\nmax_stored_size = "lots"\n')

    with pytest.raises(ValueError, match=r"tenants\.toml: max_stored_size: 'lots' is not bytes, or such as"):
        read_tenants(file)


def test_help_says_defaults_and_allowed_values(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["serve", "--help"])
    format_value = " ".join(capsys.readouterr().out.split())

    assert "(default: 10GiB; allowed: 1 or more; bytes, or such as 512KiB, 10GiB, 5GB)" in format_value
    assert "(default: info; allowed: debug, info, warning, error)" in format_value
    for each in descriptions():
        assert f"default: {each.default}" in format_value


def test_the_version_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--version"])

    assert ended.value.code == 0
    assert capsys.readouterr().out.startswith("overspill-service 0.")


def test_no_setting_looks_like_a_variable_of_kubernetes() -> None:
    assert not [
        name for name in Settings.__struct_fields__ if SERVICE_LINK.match(f"OVERSPILL_{name.upper()}=tcp://x")
    ]
