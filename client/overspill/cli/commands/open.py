"""The command open: shows the web page in a browser, signed in."""

import webbrowser
from typing import Annotated

from overspill.cli import output
from overspill.cli.declaration import command
from overspill.cli.invocation import Invocation
from overspill.cli.parameters import argument, flag


@command(
    "overspill open",
    "overspill open cap_k3v7q2m5x4c6z2b7n5aa",
    "overspill open --print",
    options=("url", "key"),
)
def open(  # noqa: A001  (the command's name)
    invocation: Invocation,
    ref: Annotated[str, argument(metavar="REF", help="The capture to show.")] = "",
    *,
    is_printed: Annotated[bool, flag("--print", help="Print the link, and open no browser.")] = False,
) -> None:
    """Open the web page in a browser, signed in with your key.

    The link works once, for two minutes.
    """
    with invocation.client() as client:
        if ref:
            client.get(ref)  # so that what is wrong with it is said here, and not on the page
        link = client.page_link(ref)
    if is_printed or not webbrowser.open(link):
        output.line(link)
