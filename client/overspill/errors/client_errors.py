"""The base of all errors of the client, and the errors that are not an answer of the service."""

from __future__ import annotations


class OverspillError(Exception):
    """The base of all errors that this package raises, except those for wrong arguments.

    Catch it around calls of a client. A guard raises none.
    """

    def __init__(self, *details: object) -> None:
        super().__init__(*details)


class ContentChanged(OverspillError):
    """A file had another length when it was sent than when it was hashed. Nothing was stored: try again."""


class ClientClosed(OverspillError, RuntimeError):
    """The client was closed. Call it inside its `with` block, enter it once more, or make another."""


class Unreachable(OverspillError):
    """There is no connection to the service, or it did not answer in time.

    Start one with `overspill-service serve`, or say where it is with `OVERSPILL_URL`. If `was_sent`, the
    request may have reached the service and taken effect. If it `is_untrusted`, name the file of the
    certificate's authority in `SSL_CERT_FILE`.
    """

    was_sent: bool = True
    is_untrusted: bool = False


class ProtocolError(OverspillError):
    """The answer is invalid: a wrong digest or length, or not from an Overspill service.

    Check `OVERSPILL_URL`, and proxies on the way.
    """


class NotSpooled(Exception):
    """A capture cannot be written to the spool, or read from it. The message says why, for a notice."""
