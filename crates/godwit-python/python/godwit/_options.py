"""What every way to send a request takes; see `Client.request` for what it means."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Optional, TypedDict

from ._body import Content, Fields
from ._headers import HeadersLike


class RequestOptions(TypedDict, total=False):
    """Options of a request."""

    params: Optional[Fields]
    headers: Optional[HeadersLike]
    content: Optional[Content]
    data: Optional[Fields]
    json: Any
    auth: "tuple[str, str] | None"
    timeout: Optional[float]
    http_versions: "Iterable[str] | None"
