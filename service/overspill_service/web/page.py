"""Routes of the web page: its files, and signing in."""

from __future__ import annotations

import asyncio
import gzip
from functools import cache
from http.cookies import SimpleCookie
from importlib.resources import files
from typing import TYPE_CHECKING, Final, NamedTuple

from aiohttp import hdrs, web
from overspill import wire
from overspill.wire import Path

from overspill_service.audit.events import Action
from overspill_service.catalog.records import instant
from overspill_service.errors import NoRoute, Unauthorized
from overspill_service.telemetry import logs
from overspill_service.web.exchange import EXCHANGE
from overspill_service.web.header_fields import list_field
from overspill_service.web.negotiation import takes_gzip
from overspill_service.web.page_sessions import COOKIE, SESSION_SECONDS
from overspill_service.web.registry import ANY_KEY, PUBLIC, Route

if TYPE_CHECKING:
    from overspill_service.tenants.directory import Principal
    from overspill_service.web.context import RequestContext
    from overspill_service.web.page_sessions import Claims

POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
PAGE: Final = "index.html"
TYPES: Final = {"html": "text/html", "js": "text/javascript", "css": "text/css", "svg": "image/svg+xml"}
_NOT_FOR_TOKENS: Final = "sign in with a key: a token of an issuer has no session of the web page"
FOREVER: Final = "public, max-age=31536000, immutable"
"""Names of files other than the page itself have a digest of their content."""


class PageFile(NamedTuple):
    plain: bytes
    packed: bytes
    """The same in gzip."""


async def front_page(context: RequestContext[wire.NoQuery]) -> web.Response:
    content = await asyncio.to_thread(_files)
    return _file(context, PAGE, content[PAGE], cached="no-cache")


async def asset(context: RequestContext[wire.NoQuery]) -> web.Response:
    name, content = context.request.match_info["file"], await asyncio.to_thread(_files)
    if name == PAGE or name not in content:
        raise NoRoute(f"the page has no file {name[:100]!r}")
    return _file(context, name, content[name], cached=FOREVER)


def _file(context: RequestContext[wire.NoQuery], name: str, file: PageFile, *, cached: str) -> web.Response:
    kind = TYPES[name.rpartition(".")[2]]
    headers = {
        "Content-Security-Policy": POLICY,
        hdrs.CACHE_CONTROL: cached,
        hdrs.VARY: hdrs.ACCEPT_ENCODING,
    }
    if takes_gzip(list_field(context.request.headers, hdrs.ACCEPT_ENCODING)):
        headers[hdrs.CONTENT_ENCODING] = "gzip"
        return web.Response(body=file.packed, content_type=kind, charset="utf-8", headers=headers)
    return web.Response(body=file.plain, content_type=kind, charset="utf-8", headers=headers)


@cache
def _files() -> dict[str, PageFile]:
    """Return the files of the page by their names. They are built from service/page."""
    folder = files("overspill_service.web") / "page_files"
    served = [each for each in folder.iterdir() if each.name.rpartition(".")[2] in TYPES]
    contents = {each.name: each.read_bytes() for each in served}
    return {name: PageFile(data, gzip.compress(data, mtime=0)) for name, data in contents.items()}


async def show(context: RequestContext[wire.NoQuery]) -> web.Response:
    sealed = context.request.cookies.get(COOKIE, "")
    claims = await context.service.page_sessions.claims(context.request)
    return context.json(_signed_in(context, context.principal, sealed, claims))


async def sign_in(context: RequestContext[wire.NoQuery]) -> web.Response:
    """Give the browser a session, for a key or for a code."""
    sessions = context.service.page_sessions
    async with context.body(wire.SignIn) as sign_in:
        principal = await _principal_of(context, sign_in)
    if not principal.key_hash:
        raise Unauthorized(_NOT_FOR_TOKENS)
    logs.bind_fields(tenant=principal.tenant.name, key=principal.key_id)
    sealed, claims = await sessions.session_for(principal)
    response = context.json(_signed_in(context, principal, sealed, claims))
    _set_cookie(context, response, sealed, SESSION_SECONDS)
    return response


async def _principal_of(context: RequestContext[wire.NoQuery], sign_in: wire.SignIn) -> Principal:
    authenticator = context.service.authenticator
    if not sign_in.code:
        return await authenticator.of_key(sign_in.key, context.request[EXCHANGE].address)
    claims = await context.service.page_sessions.redeem(sign_in.code)
    if claims is None:
        raise Unauthorized("the link was used before, or is too old: ask `overspill open` for another one")
    return await authenticator.of_hash(claims.key)


async def sign_out(context: RequestContext[wire.NoQuery]) -> web.Response:
    await context.service.page_sessions.end(context.request.cookies.get(COOKIE, ""))
    response = web.Response(status=204)
    _set_cookie(context, response, "", 0)
    return response


async def make_code(context: RequestContext[wire.NoQuery]) -> web.Response:
    """Make a code that signs one browser in with the key of this request."""
    if not context.principal.key_id:
        now = instant(context.service.archive.clock())
        return context.json(wire.SignInCode(code="", until=now), status=201)
    if not context.principal.key_hash:
        raise Unauthorized(_NOT_FOR_TOKENS)
    code, claims = await context.service.page_sessions.code_for(context.principal)
    return context.json(wire.SignInCode(code=code, until=instant(claims.until)), status=201)


def _signed_in(
    context: RequestContext[wire.NoQuery], principal: Principal, sealed: str, claims: Claims | None
) -> wire.SignedIn:
    bound = principal.session
    return wire.SignedIn(
        tenant=principal.tenant.name,
        scopes=sorted(principal.scopes),
        session=None if bound is None else bound.session,
        is_prefix=bound is not None and bound.is_prefix,
        key=principal.key_id,
        token="" if claims is None else context.service.page_sessions.token_of(sealed),
        until=None if claims is None else instant(claims.until),
    )


def _set_cookie(
    context: RequestContext[wire.NoQuery], response: web.Response, value: str, seconds: int
) -> None:
    """Set the cookie for this host alone. It goes over https only if the page came so."""
    cookie: SimpleCookie = SimpleCookie({COOKIE: value})
    cookie[COOKIE].update({"path": "/", "httponly": "true", "samesite": "Strict", "max-age": str(seconds)})
    origin = context.request.headers.get(hdrs.ORIGIN, "")
    if context.request.secure or origin.startswith("https:"):
        cookie[COOKIE]["secure"] = "true"
    response.headers.add(hdrs.SET_COOKIE, cookie[COOKIE].OutputString())


ROUTES: Final = (
    Route(
        method="GET",
        path=Path.INDEX,
        scope=PUBLIC,
        handler=front_page,
        summary="Return the web page.",
        answers={200: "text/html"},
    ),
    Route(
        method="GET",
        path=Path.PAGE_FILE,
        scope=PUBLIC,
        handler=asset,
        summary="Return a file of the web page.",
        answers={200: "text/plain"},
    ),
    Route(
        method="GET",
        path=Path.PAGE_SESSION,
        scope=ANY_KEY,
        is_of_session=True,
        handler=show,
        summary="Return who sends this request, and what they may do.",
        answers={200: wire.SignedIn},
    ),
    Route(
        method="POST",
        path=Path.PAGE_SESSION,
        scope=PUBLIC,
        action=Action.PAGE_SIGN_IN,
        handler=sign_in,
        summary="Sign a browser in to the web page. For 12 hours a cookie replaces the key.",
        body=wire.SignIn,
        answers={200: wire.SignedIn},
    ),
    Route(
        method="DELETE",
        path=Path.PAGE_SESSION,
        scope=PUBLIC,
        handler=sign_out,
        summary="Sign a browser out.",
        answers={204: None},
    ),
    Route(
        method="POST",
        path=Path.PAGE_CODE,
        scope=ANY_KEY,
        is_of_session=True,
        action=Action.PAGE_CODE,
        handler=make_code,
        summary="Make a code that signs one browser in with this key, once, within two minutes.",
        answers={201: wire.SignInCode},
    ),
)
