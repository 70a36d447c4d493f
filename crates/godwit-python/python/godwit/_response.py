"""Requests and responses as applications see them."""

from __future__ import annotations

import asyncio
import codecs
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from ._errors import ClosedError, HTTPStatusError
from ._godwit import HttpResponse
from ._headers import Headers


@dataclass(frozen=True)
class Request:
    """What was asked for."""

    method: str
    url: str
    headers: Headers


class Response:
    """A response. The head is there from the beginning, the body when it has been read."""

    request: Request
    """What it answers."""
    status_code: int
    """The status, such as 200."""
    http_version: str
    """HTTP/3, HTTP/2 or HTTP/1.1."""
    url: str
    """The URL, which is another one than that of the request after a redirect."""
    headers: Headers
    """The headers."""

    def __init__(
        self,
        native: HttpResponse,
        request: Request,
        max_body: int | None,
        upload: asyncio.Task[None] | None = None,
    ) -> None:
        self._native = native
        self._max_body = max_body
        self._upload = upload
        self._content: bytes | None = None
        self._streamed = False
        self.request = request
        self.status_code = native.status
        self.http_version = native.version
        self.url = native.url
        self.headers = Headers._of_raw(native.headers)

    @property
    def route(self) -> str:
        """Why it was this version of HTTP, in words."""
        return self._native.route

    @property
    def remote_address(self) -> str:
        """Address and port of who answered."""
        return self._native.remote

    @property
    def reason_phrase(self) -> str:
        """What the status is called, or nothing."""
        try:
            return HTTPStatus(self.status_code).phrase
        except ValueError:
            return ""

    @property
    def is_success(self) -> bool:
        """Whether the status is 200 to 299."""
        return 200 <= self.status_code < 300

    @property
    def is_redirect(self) -> bool:
        """Whether it leads on to another URL."""
        return self.status_code in (301, 302, 303, 307, 308) and "location" in self.headers

    @property
    def is_client_error(self) -> bool:
        """Whether the status is 400 to 499."""
        return 400 <= self.status_code < 500

    @property
    def is_server_error(self) -> bool:
        """Whether the status is 500 to 599."""
        return 500 <= self.status_code < 600

    @property
    def is_error(self) -> bool:
        """Whether the status is 400 to 599."""
        return 400 <= self.status_code < 600

    def raise_for_status(self) -> Response:
        """Raises `HTTPStatusError` if the status says that the request failed (400 and more)."""
        if self.is_error:
            whose = "the client's" if self.is_client_error else "the server's"
            raise HTTPStatusError(
                f"{self.request.method} {self.url}: {self.status_code} {self.reason_phrase} ({whose} fault)",
                response=self,
            )
        return self

    @property
    def content(self) -> bytes:
        """The body. A response of `Client.stream` has it after `aread`."""
        if self._content is None:
            raise ClosedError("the body has not been read; await response.aread() first")
        return self._content

    @property
    def encoding(self) -> str:
        """The character set that the response names, or UTF-8."""
        for part in self.headers.get("content-type", "").split(";")[1:]:
            name, _, value = part.partition("=")
            if name.strip().lower() == "charset":
                try:
                    return codecs.lookup(value.strip().strip("\"'")).name
                except LookupError:
                    break
        return "utf-8"

    @property
    def text(self) -> str:
        """The body as text; what is not in its character set is replaced."""
        return self.content.decode(self.encoding, "replace")

    def json(self, **options: Any) -> Any:
        """The body, read as JSON. The options are those of `json.loads`."""
        return json.loads(self.content, **options)

    async def aread(self) -> bytes:
        """Reads the whole body, unless it has been read, and gives it back."""
        if self._content is None:
            if self._streamed:
                raise ClosedError("the body has been streamed, and is gone; read it with aread() instead")
            try:
                self._content = await self._native.rest(self._max_body)
            finally:
                await self._end_upload()
        return self._content

    async def aiter_bytes(self, chunk_size: int | None = None) -> AsyncIterator[bytes]:
        """The body as it comes, or in pieces of this many bytes (the last has fewer)."""
        if chunk_size is not None and chunk_size < 1:
            raise ValueError(f"chunk_size: expected 1 or more, got {chunk_size}")
        if self._content is not None:
            step = chunk_size or max(1, len(self._content))
            for start in range(0, len(self._content), step):
                yield self._content[start : start + step]
            return
        if self._streamed:
            raise ClosedError("the body has been streamed, and is gone")
        self._streamed = True
        rest = bytearray()
        while (chunk := await self._native.chunk()) is not None:
            if chunk_size is None:
                yield chunk
                continue
            rest += chunk
            while len(rest) >= chunk_size:
                yield bytes(rest[:chunk_size])
                del rest[:chunk_size]
        if rest:
            yield bytes(rest)
        await self._end_upload()

    async def aiter_text(self, chunk_size: int | None = None) -> AsyncIterator[str]:
        """The same as text, whatever pieces characters come in."""
        decoder = codecs.getincrementaldecoder(self.encoding)("replace")
        async for chunk in self.aiter_bytes(chunk_size):
            text = decoder.decode(chunk)
            if text:
                yield text
        text = decoder.decode(b"", final=True)
        if text:
            yield text

    async def aiter_lines(self) -> AsyncIterator[str]:
        """The lines of the text, without their ends."""
        rest = ""
        async for text in self.aiter_text():
            rest += text
            *lines, rest = rest.split("\n")
            for line in lines:
                yield line[:-1] if line.endswith("\r") else line
        if rest:
            yield rest

    async def aclose(self) -> None:
        """Gives the rest of the body up."""
        await self._end_upload()
        if self._content is None:
            self._streamed = True
        await self._native.close()

    async def _end_upload(self) -> None:
        """A body that is still being sent is wanted by nobody any more."""
        upload, self._upload = self._upload, None
        if upload is not None:
            await settle(upload)

    def __repr__(self) -> str:
        return f"<Response [{self.status_code} {self.reason_phrase}] {self.http_version} {self.url}>"


async def settle(task: asyncio.Task[None]) -> None:
    """Ends a task whose outcome concerns nobody."""
    task.cancel()
    await asyncio.wait([task])
    if not task.cancelled():
        task.exception()


