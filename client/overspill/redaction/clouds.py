"""The rules for the keys of AWS, Google and Microsoft."""

from __future__ import annotations

from typing import Final

from overspill.redaction.forms import BASE64, token
from overspill.redaction.placeholders import is_mixed, is_varied
from overspill.redaction.rule import ContextRule, SecretRule


def _marked(marks: tuple[str, ...], size: int, behind: str, characters: str = "[A-Za-z0-9+/]") -> SecretRule:
    """Return the rule of a key of Azure, which has a mark behind its first `size` characters.

    The marks are those of Microsoft's library security-utilities, which all scanners of it look for.
    """
    lead = f"{characters}{{{size}}}"
    return SecretRule("azure-key", marks, behind, lead=lead, lead_width=size, check=is_mixed)


CLOUDS: Final = (
    SecretRule(
        "aws-access-key", ("AKIA", "ASIA", "ABIA", "ACCA"), r"[A-Z2-7]{16}(?![A-Za-z0-9])", check=is_varied
    ),
    token("aws-session-token", "IQoJb3JpZ2lu", "FwoGZXIvYXdz", least=80, more=BASE64),
    token("aws-bedrock-key", "ABSK", "bedrock-api-key-YmVkcm9jay5hbWF6b25hd3MuY29t", least=100, more=BASE64),
    token("google-api-key", "AIza", least=35),
    token("google-oauth-secret", "GOCSPX-", least=24),
    token("google-oauth-token", "ya29.", least=30),
    SecretRule(
        "azure-client-secret", ("Q~",), r"[\w~.-]{31,34}(?![\w~-])", lead=r"[\w~.]{3}\d", lead_width=4
    ),
    SecretRule("azure-storage-key", ("AccountKey=",), r"([A-Za-z0-9+/]{80,88}={0,2})", check=is_varied),
    ContextRule(
        "azure-shared-key",
        ("SharedAccessKey=",),
        r"([A-Za-z0-9+/]{40,60}={0,2})",
        check=is_varied,
    ),
    ContextRule(
        "teams-webhook",
        (".webhook.office.com/webhookb2/", "outlook.office.com/webhook/"),
        r"([0-9a-f-]{36}@[0-9a-f-]{36}/IncomingWebhook/[0-9a-f]{32})",
        r"[\w/-]{1,64}",
    ),
    _marked(("+ASt", "ACDb", "APIM", "+ABa", "+AMC"), 76, r"[A-Za-z0-9+/]{5}[AQgw]=="),
    _marked(("AIoT", "+ASb", "+AEh", "+ARm"), 33, r"[A-P][A-Za-z0-9+/]{5}="),
    _marked(("+ACR",), 42, r"[A-D][A-Za-z0-9+/]{5}(?![A-Za-z0-9+/])"),
    _marked(("AzSe",), 42, r"[A-D][A-Za-z0-9]{5}(?![A-Za-z0-9])", "[A-Za-z0-9]"),
    _marked(("AzCa",), 33, r"[A-P][A-Za-z0-9]{5}=", "[A-Za-z0-9]"),
    _marked(("AzFu",), 44, r"[\w-]{5}[AQgw]==", r"[\w-]"),
    _marked(("AZDO",), 76, r"[A-Za-z0-9]{4}(?![A-Za-z0-9])", "[A-Za-z0-9]"),
    _marked(("JQQJ9",), 52, r"[9DH][A-Za-z0-9][A-L][A-Za-z0-9]{24}", "[A-Za-z0-9]"),
    SecretRule("microsoft-token", ("0.A", "1.A"), r"[\w-]{50,200}\.(?:\d\.)?Ag[\w-]{200}", r"[\w.-]{1,64}"),
    token("google-hmac-key", "GOOG1E", least=55, more=r"[A-Z0-9]{1,64}"),
)
