"""The rules for secrets that only what is around them tells apart: a command, a file, a name."""

from __future__ import annotations

from typing import Final

from overspill.redaction.placeholders import (
    is_in_connection_string,
    is_mixed,
    is_no_placeholder,
    is_random,
    is_random_credential,
    is_user_and_password,
    names_a_command,
    names_a_login,
    names_a_machine,
)
from overspill.redaction.rule import IS, QUOTE, ContextRule, SecretRule

_CONNECTIONS: Final = (
    ContextRule(
        "connection-password",
        ("Password=", "password=", "PASSWORD=", "PWD=", "Pwd=", "pwd="),
        r"""\\{0,4}["']?([^\s;"'<>\\&,]{4,128})(?=[;"'\s&<\\]|,[a-z]|\Z)""",
        check=is_in_connection_string,
    ),
    ContextRule(
        "connection-password",
        (":thin:",),
        r"""[\w$#]{1,64}/([^\s"'<>\\@/]{4,128})(?=@)""",
        check=is_no_placeholder,
    ),
    ContextRule(
        "command-password",
        (" -u", " --user", " --proxy-user"),
        r"""[ =]?["']?[^\s:"'/]{1,64}:([^\s"'/]{5,128})(?=["'\s]|\Z)""",
        check=names_a_command,
    ),
    ContextRule(
        "command-password",
        (" -p",),
        r"""[ ]?["']?([^\s"'=:/-][^\s"']{4,127})(?=["'\s]|\Z)""",
        check=names_a_login,
    ),
    ContextRule(
        "command-password",
        ("ConvertTo-SecureString ",),
        r"""(?:-AsPlainText |-Force |-String ){0,3}+\\{0,4}["']([^\s"'\\]{4,128})\\{0,4}["']""",
        check=is_no_placeholder,
    ),
    # GitHub's runners hide what comes behind it; other programs print it.
    ContextRule("masked-value", ("::add-mask::",), r"""([^\s"'`\\]{6,256})""", check=is_mixed),
    ContextRule(
        "connection-password",
        ("PGPASSWORD=", "MYSQL_PWD=", "REDISCLI_AUTH=", "SQLCMDPASSWORD=", "SSHPASS="),
        r"""["']?([^\s"';&]{4,128})""",
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
    # ~/.pgpass: host, port, database, user, password
    ContextRule(
        "file-password",
        (":5432:",),
        r"""[\w*.-]{1,64}:[\w*.@-]{1,64}:((?:[^\s:"'\\]|\\[:\\]){4,128})(?=\r?\n|\\[nr]|["']|\Z)""",
        lead=r"[\w*.-]",
        lead_width=1,
        check=is_no_placeholder,
    ),
    # NuGet.Config
    ContextRule(
        "file-password",
        ('Password" value="', "Password' value='"),
        r"""([^"'<>\s]{8,128})(?=["'])""",
        check=is_no_placeholder,
    ),
    # ~/.docker/config.json, and ~/.npmrc
    ContextRule(
        "registry-password",
        ('"auth', "_auth"),
        rf"{IS}([A-Za-z0-9+/]{{8,256}}={{0,2}})(?![A-Za-z0-9+/=])",
        check=is_user_and_password,
    ),
    ContextRule(
        "registry-password",
        (":_authToken", '"_authToken', ":_password", "identitytoken", "dockerconfigjson"),
        rf"{IS}([\w.+/=~-]{{8,64}})",
        r"[\w.+/=~-]{1,64}",
        check=is_mixed,
    ),
    # ~/.pypirc, the user of a kubeconfig, and settings as JSON.
    ContextRule(
        "file-password",
        ("assword", " token"),
        r"""(?: ?= ?|\\{0,4}["']?: ?|>)\\{0,4}["']?([^\s"'#\\,;&<]{8,64})(?=["'\s\\,;&<]|\Z)""",
        check=is_random,
    ),
    # Stores of keys in the secrets of Kubernetes.
    ContextRule(
        "private-key",
        (".p12", ".pfx", ".jks"),
        rf"{IS}([A-Za-z0-9+/]{{64,512}})",
        "[A-Za-z0-9+/=]{1,64}",
        check=is_mixed,
    ),
    ContextRule(
        "wireguard-key",
        ("PrivateKey", "PresharedKey"),
        rf"{IS}([A-Za-z0-9+/]{{43}}=)(?![A-Za-z0-9+/=])",
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
    *("signing_key", "encryption_key", "master_key", "Secret"),
    *("_PASS", "_pass", "_passwd"),
)
_NAMES_ALONE: Final = ("token", "secret")
"""Those that are no part of a longer word."""
_VALUE: Final = r"[\w.~+/=!@#$%^*-]"
_VALUE_LINE: Final = r"""['"]?,?\r?\n[ \t+-]{1,24}['"]?value['"]?: ?"""
"""The text between a name and its value in a manifest of Kubernetes."""
_NAMED: Final = (
    ContextRule(
        "aws-secret-key",
        _AWS_NAMES,
        rf"(?:{QUOTE}[ \t]{{0,8}}(?:=|:|=>|,|%3D)[ \t]{{0,8}}|(?: \[[^\]\s]{{1,24}}\]: | ['\"]?|>)"
        rf"|{_VALUE_LINE}){QUOTE}([A-Za-z0-9/+]{{40}})(?![A-Za-z0-9/+=])",
        check=is_mixed,
    ),
    # What the name of a variable or of a field says to be secret, and what looks random.
    ContextRule(
        "named-secret",
        _NAMES,
        rf"(?:{IS}|{_VALUE_LINE}{QUOTE})({_VALUE}{{16,64}})",
        _VALUE + "{1,64}",
        check=is_random_credential,
    ),
    SecretRule(
        "named-secret",
        _NAMES_ALONE,
        rf"(?:{IS}|{_VALUE_LINE}{QUOTE})({_VALUE}{{16,64}})",
        _VALUE + "{1,64}",
        lead="(?<!:)",  # arn:aws:secretsmanager:…:secret:name
        check=is_random_credential,
    ),
    ContextRule(
        "named-secret",
        (
            *(" --token ", "-auth-token ", "-access-token ", "-api-token ", "-secret "),
            *("-api-key ", "-access-key ", "-secret-key "),
        ),
        rf"""["']?({_VALUE}{{16,64}})""",
        _VALUE + "{1,64}",
        check=is_random_credential,
    ),
    ContextRule(
        "named-secret",
        ("-password ", "-passphrase "),
        rf"""["']?({_VALUE}{{8,64}})""",
        _VALUE + "{1,64}",
        check=is_random,
    ),
    ContextRule(
        "named-secret",
        ("PASSWORD", "PASSWD", "PASSPHRASE"),
        rf"(?:{IS}|{_VALUE_LINE}{QUOTE})({_VALUE}{{8,64}})",
        _VALUE + "{1,64}",
        check=is_random,
    ),
)

_HASHES: Final = (
    # crypt(5) and RFC 9106, as /etc/shadow, .htpasswd and tables of users have them.
    ContextRule("password-hash", ("$2a$", "$2b$", "$2y$"), r"\d\d\$[./A-Za-z0-9]{53}"),
    ContextRule("password-hash", ("$apr1$",), r"[./A-Za-z0-9]{1,16}\$[./A-Za-z0-9]{22}"),
    ContextRule(
        "password-hash",
        ("$5$", "$6$"),
        r"(?:rounds=\d{1,9}\$)?[^$\s:\"']{1,16}\$[./A-Za-z0-9]{43,86}",
    ),
    ContextRule(
        "password-hash",
        ("$y$", "$7$"),
        r"[./A-Za-z0-9]{1,32}\$[./A-Za-z0-9]{1,86}\$[./A-Za-z0-9]{43}",
    ),
    ContextRule(
        "password-hash",
        ("$argon2id$", "$argon2i$", "$argon2d$"),
        r"v=\d{1,3}\$m=\d{1,9},t=\d{1,4},p=\d{1,4}\$[A-Za-z0-9+/]{8,64}\$[A-Za-z0-9+/]{16,128}",
    ),
)

NAMED_KINDS: Final = frozenset(
    {"named-secret", "file-password", "registry-password", "api-key-header", "authorization", "cookie"}
)
"""The kinds that say where a secret stands. If its form says more, that is its kind."""

CONTEXTS: Final = (*_CONNECTIONS, *_FILES, *_HASHES, *_NAMED)
