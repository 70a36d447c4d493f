"""Settings that both ends of a connection have."""

from __future__ import annotations

from collections.abc import Iterable

from typing import TYPE_CHECKING
from .._errors import ConfigurationError

if TYPE_CHECKING:
    from .. import _godwit


def settings(
    idle_timeout: float | None,
    keep_alive: float | None,
    max_streams: int | None,
    max_unidirectional_streams: int | None,
    handshake_timeout: float | None = None,
) -> _godwit._Transport:
    """As the native module takes them."""
    return {
        "idle_timeout": idle_timeout,
        "keep_alive": keep_alive,
        "handshake_timeout": handshake_timeout,
        "max_streams": max_streams,
        "max_unidirectional_streams": max_unidirectional_streams,
    }


def protocols(names: Iterable[str | bytes]) -> list[bytes]:
    """Application protocols, of which there has to be one."""
    if isinstance(names, (str, bytes)):
        names = [names]
    listed = [name.encode("utf-8") if isinstance(name, str) else name for name in names]
    if not listed:
        raise ConfigurationError('alpn: expected the name of a protocol, got none; give a list such as ["echo"]')
    return listed
