"""Bodies that are streamed, both ways."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import godwit
import pytest
from conftest import Site
from test_client import VERSIONS

BIG = 20_000_000


@pytest.mark.parametrize(("name", "version"), VERSIONS)
async def test_big_bodies_come_in_pieces(site: Site, name: str, version: str) -> None:
    async with godwit.Client(verify=site.authority, http_versions=[name]) as client:
        async with client.stream("GET", f"{site.url}/size/{BIG}") as response:
            assert response.http_version == version
            length = 0
            async for chunk in response.aiter_bytes():
                assert chunk
                length += len(chunk)
            assert length == BIG
            with pytest.raises(godwit.ClosedError, match="streamed"):
                await response.aread()
        whole = await client.get(f"{site.url}/size/{BIG}")
        assert len(whole.content) == BIG and whole.content[:256] == bytes(range(256))


async def test_pieces_of_one_size_and_lines(site: Site) -> None:
    async with godwit.Client(verify=site.authority) as client:
        async with client.stream("GET", f"{site.url}/size/1000") as response:
            assert [len(chunk) async for chunk in response.aiter_bytes(300)] == [300, 300, 300, 100]
        async with client.stream("GET", f"{site.url}/lines") as response:
            assert [line async for line in response.aiter_lines()] == ["first", "zweite – Zeile", "last"]
        async with client.stream("GET", f"{site.url}/lines") as response:
            assert "".join([text async for text in response.aiter_text(1)]) == "first\nzweite – Zeile\r\nlast"
        async with client.stream("GET", f"{site.url}/lines") as response:
            with pytest.raises(godwit.ClosedError, match="has not been read"):
                print(response.text)
            await response.aread()
            assert response.text.startswith("first")
            assert [len(chunk) async for chunk in response.aiter_bytes(10)][0] == 10


@pytest.mark.parametrize(("name", "version"), VERSIONS)
async def test_uploads_are_streamed(site: Site, name: str, version: str) -> None:
    async def produce() -> AsyncIterator[bytes]:
        for number in range(100):
            yield bytes([number]) * 50_000

    async with godwit.Client(verify=site.authority, http_versions=[name]) as client:
        response = await client.post(f"{site.url}/echo", content=produce())
        assert response.http_version == version
        assert response.content == b"".join([bytes([number]) * 50_000 for number in range(100)])
        big = await client.put(f"{site.url}/about", content=bytes(BIG))
        assert big.json()["length"] == BIG


async def test_an_upload_goes_no_faster_than_it_is_taken(site: Site) -> None:
    produced = 0

    async def produce() -> AsyncIterator[bytes]:
        nonlocal produced
        while True:
            yield bytes(1 << 20)
            produced += 1

    async with godwit.Client(verify=site.authority, http_versions=["h3"]) as client:
        # Nobody reads it there: what fits into windows and buffers is all that is produced.
        sending = asyncio.create_task(client.post(f"{site.url}/deaf", content=produce()))
        before = -1
        while before != produced or produced == 0:
            before = produced
            await asyncio.sleep(1)
        assert produced < 1000
        sending.cancel()
        with pytest.raises(asyncio.CancelledError):
            await sending
    site.upstream.server.listening.set()


async def test_a_source_that_fails_fails_the_request(site: Site) -> None:
    async def produce() -> AsyncIterator[bytes]:
        yield b"beginning"
        raise KeyError("no more")

    async def text() -> AsyncIterator[bytes]:
        yield "text"  # type: ignore[misc]

    async with godwit.Client(verify=site.authority) as client:
        with pytest.raises(KeyError, match="no more"):
            await client.post(f"{site.url}/echo", content=produce())
        with pytest.raises(godwit.ConfigurationError, match="expected bytes, got str"):
            await client.post(f"{site.url}/echo", content=text())
        assert (await client.post(f"{site.url}/echo", content=b"still there")).text == "still there"


async def test_too_much_is_not_kept(site: Site) -> None:
    async with godwit.Client(verify=site.authority, max_body=100_000) as client:
        with pytest.raises(godwit.ResponseError, match="a larger max_body"):
            await client.get(f"{site.url}/size/200000")
        assert len((await client.get(f"{site.url}/size/100000")).content) == 100_000
