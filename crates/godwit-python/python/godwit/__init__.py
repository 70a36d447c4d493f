"""HTTP over HTTP/3, HTTP/2 and HTTP/1.1, whichever works best, and QUIC streams, for asyncio.

    import asyncio
    import godwit

    async def main() -> None:
        async with godwit.Client() as client:
            response = await client.get("https://example.com/")
            print(response.http_version, response.status_code, len(response.text))

    asyncio.run(main())

Outside of asyncio there is `godwit.get` and the like. QUIC is in `godwit.quic`.
"""

from . import quic
from ._client import Client
from ._errors import (
    CertificateError,
    ClosedError,
    ConfigurationError,
    ConnectError,
    ConnectionLost,
    DatagramError,
    Error,
    HTTPStatusError,
    LimitExceeded,
    ProtocolError,
    RedirectError,
    RequestError,
    ResolveError,
    ResponseError,
    StreamReset,
    StreamStopped,
    TimeoutError,
)
from ._godwit import __version__
from ._headers import Headers
from ._response import Request, Response
from ._sync import delete, get, head, options, patch, post, put, request

__all__ = [
    "CertificateError",
    "Client",
    "ClosedError",
    "ConfigurationError",
    "ConnectError",
    "ConnectionLost",
    "DatagramError",
    "Error",
    "HTTPStatusError",
    "Headers",
    "LimitExceeded",
    "ProtocolError",
    "RedirectError",
    "Request",
    "RequestError",
    "ResolveError",
    "Response",
    "ResponseError",
    "StreamReset",
    "StreamStopped",
    "TimeoutError",
    "__version__",
    "delete",
    "get",
    "head",
    "options",
    "patch",
    "post",
    "put",
    "quic",
    "request",
]
