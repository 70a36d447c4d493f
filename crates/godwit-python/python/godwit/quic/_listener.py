"""Servers."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from types import TracebackType
from typing import Union

from .. import _godwit
from .._settings import Pem, pem
from ._connection import Connection
from ._transport import protocols, settings

#: An address with its port: "127.0.0.1:4433", "[::1]:4433", or a pair.
Address = Union[str, "tuple[str, int]"]


class Listener:
    """A server's socket. Iterating over it gives the connections; as a context manager it closes itself."""

    def __init__(self, native: _godwit.QuicListener) -> None:
        self._native = native

    @property
    def address(self) -> tuple[str, int]:
        """The address and port that it listens at."""
        return self._native.address

    async def accept(self) -> Connection | None:
        """The next connection; None when the listener is closed."""
        native = await self._native.accept()
        return None if native is None else Connection(native)

    async def __aiter__(self) -> AsyncIterator[Connection]:
        while (connection := await self.accept()) is not None:
            yield connection

    async def close(self, code: int = 0, reason: bytes | str = b"") -> None:
        """Closes it, and all of its connections with this code and reason."""
        await self._native.close(code, reason.encode("utf-8") if isinstance(reason, str) else reason)

    async def __aenter__(self) -> Listener:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()


def listen(
    address: Address,
    *,
    certificate: Pem,
    private_key: Pem,
    alpn: Iterable[str | bytes],
    idle_timeout: float | None = None,
    keep_alive: float | None = None,
    max_streams: int | None = None,
    max_unidirectional_streams: int | None = None,
) -> Listener:
    """Listens for connections at a UDP address; port 0 is any free one.

    certificate, private_key: PEM text, or the paths of files with it. The other options are those of `connect`.

    Raises `ConfigurationError` if the address is in use, or the certificate cannot be used.
    """
    if not isinstance(address, str):
        host, port = address
        address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    return Listener(
        _godwit.listen(
            address,
            pem("certificate", certificate),
            pem("private_key", private_key),
            protocols(alpn),
            settings(idle_timeout, keep_alive, max_streams, max_unidirectional_streams),
        )
    )
