"""The rules for secrets that only what is around them tells apart: a header, a URL, a file's own words."""

from __future__ import annotations

from typing import Final

from overspill.redaction.placeholders import (
    is_before_host,
    is_credential,
    is_in_connection_string,
    is_mixed,
    is_no_placeholder,
    is_random,
    is_random_credential,
    is_signature,
    is_user_and_password,
    names_a_command,
    names_a_machine,
)
from overspill.redaction.rule import SecretRule

_QUOTE: Final = r"""\\{0,4}["']?"""
_IS: Final = rf"{_QUOTE}[ \t]{{0,8}}(?:[:=]|=>)[ \t]{{0,8}}{_QUOTE}"
"""What stands between a name and its value in JSON, YAML, TOML, source code and the shell."""

_SCHEMES: Final = (
    "[Bb]earer|[Bb]asic|[Tt]oken|BEARER|BASIC|[Aa]pi[Kk]ey"
    "|Negotiate|NTLM|DPoP|SSWS|GenieKey|Splunk|Bot|OAuth|Key"
)
_KEY_HEADERS: Final = (
    *("Api-Key", "api-key", "API-Key", "API-KEY", "-Subscription-Key", "-subscription-key"),
    *("-Auth-Token", "-auth-token", "-Access-Token", "-access-token", "-Vault-Token", "-vault-token"),
    *("PRIVATE-TOKEN", "rivate-Token", "JOB-TOKEN", "-Security-Token", "-security-token", "-Figma-Token"),
)
_HEADERS: Final = (
    # RFC 9110, 11.6.2, as HTTP libraries, curl and JSON print it.
    SecretRule(
        "authorization",
        ("uthorization", "UTHORIZATION"),
        rf"{_QUOTE}[ \t]{{0,4}}(?:[:=,>]|=>)[ \t]{{0,4}}\[?b?(?:\\{{0,4}}[\"'`])?"
        rf"(?:{_SCHEMES})(?:[ \t]{{1,4}}|%20|\+)([\w.~+/=!-]{{8,64}})",
        r"[\w.~+/=!-]{1,64}",
        is_bounded=False,
        check=is_credential,
    ),
    SecretRule("authorization", ("Bearer ",), r"([\w.~+/=!-]{20,64})", r"[\w.~+/=!-]{1,64}", check=is_mixed),
    SecretRule(
        "authorization",
        ("uthorization: ", "UTHORIZATION: ", 'uthorization": "'),
        r"([\w.~+/=!-]{20,64})",
        r"[\w.~+/=!-]{1,64}",
        is_bounded=False,
        check=is_random,
    ),
    SecretRule(
        "api-key-header",
        _KEY_HEADERS,
        rf"{_IS}([\w.~+/=-]{{16,64}})",
        r"[\w.~+/=%-]{1,64}",
        is_bounded=False,
        check=is_random,
    ),
)

_URLS: Final = (
    # RFC 3986, 3.2.1: the user's part before the host.
    SecretRule(
        "url-password",
        ("@",),
        r""":\\{0,4}/\\{0,4}/[^\s/:@"'<>\\`,]{0,128}+:([^\s/"'<>\\`,]{5,255})@\Z""",
        lead=r"""[^\s/"'<>\\`,]{5}""",
        behind=400,
        check=is_before_host,
    ),
    # Who has the URL may do what it says, until it expires.
    SecretRule(
        "signed-url",
        ("sig=",),
        r"([A-Za-z0-9+/%]{40,80}(?:%3[Dd]|=))",
        is_bounded=False,
        check=is_signature,
    ),
    SecretRule(
        "signed-url",
        ("-Signature=",),
        r"([0-9a-f]{64})",
        r"[0-9a-f]{1,64}",
        is_bounded=False,
        check=is_random,
    ),
)

_CONNECTIONS: Final = (
    SecretRule(
        "connection-password",
        ("Password=", "password=", "PASSWORD=", "PWD=", "Pwd=", "pwd="),
        r"""\\{0,4}["']?([^\s;"'<>\\&,]{4,128})(?=[;"'\s&<\\]|,[a-z]|\Z)""",
        is_bounded=False,
        check=is_in_connection_string,
    ),
    SecretRule(
        "connection-password",
        (":thin:",),
        r"""[\w$#]{1,64}/([^\s"'<>\\@/]{4,128})(?=@)""",
        is_bounded=False,
        check=is_no_placeholder,
    ),
    SecretRule(
        "command-password",
        (" -u ", " --user ", " --proxy-user "),
        r"""["']?[^\s:"'/]{1,64}:([^\s"'/]{5,128})(?=["'\s]|\Z)""",
        is_bounded=False,
        check=names_a_command,
    ),
    SecretRule(
        "connection-password",
        ("PGPASSWORD=", "MYSQL_PWD=", "REDISCLI_AUTH=", "SQLCMDPASSWORD=", "SSHPASS="),
        r"""["']?([^\s"';&]{4,128})""",
        is_bounded=False,
        check=is_no_placeholder,
    ),
)

_FILES: Final = (
    # ~/.netrc
    SecretRule(
        "netrc-password",
        ("password ",),
        r"[ \t]{0,8}([^\s]{4,256})",
        check=names_a_machine,
    ),
    # NuGet.Config
    SecretRule(
        "file-password",
        ('Password" value="', "Password' value='"),
        r"""([^"'<>\s]{8,128})(?=["'])""",
        is_bounded=False,
        check=is_no_placeholder,
    ),
    # ~/.docker/config.json, and ~/.npmrc
    SecretRule(
        "registry-password",
        ('"auth', "_auth"),
        rf"{_IS}([A-Za-z0-9+/]{{8,256}}={{0,2}})(?![A-Za-z0-9+/=])",
        is_bounded=False,
        check=is_user_and_password,
    ),
    SecretRule(
        "registry-password",
        (":_authToken", ":_password", "identitytoken", "dockerconfigjson"),
        rf"{_IS}([\w.+/=~-]{{8,64}})",
        r"[\w.+/=~-]{1,64}",
        is_bounded=False,
        check=is_mixed,
    ),
    # ~/.pypirc, the user of a kubeconfig, and settings as JSON.
    SecretRule(
        "file-password",
        ("password", " token"),
        r"""(?: = |\\{0,4}["']?: ?)\\{0,4}["']?([^\s"'#\\,]{8,64})(?=["'\s\\]|\Z)""",
        is_bounded=False,
        check=is_random,
    ),
    SecretRule(
        "wireguard-key",
        ("PrivateKey", "PresharedKey"),
        rf"{_IS}([A-Za-z0-9+/]{{43}}=)(?![A-Za-z0-9+/=])",
        is_bounded=False,
        check=is_mixed,
    ),
)

_AWS_NAMES: Final = (
    *("ecretAccessKey", "SECRET_ACCESS_KEY", "secret_access_key", "SECRET_KEY", "SecretKey", "secret_key"),
    *("secretKey", "ecret Access Key", "secret-access-key", "secret-key"),
)
_NAMES: Final = (
    *("API_KEY", "APIKEY", "ACCESS_KEY", "AUTH_KEY", "SECRET", "SECRET_KEY", "SECRET_KEY_BASE", "TOKEN"),
    *("PRIVATE_KEY", "accessToken", "refreshToken", "SessionToken", "secret_key", "access_key", "auth_key"),
    *("api_key", "apiKey", "api-key", "apikey", "ApiKey", "APIKey", "app_key", "shared_key", "license_key"),
    *("signing_key", "encryption_key", "master_key", "_secret", "-secret", ".secret", "Secret", "_token"),
    *("_PASS", "_pass", "_passwd"),
)
_VALUE_LINE: Final = r"""['"]?,?\r?\n[ \t+-]{1,24}['"]?value['"]?: ?"""
"""What stands between a name and its value in a manifest of Kubernetes."""
_NAMED: Final = (
    SecretRule(
        "aws-secret-key",
        _AWS_NAMES,
        rf"(?:{_QUOTE}[ \t]{{0,8}}(?:=|:|=>|,|%3D)[ \t]{{0,8}}|(?: \[[^\]\s]{{1,24}}\]: | ['\"]?|>)"
        rf"|{_VALUE_LINE}){_QUOTE}([A-Za-z0-9/+]{{40}})(?![A-Za-z0-9/+=])",
        is_bounded=False,
        check=is_mixed,
    ),
    # What the name of a variable or of a field says to be secret, and what looks random.
    SecretRule(
        "named-secret",
        _NAMES,
        rf"(?:{_IS}|{_VALUE_LINE}{_QUOTE})([\w.~+/=!@#$%^*-]{{16,64}})",
        r"[\w.~+/=!@#$%^*-]{1,64}",
        is_bounded=False,
        check=is_random_credential,
    ),
    SecretRule(
        "named-secret",
        ("PASSWORD", "PASSWD", "PASSPHRASE"),
        rf"(?:{_IS}|{_VALUE_LINE}{_QUOTE})([\w.~+/=!@#$%^*-]{{8,64}})",
        r"[\w.~+/=!@#$%^*-]{1,64}",
        is_bounded=False,
        check=is_random,
    ),
)

_TOKENS: Final = (
    # RFC 7519 and 7516: two or four dots, the first part is the JSON of the header. It may be wrapped.
    SecretRule(
        "jwt",
        ("eyJ",),
        r"[\w-]{8,4000}+\.(?:eyJ[\w-]{8}|[\w-]{0,700}+\.[\w-]{10,64}+\.[\w-]{16})",
        r"[\w-]{1,64}|\.(?=[\w-])|(?<=[\w.-]{20})\\?\r?\n(?=[\w-]{40})",
    ),
    # The same in base64, as Kubernetes holds secrets. It begins with `{"alg":`, `{"typ":` or `{"kid":`.
    SecretRule(
        "jwt",
        ("ZXlKaGJHY2lP", "ZXlKMGVYQWlP", "ZXlKcmFXUWlP"),
        r"[A-Za-z0-9+/]{60}",
        r"[A-Za-z0-9+/=]{1,64}",
    ),
)

NAMED_KINDS: Final = frozenset(
    {"named-secret", "file-password", "registry-password", "api-key-header", "authorization"}
)
"""The kinds that say where a secret stands. If its form says more, that is its kind."""

CONTEXTS: Final = (*_TOKENS, *_URLS, *_HEADERS, *_CONNECTIONS, *_FILES, *_NAMED)
