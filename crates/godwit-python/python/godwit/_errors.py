"""What can go wrong. The text of an exception says what was expected, what came, and what to do."""

from __future__ import annotations

import builtins
import typing

if typing.TYPE_CHECKING:
    from ._response import Response


class Error(Exception):
    """Every exception of this package."""


class ConfigurationError(Error, ValueError):
    """Settings or arguments that cannot be used."""


class ClosedError(Error):
    """Something was used after its end."""


class RequestError(Error):
    """A request, or its body, that cannot be sent."""


class ConnectError(Error):
    """No connection came about."""


class ResolveError(ConnectError):
    """The server's name has no address."""


class CertificateError(ConnectError):
    """The server's certificate was not accepted."""


class TimeoutError(Error, builtins.TimeoutError):
    """It took too long."""


class ProtocolError(Error):
    """The connection, or the exchange on it, failed."""


class RedirectError(Error):
    """A redirect that is not followed."""


class ResponseError(Error):
    """A response that is not what was asked for."""


class HTTPStatusError(Error):
    """The server's status says that it failed; raised by `Response.raise_for_status`."""

    response: Response
    """What the server answered."""

    def __init__(self, message: str, *, response: Response) -> None:
        super().__init__(message)
        self.response = response


class ConnectionLost(Error):
    """A QUIC connection is over."""

    kind: str = "protocol"
    """What ended it: "closed_by_peer", "closed_locally", "idle_timed_out", "reset", "peer_protocol", "protocol", "tls",
    "refused", "handshake_timed_out", "version_mismatch" or "endpoint_stopped"."""
    code: int | None = None
    """The code with which the peer's application closed it."""
    transport_code: int | None = None
    """The transport's error code (RFC 9000 section 20.1) that either end sent."""
    reason: bytes | None = None
    """The peer's explanation, as it came."""


class StreamReset(Error):
    """The peer gave up sending on a stream."""

    code: int = 0
    """The peer's error code."""


class StreamStopped(Error):
    """The peer wants nothing more of a stream."""

    code: int = 0
    """The peer's error code."""


class LimitExceeded(Error):
    """A stream has more bytes than were asked for."""


class DatagramError(Error):
    """A datagram that cannot be sent."""
