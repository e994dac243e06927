"""The variables of the environment that are treated as secrets."""

from __future__ import annotations

import pytest
from overspill.redaction.environment import secret_values
from overspill.redaction.redactor import Redactor


@pytest.mark.parametrize(
    "name",
    ["API_KEY", "github_token", "CLIENT_SECRET", "DB_PASSWORD", "GPG_PASSPHRASE", "AZURE_PAT", "REDIS_PASS"],
)
def test_a_value_is_secret_by_its_name(name: str) -> None:
    assert secret_values({name: "tr0ub4dor&3"}) == ("tr0ub4dor&3",)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("PWD", "/home/user/work-1"),
        ("OLDPWD", "/home/user/work-1"),
        ("SSH_KEY", "/root/.ssh/id_rsa"),
        ("AUTH_TOKEN_URL", "https://a.example"),
        ("PUBLIC_KEY", "pk_0123456789"),
        ("APP_KEY", "production"),
        ("APP_KEY", "short1"),
        ("APP_KEY", "0000000000000"),
        ("SECRET", "x1" * 2_100),
        ("HOME", "/home/user7"),
        ("KEYBOARD", "us-intl-7"),
        ("SORT_KEY", "created_at"),
        ("CACHE_KEY", "pnpm-lock.yaml"),
        ("PARTITION_KEY", "tenant_id1"),
    ],
)
def test_what_is_no_secret_is_not_taken_for_one(name: str, value: str) -> None:
    assert secret_values({name: value}) == ()


def test_values_are_masked_wherever_they_stand_in_str_and_in_bytes() -> None:
    redactor = Redactor(values=secret_values({"DB_PASSWORD": "größte-tür-7"}))

    assert redactor.redact("x=größte-tür-7;").text == "x=[REDACTED environment];"
    assert redactor.redact("x=größte-tür-7;".encode()).text == b"x=[REDACTED environment];"
