"""Connections."""

from __future__ import annotations

from dataclasses import dataclass
from types import TracebackType

from .._errors import ConnectionLost
from .._godwit import QuicConnection
from ._stream import Buffer, ReceiveStream, SendStream, Stream


@dataclass(frozen=True)
class Statistics:
    """What was counted on a connection. Times are in seconds; datagrams are those of the application (RFC 9221)."""

    rtt: float
    min_rtt: float
    rtt_variance: float
    mtu: int
    congestion_window: int
    bytes_in_flight: int
    bytes_sent: int
    bytes_received: int
    packets_sent: int
    packets_received: int
    packets_lost: int
    stream_bytes_sent: int
    stream_bytes_received: int
    streams_open: int
    datagrams_sent: int
    datagrams_received: int
    datagrams_lost: int


class Connection:
    """A QUIC connection. As an asynchronous context manager it closes itself."""

    def __init__(self, native: QuicConnection) -> None:
        self._native = native

    async def open_stream(self) -> Stream:
        """A new stream that both ends send on; waits while the peer permits no more of them."""
        return Stream(*await self._native.open_stream())

    async def open_unidirectional_stream(self) -> SendStream:
        """A new stream that this end alone sends on."""
        return SendStream(await self._native.open_unidirectional_stream())

    async def accept_stream(self) -> Stream:
        """The next stream that the peer opens. It comes with its first data."""
        return Stream(*await self._native.accept_stream())

    async def accept_unidirectional_stream(self) -> ReceiveStream:
        """The next stream that the peer opens to send on it alone."""
        return ReceiveStream(await self._native.accept_unidirectional_stream())

    def send_datagram(self, data: Buffer) -> None:
        """Queues a datagram (RFC 9221), which may be lost. Raises `DatagramError` if it cannot be sent."""
        self._native.send_datagram(data if isinstance(data, bytes) else bytes(data))

    async def receive_datagram(self) -> bytes:
        """The next datagram of the peer."""
        return await self._native.receive_datagram()

    @property
    def max_datagram_size(self) -> int | None:
        """How many bytes a datagram may have, which grows with the path's MTU; None if the peer takes none."""
        return self._native.max_datagram_size

    @property
    def alpn(self) -> str | None:
        """The application protocol that both ends have agreed on."""
        name = self._native.alpn
        return None if name is None else name.decode("utf-8", "replace")

    @property
    def server_name(self) -> str | None:
        """The name that the server was asked for."""
        return self._native.server_name

    @property
    def remote_address(self) -> tuple[str, int]:
        """The peer's address and port, which may change."""
        return self._native.remote_address

    @property
    def is_closed(self) -> bool:
        """Whether it is over."""
        return self._native.is_closed

    def statistics(self) -> Statistics:
        """What was counted until now."""
        return Statistics(**self._native.statistics())  # type: ignore[arg-type]

    async def close(self, code: int = 0, reason: bytes | str = b"") -> None:
        """Closes it with an error code below 2^62 and a reason, which the peer is told.

        What has not been delivered is lost: who wants it delivered waits for an answer first.
        """
        await self._native.close(code, reason.encode("utf-8") if isinstance(reason, str) else reason)

    async def wait_closed(self) -> None:
        """Waits until it is over. Raises `ConnectionLost` unless one of the applications closed it with code 0."""
        try:
            await self._native.wait_closed()
        except ConnectionLost as lost:
            if lost.kind != "closed_locally" and not (lost.kind == "closed_by_peer" and lost.code == 0):
                raise

    async def __aenter__(self) -> Connection:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()
