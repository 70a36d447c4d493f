"""Connections to servers."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterable
from types import TracebackType
from typing import Any

from .. import _godwit
from .._settings import Pem, Verify, pem
from ._connection import Connection
from ._transport import protocols, settings


class Connecting:
    """A connection in the making: `async with` it, or await it."""

    def __init__(self, server: _godwit._Server, transport: _godwit._Transport) -> None:
        self._server = server
        self._transport = transport
        self._connection: Connection | None = None

    async def _connect(self) -> Connection:
        return Connection(await _godwit.connect(self._server, self._transport))

    def __await__(self) -> Generator[Any, None, Connection]:
        return self._connect().__await__()

    async def __aenter__(self) -> Connection:
        self._connection = await self._connect()
        return self._connection

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.close()


def connect(
    host: str,
    port: int,
    *,
    alpn: Iterable[str | bytes],
    verify: Verify = True,
    server_name: str | None = None,
    timeout: float | None = None,
    idle_timeout: float | None = None,
    keep_alive: float | None = None,
    max_streams: int | None = None,
    max_unidirectional_streams: int | None = None,
    certificate: Pem | None = None,
    private_key: Pem | None = None,
) -> Connecting:
    """Connects with a server. Times are in seconds; None is the default of the transport.

    alpn: the application protocols that this end speaks, the dearest first.
    verify: True for the system's authorities; the path of a PEM file, or PEM text, is believed instead; False accepts
        any certificate, which is for tests.
    server_name: the name that the certificate is for, if that is another one than host.
    timeout: for the handshake; idle_timeout: when nothing is heard of the peer; keep_alive: how often to ask for it.
    max_streams, max_unidirectional_streams: how many streams the peer may have open.
    certificate, private_key: this end's own, if the server asks for them.

    Raises, when it is awaited, `ConnectError` or what is below it, or `TimeoutError`.
    """
    server: _godwit._Server = {
        "host": host,
        "port": port,
        "server_name": server_name,
        "alpn": protocols(alpn),
        "root_pem": pem("verify", verify) if isinstance(verify, (bytes, str, os.PathLike)) else None,
        "accept_any_certificate": verify is False,
        "certificate": None if certificate is None else pem("certificate", certificate),
        "private_key": None if private_key is None else pem("private_key", private_key),
    }
    return Connecting(
        server, settings(idle_timeout, keep_alive, max_streams, max_unidirectional_streams, timeout)
    )
