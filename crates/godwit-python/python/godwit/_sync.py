"""For programs without asyncio: one request, and the whole response."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from ._client import Client
from ._errors import ClosedError
from ._response import Response
from ._settings import Verify

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._options import RequestOptions

    class SyncOptions(RequestOptions, total=False):
        """Those of a request, and of the client that it makes."""

        verify: Verify


def request(
    method: str,
    url: str,
    *,
    verify: Verify = True,
    **options: Unpack[RequestOptions],
) -> Response:
    """Sends a request on a connection of its own, and reads the whole response.

    It has an event loop of its own, and cannot be called where one runs. Who sends several requests is better served
    with a `Client`, which keeps its connections. The other options are those of `Client.request`.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        pass
    else:
        raise ClosedError(
            "an event loop runs in this thread, which would stand still; await a method of godwit.Client instead"
        )

    async def send() -> Response:
        async with Client(verify=verify) as client:
            return await client.request(method, url, **options)

    return asyncio.run(send())


def get(url: str, **options: Unpack[SyncOptions]) -> Response:
    """GET; the options are those of `request`."""
    return request("GET", url, **options)


def head(url: str, **options: Unpack[SyncOptions]) -> Response:
    """HEAD; the options are those of `request`."""
    return request("HEAD", url, **options)


def options(url: str, **options: Unpack[SyncOptions]) -> Response:
    """OPTIONS; the options are those of `request`."""
    return request("OPTIONS", url, **options)


def post(url: str, **options: Unpack[SyncOptions]) -> Response:
    """POST; the options are those of `request`."""
    return request("POST", url, **options)


def put(url: str, **options: Unpack[SyncOptions]) -> Response:
    """PUT; the options are those of `request`."""
    return request("PUT", url, **options)


def patch(url: str, **options: Unpack[SyncOptions]) -> Response:
    """PATCH; the options are those of `request`."""
    return request("PATCH", url, **options)


def delete(url: str, **options: Unpack[SyncOptions]) -> Response:
    """DELETE; the options are those of `request`."""
    return request("DELETE", url, **options)
