"""Bodies of requests: what they are given as, and how those are sent that are produced meanwhile."""

from __future__ import annotations

import asyncio
import json as json_module
from collections.abc import AsyncIterable, Iterable, Mapping
from typing import Any, Union
from urllib.parse import urlencode

from ._errors import ConfigurationError
from ._godwit import Upload

#: A body: bytes, text (sent as UTF-8), or an asynchronous iterator of bytes.
Content = Union[bytes, bytearray, memoryview, str, "AsyncIterable[bytes]"]
#: What a form or a query is made of.
Fields = Union["Mapping[str, Any]", "Iterable[tuple[str, Any]]"]


class Body:
    """A request's body: bytes, or what produces them."""

    __slots__ = ("content", "content_type", "source")

    def __init__(
        self,
        content: bytes | None = None,
        content_type: str | None = None,
        source: AsyncIterable[bytes] | None = None,
    ) -> None:
        self.content = content
        self.content_type = content_type
        self.source = source


def body_of(content: Content | None, data: Fields | None, json: Any) -> Body:
    """The body that was asked for, of which there is one at most."""
    if sum(given is not None for given in (content, data, json)) > 1:
        raise ConfigurationError("a request has one body: give content, data or json, not several of them")
    if json is not None:
        text = json_module.dumps(json, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
        return Body(text.encode("utf-8"), "application/json")
    if data is not None:
        return Body(encoded(data).encode("ascii"), "application/x-www-form-urlencoded")
    if content is None:
        return Body()
    if isinstance(content, str):
        return Body(content.encode("utf-8"), "text/plain; charset=utf-8")
    if isinstance(content, (bytes, bytearray, memoryview)):
        return Body(bytes(content))
    if isinstance(content, AsyncIterable):
        return Body(source=content)
    raise ConfigurationError(
        f"content: expected bytes, text or an asynchronous iterator of bytes, got {type(content).__name__}"
    )


def encoded(fields: Fields) -> str:
    """Fields as they stand in a query or a form; a list gives its name several values."""
    pairs = fields.items() if isinstance(fields, Mapping) else fields
    return urlencode([(name, _word(one)) for name, value in pairs for one in _values(value)])


def _values(value: Any) -> Iterable[Any]:
    return value if isinstance(value, (list, tuple)) else (value,)


def _word(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


async def pump(source: AsyncIterable[bytes], upload: Upload) -> None:
    """Sends what the source produces, no faster than the server takes it."""
    async for chunk in source:
        if not isinstance(chunk, (bytes, bytearray, memoryview)):
            raise ConfigurationError(f"a body's iterator: expected bytes, got {type(chunk).__name__}")
        if not await upload.send(bytes(chunk)):
            return
    await upload.finish()


def start(source: AsyncIterable[bytes], upload: Upload) -> asyncio.Task[None]:
    """Begins to do so."""
    return asyncio.ensure_future(pump(source, upload))
