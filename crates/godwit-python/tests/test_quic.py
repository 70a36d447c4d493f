"""Connections, streams and datagrams, with both ends in this process."""

from __future__ import annotations

import asyncio
import contextlib
import gc
from collections.abc import AsyncIterator
from pathlib import Path

import godwit
import pytest
from godwit import quic

CERTIFICATE = quic.self_signed_certificate("localhost")
TRUST = CERTIFICATE.certificate.encode()


def listen(alpn: str = "test", **options: float) -> quic.Listener:
    return quic.listen(
        ("127.0.0.1", 0),
        certificate=CERTIFICATE.certificate,
        private_key=CERTIFICATE.private_key,
        alpn=[alpn],
        **options,  # type: ignore[arg-type]
    )


@contextlib.asynccontextmanager
async def pair(**options: float) -> AsyncIterator[tuple[quic.Connection, quic.Connection]]:
    """A client's connection, and the server's end of it."""
    async with listen(**options) as listener:
        accepting = asyncio.create_task(listener.accept())
        async with quic.connect("localhost", listener.address[1], alpn=["test"], verify=TRUST) as client:
            server = await accepting
            assert server is not None
            yield client, server


async def test_a_stream_both_ways() -> None:
    async with pair() as (client, server):
        stream = await client.open_stream()
        assert stream.id == 0 and client.alpn == server.alpn == "test" and server.server_name == "localhost"
        await stream.write(b"hello, ")
        await stream.write(memoryview(b"world"))
        await stream.finish()
        taken = await server.accept_stream()
        assert await taken.read_to_end() == b"hello, world"
        await taken.write(b"and back")
        await taken.finish()
        assert await stream.read(3) == b"and" and await stream.read() == b" back"
        assert await stream.read() == b"" and await stream.read() == b""
        with pytest.raises(godwit.ClosedError, match="finished"):
            await stream.write(b"more")


async def test_one_way_and_iteration() -> None:
    async with pair() as (client, server):
        stream = await server.open_unidirectional_stream()
        sending = asyncio.create_task(send(stream, bytes(5_000_000)))
        taken = await client.accept_unidirectional_stream()
        assert not hasattr(taken, "write") and not hasattr(stream, "read")
        assert sum([len(chunk) async for chunk in taken]) == 5_000_000
        await sending
        numbers = server.statistics()
        assert numbers.stream_bytes_sent == 5_000_000 and 0 < numbers.min_rtt <= numbers.rtt and numbers.mtu >= 1200


async def send(stream: quic.SendStream, data: bytes) -> None:
    await stream.write(data)
    await stream.finish()


async def test_many_streams() -> None:
    async def echo(stream: quic.Stream) -> None:
        await send(stream, await stream.read_to_end())

    async def ask(connection: quic.Connection, number: int) -> int:
        stream = await connection.open_stream()
        await send(stream, str(number).encode())
        return int(await stream.read_to_end())

    async with pair(max_streams=20) as (client, server):
        asking = asyncio.gather(*[ask(client, number) for number in range(200)])
        answering = [asyncio.create_task(echo(await server.accept_stream())) for _ in range(200)]
        assert await asking == list(range(200))
        await asyncio.gather(*answering)


async def test_writing_waits_for_the_reader() -> None:
    async with pair() as (client, server):
        stream = await client.open_stream()
        written = 0

        async def write() -> None:
            nonlocal written
            for _ in range(200):
                await stream.write(bytes(1 << 20))
                written += 1
            await stream.finish()

        writing = asyncio.create_task(write())
        taken = await server.accept_stream()
        before = -1
        while before != written:
            before = written
            await asyncio.sleep(1)
        assert written < 200
        assert sum([len(chunk) async for chunk in taken]) == 200 << 20
        await writing


async def test_giving_streams_up() -> None:
    async with pair() as (client, server):
        stream = await client.open_stream()
        await stream.write(b"x")
        taken = await server.accept_stream()
        stream.reset(7)
        with pytest.raises(godwit.StreamReset, match="code 0x7") as reset:
            await taken.read_to_end()
        assert reset.value.code == 7
        with pytest.raises(godwit.ClosedError, match="reset by this end"):
            await stream.write(b"y")
        taken.stop(8)
        second = await client.open_stream()
        await second.write(b"x")
        (await server.accept_stream()).stop(9)
        with pytest.raises(godwit.StreamStopped, match="code 0x9") as stopped:
            while True:
                await second.write(bytes(1 << 20))
        assert stopped.value.code == 9
        with pytest.raises(godwit.ConfigurationError, match="below 2\\^62"):
            second.reset(1 << 62)


async def test_giving_up_what_somebody_waits_for() -> None:
    async with pair() as (client, server):
        stream = await client.open_stream()
        await stream.write(b"x")
        taken = await server.accept_stream()
        assert await taken.read() == b"x"
        reading = asyncio.create_task(taken.read())
        await asyncio.sleep(0.05)
        taken.stop(1)
        with pytest.raises(godwit.ClosedError, match="stopped by this end"):
            await reading
        second = await client.open_stream()
        writing = asyncio.create_task(second.write(bytes(200 << 20)))
        await server.accept_stream()
        await asyncio.sleep(0.05)
        second.reset(2)
        with pytest.raises((godwit.ClosedError, godwit.StreamStopped)):
            await writing


async def test_cancelled_reads_leave_the_stream_as_it_is() -> None:
    async with pair() as (client, server):
        stream = await client.open_stream()
        await stream.write(b"a")
        taken = await server.accept_stream()
        assert await taken.read() == b"a"
        for _ in range(3):
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(taken.read(), 0.01)
        await send(stream, b"b")
        assert await taken.read_to_end() == b"b"


async def test_limits() -> None:
    async with pair() as (client, server):
        for size in (100, 101):
            await send(await client.open_unidirectional_stream(), bytes(size))
        assert len(await (await server.accept_unidirectional_stream()).read_to_end(100)) == 100
        with pytest.raises(godwit.LimitExceeded, match="limit of 100 bytes"):
            await (await server.accept_unidirectional_stream()).read_to_end(100)


async def test_datagrams() -> None:
    async with pair() as (client, server):
        assert (client.max_datagram_size or 0) > 1000
        client.send_datagram(b"ping")
        assert await server.receive_datagram() == b"ping"
        server.send_datagram(bytearray(b"pong"))
        assert await client.receive_datagram() == b"pong"
        assert client.statistics().datagrams_sent == 1 and client.statistics().datagrams_received == 1
        with pytest.raises(godwit.DatagramError, match="more than"):
            client.send_datagram(bytes(100_000))


async def test_closing_tells_the_peer_why() -> None:
    async with pair() as (client, server):
        reading = asyncio.create_task(server.accept_stream())
        await client.close(42, "enough")
        for waiting in (reading, server.wait_closed()):
            with pytest.raises(godwit.ConnectionLost, match="enough") as lost:
                await waiting
            error = lost.value
            assert (error.kind, error.code, error.reason) == ("closed_by_peer", 42, b"enough")
        assert client.is_closed and server.is_closed
        with pytest.raises(godwit.ConnectionLost) as lost:
            await client.open_stream()
        assert lost.value.kind == "closed_locally" and lost.value.code is None
        await client.wait_closed()


async def test_a_listener_that_closes_closes_its_connections() -> None:
    async with listen() as listener:
        taken = asyncio.create_task(listener.accept())
        async with quic.connect("localhost", listener.address[1], alpn=["test"], verify=TRUST) as client:
            assert await taken is not None
            waiting = asyncio.create_task(listener.accept())
            await listener.close(5, b"ends")
            assert await waiting is None and [one async for one in listener] == []
            with pytest.raises(godwit.ConnectionLost) as lost:
                await client.wait_closed()
            assert lost.value.code == 5


async def test_what_nobody_refers_to_is_closed() -> None:
    async with listen() as listener:
        client: quic.Connection | None = await quic.connect(
            "localhost", listener.address[1], alpn=["test"], verify=TRUST
        )
        assert client is not None
        server = await listener.accept()
        assert server is not None
        stream: quic.Stream | None = await client.open_stream()
        assert stream is not None
        await stream.write(b"x")
        taken = await server.accept_stream()
        stream = None
        gc.collect()
        with pytest.raises(godwit.StreamReset):
            await taken.read_to_end()
        client = None
        gc.collect()
        await server.wait_closed()


async def test_handshakes_that_fail(tmp_path: Path) -> None:
    other = quic.self_signed_certificate("localhost").certificate.encode()
    async with listen() as listener:
        port = listener.address[1]
        with pytest.raises(godwit.CertificateError, match="no authority that is trusted here"):
            await quic.connect("localhost", port, alpn=["test"])
        with pytest.raises(godwit.CertificateError, match="certificate was not accepted"):
            await quic.connect("localhost", port, alpn=["test"], verify=other)
        with pytest.raises(godwit.CertificateError, match="certificate was not accepted"):
            await quic.connect("127.0.0.1", port, alpn=["test"], verify=TRUST)
        with pytest.raises(godwit.ConnectError, match="no application protocol"):
            await quic.connect("localhost", port, alpn=["other"], verify=TRUST)
        file = tmp_path / "trust.pem"
        file.write_bytes(TRUST)
        await (
            await quic.connect("127.0.0.1", port, alpn=["test"], verify=file, server_name="localhost")
        ).close()
        await (await quic.connect("localhost", port, alpn="test", verify=False)).close()
    with pytest.raises((godwit.TimeoutError, godwit.ConnectError)):
        await quic.connect("127.0.0.1", port, alpn=["test"], verify=False, timeout=0.3)


def test_settings_that_make_no_sense() -> None:
    with pytest.raises(godwit.ConfigurationError, match="alpn: expected the name of a protocol"):
        quic.connect("localhost", 1, alpn=[])
    with pytest.raises(godwit.ConfigurationError, match="give PEM text or the path"):
        quic.connect("localhost", 1, alpn=["x"], verify="missing.pem")
    with pytest.raises(godwit.ConfigurationError, match="is no address with a port"):
        quic.listen("localhost", certificate=b"", private_key=b"", alpn=["x"])
    with pytest.raises(godwit.ConfigurationError):
        quic.listen("127.0.0.1:0", certificate=b"", private_key=b"", alpn=["x"])


async def test_idle_connections_end() -> None:
    async with listen(idle_timeout=1.0) as listener:
        client = await quic.connect("localhost", listener.address[1], alpn=["test"], verify=TRUST)
        with pytest.raises(godwit.ConnectionLost, match="nothing was heard") as lost:
            await client.wait_closed()
        assert lost.value.kind == "idle_timed_out"
