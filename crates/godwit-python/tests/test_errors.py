"""What goes wrong: which exception it is, and that it says what to do."""

from __future__ import annotations

import asyncio
import builtins
import gc
import socket
from pathlib import Path

import godwit
import pytest
from conftest import Site
from test_client import VERSIONS


async def test_status(site: Site) -> None:
    async with godwit.Client(verify=site.authority) as client:
        with pytest.raises(godwit.HTTPStatusError, match="404 Not Found") as caught:
            (await client.get(f"{site.url}/status/404")).raise_for_status()
        assert caught.value.response.status_code == 404 and caught.value.response.text == "as you wish\n"
        response = await client.get(f"{site.url}/status/200")
        assert response.raise_for_status() is response
        assert (await client.get(f"{site.url}/status/500")).is_server_error


@pytest.mark.parametrize(("name", "version"), VERSIONS)
async def test_timeouts(site: Site, name: str, version: str) -> None:
    async with godwit.Client(verify=site.authority, timeout=0.3, http_versions=[name]) as client:
        with pytest.raises(godwit.TimeoutError, match="give it more time") as caught:
            await client.get(f"{site.url}/never")
        assert isinstance(caught.value, builtins.TimeoutError) and isinstance(caught.value, godwit.Error)
        with pytest.raises(godwit.TimeoutError):
            await client.get(f"{site.url}/stall")
        assert (await client.get(f"{site.url}/about", timeout=None)).http_version == version


@pytest.mark.parametrize("path", ["never", "stall"])
@pytest.mark.parametrize(("name", "version"), VERSIONS)
async def test_cancelling_a_task_cancels_the_request(site: Site, name: str, version: str, path: str) -> None:
    who = f"cancelled-{name}-{path}"
    async with godwit.Client(verify=site.authority, http_versions=[name]) as client:
        request = asyncio.create_task(client.get(f"{site.url}/{path}?{who}"))
        assert await asyncio.to_thread(site.upstream.wait_until_waiting, who)
        request.cancel()
        with pytest.raises(asyncio.CancelledError):
            await request
        # The client lives, and yet whoever answers is told.
        assert await asyncio.to_thread(site.upstream.wait_until_gone, who)
        assert (await client.get(f"{site.url}/about")).http_version == version


@pytest.mark.parametrize("name", ["h3", "h2", "http/1.1"])
async def test_a_stream_that_is_left_or_forgotten_is_given_up(site: Site, name: str) -> None:
    async with godwit.Client(verify=site.authority, http_versions=[name]) as client:
        async with client.stream("GET", f"{site.url}/stall?left-{name}") as response:
            async for chunk in response.aiter_bytes():
                assert chunk == b"beginning"
                break
        assert await asyncio.to_thread(site.upstream.wait_until_gone, f"left-{name}")
        stream = client.stream("GET", f"{site.url}/stall?forgotten-{name}")
        await stream.__aenter__()
        del stream, response
        gc.collect()
        assert await asyncio.to_thread(site.upstream.wait_until_gone, f"forgotten-{name}")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


async def test_nobody_listens() -> None:
    async with godwit.Client() as client:
        with pytest.raises(godwit.ConnectError, match="nobody listens on TCP port"):
            await client.get(f"https://127.0.0.1:{free_port()}/")


async def test_no_such_name() -> None:
    async with godwit.Client(addresses={"known.invalid": ["127.0.0.1:1"]}) as client:
        with pytest.raises(godwit.ConnectError, match="nobody listens"):
            await client.get("https://known.invalid/")


async def test_certificates(site: Site, tmp_path: Path) -> None:
    for versions in (["h3"], ["h2"], None):
        async with godwit.Client(http_versions=versions) as client:
            with pytest.raises(godwit.CertificateError, match="add its certificate to the roots"):
                await client.get(site.url)
    async with godwit.Client(verify=False) as client:
        assert (await client.get(f"{site.url}/about")).is_success
    with pytest.raises(godwit.ConfigurationError, match="no such file"):
        godwit.Client(verify=tmp_path / "missing.pem")
    with pytest.raises(godwit.ConfigurationError, match="give a PEM file"):
        godwit.Client(verify=b"nothing")


@pytest.mark.parametrize(("name", "version"), VERSIONS)
async def test_a_server_that_dies(own_site: Site, name: str, version: str) -> None:
    async with godwit.Client(verify=own_site.authority, http_versions=[name], timeout=3) as client:
        with pytest.raises((godwit.ProtocolError, godwit.TimeoutError)):
            async with client.stream("GET", f"{own_site.url}/stall") as response:
                assert response.http_version == version
                async for _ in response.aiter_bytes():
                    own_site.kill()
        with pytest.raises(godwit.Error):
            await client.get(f"{own_site.url}/about", timeout=1)


async def test_settings_that_make_no_sense(site: Site) -> None:
    for settings, text in [
        ({"timeout": -1.0}, "timeout: -1 is no length of time"),
        ({"http_versions": ["h3", "h2"]}, "http_versions: expected one of h3, h2 and http/1.1"),
        ({"http_versions": ["spdy"]}, "got ..spdy"),
        ({"proxy": "ftp://x"}, "proxy"),
        ({"addresses": {"x": ["nowhere"]}}, "is no address with a port"),
    ]:
        with pytest.raises(godwit.ConfigurationError, match=text):
            godwit.Client(**settings)  # type: ignore[arg-type]
    async with godwit.Client(verify=site.authority) as client:
        with pytest.raises(godwit.RequestError):
            await client.get("no url")
        with pytest.raises(godwit.RequestError, match="HTTP/3 is always encrypted"):
            await client.get("http://localhost/", http_versions=["h3"])
        with pytest.raises(godwit.ConfigurationError, match="is no method"):
            await client.request("GET IT", site.url)
        with pytest.raises(godwit.ConfigurationError, match="name of a header"):
            await client.get(site.url, headers={"a b": "c"})
        with pytest.raises(godwit.ConfigurationError, match="value of the header x-a"):
            await client.get(site.url, headers={"x-a": "b\nc"})
