"""The reasons why the TLS certificate of a back end is not trusted. They quote no host and no name."""

from __future__ import annotations

import ssl
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

# Codes of OpenSSL's verification: `X509_V_ERR_…` in x509_vfy.h.
_NOT_YET_VALID: Final = 9
_EXPIRED: Final = 10
_OTHER_NAME: Final = (62, 64)
"""Of a host name, of an address."""
_VERIFICATION: Final = ssl.SSLCertVerificationError
"""The error that has a code. aiohttp's subclass has none, but this one as its cause."""


def distrust(owner: str, error: BaseException, setting: str) -> str:
    """Return a sentence on the certificate of `owner`, which `error` or one of its causes is about.

    `setting`: what names the file of an authority.
    """
    code = next((each.verify_code for each in causes(error) if type(each) is _VERIFICATION), None)
    return f"the certificate of {owner} is not trusted: {_fault(code, setting)}"


def _fault(code: int | None, setting: str) -> str:
    if code == _EXPIRED:
        return "it has expired"
    if code == _NOT_YET_VALID:
        return "it is not valid yet"
    if code in _OTHER_NAME:
        return "it is for another host than that of the URL"
    if code is None:  # botocore compares host names by itself
        return f"it is for another host than that of the URL, or its authority has to be named in {setting}"
    return f"name the file of its authority in {setting}"


def causes(error: BaseException | None) -> Iterator[BaseException]:
    """Yield an error, and what it was raised because of."""
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__
