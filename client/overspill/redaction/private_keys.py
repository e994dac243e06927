"""The rules for blocks of private keys: as they are, in base64, in URLs, and in PuTTY's own format."""

from __future__ import annotations

from typing import Final

from overspill.redaction.rule import ContextRule, SecretRule

_SEPARATOR: Final = (
    r"""(?:\\{1,4}[nrt]|[\s"'`,|#*>;:()+.\\-]|%0[AaDd]|&#(?:1[03]|x[AaDd]);|\x1b\[[\d;]{0,12}[mK]){0,64}+"""
)
_HEADER: Final = r"(?:(?:\\{1,4}[nr]|\s){1,4}[A-Z][A-Za-z-]{1,20}: [^\r\n\\]{0,200}){0,4}"
_BEFORE_LINE: Final = r"""[\s|:>"'m+-]"""
"""The text before a line of a key, after the prefix of a log, of a search or of a colour."""
# RFC 7468 and 4716, OpenPGP: also in JSON, in source code, indented, in diffs, behind the prefixes of logs.
_PRIVATE_KEY: Final = ContextRule(
    "private-key",
    ("---- BEGIN SSH2 ENCRYPTED ", "-----BEGIN "),
    rf"[A-Z0-9 ]{{0,40}}PRIVATE KEY(?: BLOCK)?(?:-| )----{_HEADER}"
    rf"(?=(?:{_SEPARATOR}|[^\r\n]{{0,24}}\r?\n[^\r\n]{{0,160}}?{_BEFORE_LINE})[A-Za-z0-9+/=]{{24}})",
    r"(?<=[A-Za-z0-9+/=])[A-Za-z0-9+/=]{1,512}"
    rf"|{_SEPARATOR}[A-Za-z0-9+/=]{{24,512}}"
    r"|(?P<end>[^\r\n]{0,200}?(?:\r?\n[^\r\n]{0,200}?){0,3}?"
    r"(?:-----END [A-Z0-9 ]{0,50}-----|---- END [A-Z0-9 ]{0,50} ----))"
    rf"|[^\r\n]{{0,24}}\r?\n[^\r\n]{{0,160}}?{_BEFORE_LINE}(?=[A-Za-z0-9+/=]{{40}})",
)

_ENCODED_HEADINGS: Final = (
    "BSU0EgUFJJVkFURSBLRVkt",  # RSA PRIVATE KEY
    "BFQyBQUklWQVRFIEtFWS0t",  # EC PRIVATE KEY
    "BQUklWQVRFIEtFWS0t",  # PRIVATE KEY
    "BPUEVOU1NIIFBSSVZBVEUgS0VZ",  # OPENSSH PRIVATE KEY
    "BFTkNSWVBURUQgUFJJVkFURSBLRVkt",  # ENCRYPTED PRIVATE KEY
    "BEU0EgUFJJVkFURSBLRVkt",  # DSA PRIVATE KEY
    "BQR1AgUFJJVkFURSBLRVkgQkxPQ0st",  # PGP PRIVATE KEY BLOCK
)
# The same in base64, as Kubernetes has it in its configurations and secrets, and `base64` prints it.
_ENCODED_KEY: Final = SecretRule(
    "private-key",
    ("LS0tLS1CRUdJTi",),  # -----BEGIN
    rf"(?:{'|'.join(_ENCODED_HEADINGS)})[A-Za-z0-9+/]{{20}}",
    r"[A-Za-z0-9+/=]{1,512}"
    # Behind its padding, or "-----" and a line end, a key has no more lines.
    rf"|(?<!=)(?<!LS0tLS0K)(?<!0tLS0t)"
    rf"(?:(?:\\{{1,4}}[nr]|[ \t\r\n]){{1,12}}+|[^\r\n]{{0,24}}\r?\n[^\r\n]{{0,160}}?{_BEFORE_LINE})"
    r"(?:[A-Za-z0-9+/=]{60,512}"
    r"|(?P<end>[A-Za-z0-9+/]{0,59}(?:LS0tLS0[=K]|0tLS0t(?:Cg==)?|tLS0tLQ[=o]=)(?![A-Za-z0-9+/=])))",
)
# The same in a URL or a form, where nothing ends a line.
_ESCAPED_KEY: Final = ContextRule(
    "private-key",
    ("-----BEGIN%20", "-----BEGIN+"),
    r"(?:[A-Z0-9+]|%20){0,40}PRIVATE(?:\+|%20)KEY(?:(?:\+|%20)BLOCK)?-----[\w%+/=]{24}",
    r"[\w%+/=-]{1,512}",
)
# PuTTY's own format.
_PUTTY_KEY: Final = ContextRule(
    "private-key",
    ("Private-Lines: ",),
    rf"\d{{1,3}}{_SEPARATOR}([A-Za-z0-9+/=]{{24}})",
    rf"[A-Za-z0-9+/=]{{1,512}}|{_SEPARATOR}[A-Za-z0-9+/=]{{24,512}}|(?P<end>{_SEPARATOR}Private-MAC: )",
)

PRIVATE_KEYS: Final = (_PRIVATE_KEY, _ENCODED_KEY, _ESCAPED_KEY, _PUTTY_KEY)
