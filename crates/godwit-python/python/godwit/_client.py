"""The HTTP client."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import os
from collections.abc import AsyncIterator, Iterable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any
from urllib.parse import urljoin

from . import _body, _settings
from ._body import Body, Content, Fields
from ._errors import ClosedError
from ._godwit import HttpClient, HttpResponse, Upload
from ._headers import Headers, HeadersLike
from ._response import Request, Response, settle
from ._settings import Verify

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._options import RequestOptions

_MAX_BODY = 64 << 20


class _Default:
    """What the client is set to."""


_DEFAULT = _Default()


class Client:
    """An HTTP client over HTTP/3, HTTP/2 and HTTP/1.1.

    Where a server has offered HTTP/3, QUIC and TCP are raced; what was found out is remembered. Connections are pooled
    and shared by all requests, of which any number can be under way. It is an asynchronous context manager, which
    closes them; `aclose` does the same. A client can be used by one event loop after the other.
    """

    def __init__(
        self,
        *,
        verify: Verify = True,
        timeout: float | None = None,
        connect_timeout: float = 10.0,
        idle_timeout: float = 90.0,
        http_versions: Iterable[str] | None = None,
        headers: HeadersLike | None = None,
        params: Fields | None = None,
        auth: tuple[str, str] | None = None,
        base_url: str = "",
        follow_redirects: bool = True,
        max_redirects: int = 10,
        max_body: int | None = _MAX_BODY,
        proxy: str | None = None,
        trust_env: bool = False,
        addresses: Mapping[str, Iterable[str]] | None = None,
        memory_file: str | os.PathLike[str] | None = None,
        session_file: str | os.PathLike[str] | None = None,
    ) -> None:
        """Times are in seconds.

        verify: True for the system's authorities; the path of a PEM file, or PEM text, adds further ones; False accepts
            any certificate, which is for tests.
        timeout: the most time until a response is there with its body; None for as long as it takes.
        connect_timeout: the most time for finding a server's addresses, and the same again for connecting.
        idle_timeout: for how long connections are kept that nobody uses.
        http_versions: of "h3", "h2" and "http/1.1" one, the last two, or all, which are the default.
        headers, params, auth, base_url: for all requests, unless one says otherwise.
        max_redirects: how many redirects are followed, 255 at most; none without follow_redirects.
        max_body: the most bytes of a body that are read into memory, None for any number; streams have no limit.
        proxy: the URL of an HTTP proxy for all requests; HTTP/3 does not go through.
        trust_env: whether the proxies are used that HTTPS_PROXY, HTTP_PROXY and ALL_PROXY name.
        addresses: addresses with ports of hosts, in place of those that DNS names.
        memory_file: a file that keeps which servers offer HTTP/3, and where UDP works.
        session_file: a file that keeps what lets later HTTP/3 connections begin faster; whoever reads it can read them.
        """
        authorities = _settings.pem_text(verify)
        self._native: HttpClient | None = HttpClient(
            {
                "root_file": None if authorities is not None or isinstance(verify, (bool, bytes)) else verify,
                "root_pem": authorities,
                "accept_any_certificate": verify is False,
                "timeout": timeout,
                "connect_timeout": connect_timeout,
                "idle_timeout": idle_timeout,
                "versions": _settings.versions(http_versions),
                "max_redirects": max(0, min(max_redirects, 255)) if follow_redirects else 0,
                "proxy": proxy,
                "proxy_from_environment": trust_env,
                "addresses": [(host, list(known)) for host, known in (addresses or {}).items()],
                "memory_file": memory_file,
                "session_file": session_file,
            }
        )
        self._headers = Headers(headers)
        self._params = params
        self._base_url = base_url
        self._max_body = max_body
        if auth is not None:
            self._headers = self._headers.merged(_basic(auth))

    async def request(
        self,
        method: str,
        url: str,
        *,
        params: Fields | None = None,
        headers: HeadersLike | None = None,
        content: Content | None = None,
        data: Fields | None = None,
        json: Any = None,
        auth: tuple[str, str] | None = None,
        timeout: float | None | _Default = _DEFAULT,
        http_versions: Iterable[str] | None = None,
    ) -> Response:
        """Sends a request, follows redirects, and reads the whole response.

        params: added to the query of the URL.
        content: the body: bytes, text, or an asynchronous iterator of bytes, which is read no faster than the server
            takes it; data: the fields of a form; json: what is sent as JSON. One of the three at most.
        auth: name and password (Basic).
        timeout, http_versions: in place of those of the client.

        Raises what is below `godwit.Error`. A response that tells of a failure is a response: see
        `Response.raise_for_status`.
        """
        response = await self._send(
            method, url, params, headers, _body.body_of(content, data, json), auth, timeout, http_versions
        )
        try:
            await response.aread()
        except BaseException:
            response._native.abandon()
            raise
        return response

    @contextlib.asynccontextmanager
    async def stream(
        self,
        method: str,
        url: str,
        *,
        params: Fields | None = None,
        headers: HeadersLike | None = None,
        content: Content | None = None,
        data: Fields | None = None,
        json: Any = None,
        auth: tuple[str, str] | None = None,
        timeout: float | None | _Default = _DEFAULT,
        http_versions: Iterable[str] | None = None,
    ) -> AsyncIterator[Response]:
        """The same without reading the body, which the response gives piece by piece; the context ends it."""
        response = await self._send(
            method, url, params, headers, _body.body_of(content, data, json), auth, timeout, http_versions
        )
        try:
            yield response
        finally:
            response._native.abandon()
            await response.aclose()

    async def get(self, url: str, **options: Unpack[RequestOptions]) -> Response:
        """GET; the options are those of `request`."""
        return await self.request("GET", url, **options)

    async def head(self, url: str, **options: Unpack[RequestOptions]) -> Response:
        """HEAD; the options are those of `request`."""
        return await self.request("HEAD", url, **options)

    async def options(self, url: str, **options: Unpack[RequestOptions]) -> Response:
        """OPTIONS; the options are those of `request`."""
        return await self.request("OPTIONS", url, **options)

    async def post(self, url: str, **options: Unpack[RequestOptions]) -> Response:
        """POST; the options are those of `request`."""
        return await self.request("POST", url, **options)

    async def put(self, url: str, **options: Unpack[RequestOptions]) -> Response:
        """PUT; the options are those of `request`."""
        return await self.request("PUT", url, **options)

    async def patch(self, url: str, **options: Unpack[RequestOptions]) -> Response:
        """PATCH; the options are those of `request`."""
        return await self.request("PATCH", url, **options)

    async def delete(self, url: str, **options: Unpack[RequestOptions]) -> Response:
        """DELETE; the options are those of `request`."""
        return await self.request("DELETE", url, **options)

    async def aclose(self) -> None:
        """Closes all connections, and keeps what was learnt if there is a file for it."""
        native, self._native = self._native, None
        if native is not None:
            await native.close()

    async def __aenter__(self) -> Client:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.aclose()

    async def _send(
        self,
        method: str,
        url: str,
        params: Fields | None,
        headers: HeadersLike | None,
        body: Body,
        auth: tuple[str, str] | None,
        timeout: float | None | _Default,
        http_versions: Iterable[str] | None,
    ) -> Response:
        if self._native is None:
            raise ClosedError("the client is closed; make another one")
        request = self._request(method, url, params, headers, body, auth)
        upload = Upload() if body.source is not None else None
        sending = self._native.request(
            request.method,
            request.url,
            request.headers.raw,
            body.content,
            upload,
            None if isinstance(timeout, _Default) else _forever(timeout),
            _settings.versions(http_versions),
        )
        if upload is None or body.source is None:
            return Response(await _head(sending), request, self._max_body)
        return await self._beside(sending, _body.start(body.source, upload), request)

    async def _beside(
        self, sending: asyncio.Future[HttpResponse], pump: asyncio.Task[None], request: Request
    ) -> Response:
        """Waits for the response while the body is sent; what goes wrong with the body comes first."""
        try:
            both: list[asyncio.Future[Any]] = [sending, pump]
            await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
            if pump.done() and not pump.cancelled() and (wrong := pump.exception()) is not None:
                raise wrong
            return Response(await _head(sending), request, self._max_body, pump)
        except (Exception, asyncio.CancelledError):
            _forget(sending)
            await settle(pump)
            raise

    def _request(
        self,
        method: str,
        url: str,
        params: Fields | None,
        headers: HeadersLike | None,
        body: Body,
        auth: tuple[str, str] | None,
    ) -> Request:
        if self._base_url:
            url = urljoin(self._base_url.rstrip("/") + "/", url.lstrip("/") if "://" not in url else url)
        for fields in (self._params, params):
            if fields:
                url = _with_query(url, _body.encoded(fields))
        sent = Headers()
        if body.content_type is not None:
            sent = Headers({"content-type": body.content_type})
        sent = sent.merged(self._headers).merged(headers)
        if auth is not None:
            sent = sent.merged(_basic(auth))
        return Request(method.upper(), url, sent)


async def _head(sending: asyncio.Future[HttpResponse]) -> HttpResponse:
    try:
        return await sending
    except BaseException:
        _forget(sending)
        raise


def _forget(sending: asyncio.Future[HttpResponse]) -> None:
    """Nobody wants the response any more, which may have come in this very moment: whatever the traceback of who was
    cancelled refers to, it is given up.
    """
    if not sending.done():
        # A loop that is closed calls nobody back any more.
        if not sending.get_loop().is_closed():
            sending.cancel()
    elif not sending.cancelled() and sending.exception() is None:
        sending.result().abandon()


def _forever(timeout: float | None) -> float:
    """A time that no request takes: the one of the client is to be overruled."""
    return 1e9 if timeout is None else timeout


def _with_query(url: str, query: str) -> str:
    address, mark, fragment = url.partition("#")
    joint = "?" if "?" not in address else "" if address.endswith(("?", "&")) else "&"
    return f"{address}{joint}{query}{mark}{fragment}"


def _basic(auth: tuple[str, str]) -> Headers:
    name, password = auth
    word = base64.b64encode(f"{name}:{password}".encode()).decode("ascii")
    return Headers({"authorization": f"Basic {word}"})
