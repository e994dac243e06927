"""The rules for secrets that only what is around them tells apart: a header, a cookie, a URL."""

from __future__ import annotations

from typing import Final

from overspill.redaction.placeholders import (
    has_random_cookie,
    is_before_host,
    is_credential,
    is_expiring_signature,
    is_mixed,
    is_no_placeholder,
    is_random,
    is_random_before_host,
    is_signature,
)
from overspill.redaction.rule import IS, QUOTE, ContextRule, SecretRule

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
    ContextRule(
        "authorization",
        ("uthorization", "UTHORIZATION"),
        rf"{QUOTE}[ \t]{{0,4}}(?:[:=,>]|=>|%3[Aa])(?:[ \t]{{0,4}}|%20|\+)\[?b?(?:\\{{0,4}}[\"'`])?"
        rf"(?:{_SCHEMES})(?:[ \t]{{1,4}}|%20|\+)([\w.~+/=!-]{{8,64}})",
        r"[\w.~+/=!-]{1,64}",
        check=is_credential,
    ),
    SecretRule("authorization", ("Bearer ",), r"([\w.~+/=!-]{20,64})", r"[\w.~+/=!-]{1,64}", check=is_mixed),
    ContextRule(
        "authorization",
        ("uthorization: ", "UTHORIZATION: ", 'uthorization": "'),
        r"([\w.~+/=!-]{20,64})",
        r"[\w.~+/=!-]{1,64}",
        check=is_random,
    ),
    # RFC 7616, 3.4.
    ContextRule(
        "authorization",
        ("uthorization: Digest ", 'uthorization": "Digest '),
        r"""[^\r\n]{0,400}?\bresponse=\\{0,4}"([0-9a-f]{32,64})""",
    ),
    ContextRule(
        "api-key-header",
        _KEY_HEADERS,
        rf"{IS}([\w.~+/=-]{{16,64}})",
        r"[\w.~+/=%-]{1,64}",
        check=is_random,
    ),
)

_COOKIE: Final = r"""[^\s;,"'\\]"""
_COOKIES: Final = (
    # RFC 6265, 4.1 and 4.2.
    ContextRule(
        "cookie",
        ("et-Cookie", "et-cookie"),
        rf"""{IS}[^\s=;,"']{{1,64}}=({_COOKIE}{{16,2000}})""",
        rf"{_COOKIE}{{1,64}}",
        check=is_random,
    ),
    ContextRule(
        "cookie",
        ("Cookie", "cookie"),
        rf"""{IS}([^\s=;,"']{{1,64}}={_COOKIE}{{1,2000}})""",
        rf"; ?{_COOKIE}{{1,64}}|{_COOKIE}{{1,64}}",
        lead="(?<![A-Za-z-])",
        check=has_random_cookie,
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
    # A token in the place of the user.
    SecretRule(
        "url-token",
        ("@",),
        r""":\\{0,4}/\\{0,4}/([\w.~%+-]{20,255}+)(?::x-oauth-basic)?@\Z""",
        lead=r"""[^\s/"'<>\\`,]{5}""",
        behind=400,
        check=is_random_before_host,
    ),
    # A URL in the query of another.
    ContextRule(
        "url-password",
        ("%40",),
        r"%3[Aa]%2[Ff]%2[Ff][\w.~-]{0,128}+%3[Aa]((?:[\w.~!*-]|%(?!2[Ff])){5,255})%\Z",
        lead=r"[\w.~%!*-]{5}",
        behind=400,
        check=is_no_placeholder,
    ),
    # Who has the URL may do what it says, until it expires.
    ContextRule(
        "signed-url",
        ("sig=",),
        r"([A-Za-z0-9+/%_-]{40,80}(?:%3[Dd]|=|(?![\w+/%-])))",
        check=is_signature,
    ),
    ContextRule(
        "signed-url",
        ("Signature=",),
        r"([0-9a-f]{64})",
        r"[0-9a-f]{1,64}",
        check=is_random,
    ),
    # The older forms of S3 and Google, and CloudFront.
    ContextRule(
        "signed-url",
        ("Signature=",),
        r"([A-Za-z0-9+/%~_-]{26,64})",
        r"[A-Za-z0-9+/%~_=-]{1,64}",
        check=is_expiring_signature,
    ),
)

_TOKENS: Final = (
    # RFC 7519 and 7516: two or four dots, the first part is the JSON of the header. It may be wrapped.
    SecretRule(
        "jwt",
        ("eyJ", "ewog", "ewoJ"),
        r"[\w-]{8,4000}+\.(?:e(?:yJ|wo)[\w-]{8}|[\w-]{0,700}+\.[\w-]{10,64}+\.[\w-]{16})",
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

REQUESTS: Final = (*_TOKENS, *_COOKIES, *_URLS, *_HEADERS)
