"""The base of all errors of the client, and those that no answer of the service tells of."""

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

    Start one with `overspill-service serve`, or say where it is with `OVERSPILL_URL`. `was_sent` is whether
    the request may have reached it, so that it may have done what it was asked for. If it `is_untrusted`,
    name the file of its certificate's authority in `SSL_CERT_FILE`.
    """

    was_sent: bool = True
    is_untrusted: bool = False


class ProtocolError(OverspillError):
    """The answer makes no sense: a wrong digest or length, or no Overspill at all.

    Check `OVERSPILL_URL`, and what stands between here and the service.
    """


class NotSpooled(Exception):
    """Something cannot be kept on this machine, or read from it. The message says why, for a notice."""
