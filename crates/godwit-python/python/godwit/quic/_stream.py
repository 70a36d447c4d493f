"""Streams: bytes in order, one way or both."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Union

from .._godwit import ReceiveHalf, SendHalf

#: What can be written.
Buffer = Union[bytes, bytearray, memoryview]

_AT_ONCE = 64 << 10
_LIMIT = 64 << 20


class SendStream:
    """A stream that this end sends on."""

    def __init__(self, native: SendHalf) -> None:
        self._send = native

    @property
    def id(self) -> int:
        """The stream's number (RFC 9000 section 2.1)."""
        return self._send.id

    async def write(self, data: Buffer) -> None:
        """Sends data. It is ready when all of it has been taken, which waits for the peer and for the network.

        Who is cancelled may have sent some of it. Raises `StreamStopped` if the peer wants nothing more, `ClosedError`
        after `finish` or `reset`, `ConnectionLost`.
        """
        await self._send.write(data if isinstance(data, bytes) else bytes(data))

    async def finish(self) -> None:
        """Says that there is nothing more to come."""
        await self._send.finish()

    def reset(self, code: int = 0) -> None:
        """Gives the stream up with an error code below 2^62: what has not been delivered never will be."""
        self._send.reset(code)

    def set_priority(self, urgency: int, incremental: bool = False) -> None:
        """Which streams go first when not all can: those of lower urgency (0 to 7; 3 at first).

        Incremental ones of the same urgency take turns.
        """
        self._send.set_priority(urgency, incremental)


class ReceiveStream:
    """A stream that the peer sends on."""

    def __init__(self, native: ReceiveHalf) -> None:
        self._receive = native

    @property
    def id(self) -> int:
        """The stream's number (RFC 9000 section 2.1)."""
        return self._receive.id

    async def read(self, n: int = _AT_ONCE) -> bytes:
        """What has arrived, at most n bytes; waits until there is something. Nothing at the end.

        Who is cancelled may have taken something that is lost. Raises `StreamReset` if the peer gave up, `ClosedError`
        after `stop`, `ConnectionLost`.
        """
        if n < 1:
            raise ValueError(f"n: expected 1 or more, got {n}")
        return await self._receive.read(n) or b""

    async def read_to_end(self, limit: int = _LIMIT) -> bytes:
        """All that comes. Raises `LimitExceeded` if that is more than limit bytes, and what `read` does."""
        return await self._receive.read_to_end(limit)

    def stop(self, code: int = 0) -> None:
        """Asks the peer to send no more, with an error code below 2^62."""
        self._receive.stop(code)

    async def __aiter__(self) -> AsyncIterator[bytes]:
        """What comes, piece by piece, until the end."""
        while chunk := await self.read():
            yield chunk


class Stream(SendStream, ReceiveStream):
    """A stream that both ends send on."""

    def __init__(self, send: SendHalf, receive: ReceiveHalf) -> None:
        SendStream.__init__(self, send)
        ReceiveStream.__init__(self, receive)
