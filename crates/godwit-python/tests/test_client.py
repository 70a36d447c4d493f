"""Requests as httpx's users write them, over every version of HTTP."""

from __future__ import annotations

import asyncio

import godwit
import pytest
from conftest import Site

VERSIONS = [("h3", "HTTP/3"), ("h2", "HTTP/2"), ("http/1.1", "HTTP/1.1")]


@pytest.mark.parametrize(("name", "version"), VERSIONS)
async def test_get(site: Site, name: str, version: str) -> None:
    async with godwit.Client(verify=site.authority, http_versions=[name]) as client:
        response = await client.get(f"{site.url}/about", params={"q": "a b", "n": [1, 2]}, headers={"x-one": "two"})
        assert response.status_code == 200 and response.reason_phrase == "OK" and response.is_success
        assert response.http_version == version
        assert response.headers["Content-Type"] == "application/json" and "x-none" not in response.headers
        assert response.url == f"{site.url}/about?q=a+b&n=1&n=2"
        about = response.json()
        assert about["method"] == "GET" and about["query"] == [["q", "a b"], ["n", "1"], ["n", "2"]]
        assert ["x-one", "two"] in about["headers"]
        assert await response.aread() == response.content == response.text.encode()
        assert response.route and response.remote_address.endswith(f":{site.port}")
        assert repr(response) == f"<Response [200 OK] {version} {response.url}>"


async def test_the_race_finds_http3(site: Site) -> None:
    async with godwit.Client(verify=site.authority) as client:
        # What the first one is depends on the race; the server offers HTTP/3 with every answer.
        while (await client.get(f"{site.url}/about")).http_version != "HTTP/3":
            await asyncio.sleep(0.02)
        response = await client.get(f"{site.url}/about")
        assert response.http_version == "HTTP/3" and response.route


@pytest.mark.parametrize("method", ["post", "put", "patch", "delete", "options"])
async def test_methods(site: Site, method: str) -> None:
    async with godwit.Client(verify=site.authority) as client:
        response = await getattr(client, method)(f"{site.url}/about", content=b"body")
        about = response.json()
        assert (about["method"], about["body"]) == (method.upper(), "body")


async def test_head(site: Site) -> None:
    async with godwit.Client(verify=site.authority) as client:
        response = await client.head(f"{site.url}/size/1000")
        assert response.headers["content-length"] == "1000" and response.content == b""


async def test_bodies(site: Site) -> None:
    async with godwit.Client(verify=site.authority, base_url=f"{site.url}/") as client:

        async def sent(**options: object) -> tuple[str, str]:
            about = (await client.post("about", **options)).json()  # type: ignore[arg-type]
            return dict(about["headers"]).get("content-type", ""), about["body"]

        assert await sent(json={"a": [1, "ü"]}) == ("application/json", '{"a":[1,"ü"]}'.encode().decode("latin-1"))
        assert await sent(data={"a": "1 2", "b": True, "c": None}) == (
            "application/x-www-form-urlencoded",
            "a=1+2&b=true&c=",
        )
        assert await sent(content="text") == ("text/plain; charset=utf-8", "text")
        assert await sent(content=memoryview(b"view")) == ("", "view")
        assert (await sent(json=1, headers={"content-type": "text/x"}))[0] == "text/x"
        with pytest.raises(godwit.ConfigurationError, match="one body"):
            await client.post("about", content=b"x", json=1)
        with pytest.raises(godwit.ConfigurationError, match="expected bytes"):
            await client.post("about", content=5)  # type: ignore[arg-type]


async def test_what_a_client_is_set_to_goes_with_every_request(site: Site) -> None:
    async with godwit.Client(
        verify=site.authority, headers={"x-a": "1", "x-b": "1"}, params={"p": "1"}, auth=("me", "secret")
    ) as client:
        about = (await client.get(f"{site.url}/about?q=0", headers={"X-B": "2"}, params={"r": "2"})).json()
        headers = dict(about["headers"])
        assert (headers["x-a"], headers["x-b"], headers["authorization"]) == ("1", "2", "Basic bWU6c2VjcmV0")
        assert about["query"] == [["q", "0"], ["p", "1"], ["r", "2"]]


async def test_redirects(site: Site) -> None:
    async with godwit.Client(verify=site.authority) as client:
        response = await client.get(f"{site.url}/redirect/3")
        assert response.status_code == 200 and response.url == f"{site.url}/about"
        assert response.request.url == f"{site.url}/redirect/3"
    async with godwit.Client(verify=site.authority, max_redirects=2) as client:
        with pytest.raises(godwit.RedirectError, match="redirected more than 2 times"):
            await client.get(f"{site.url}/redirect/3")
    async with godwit.Client(verify=site.authority, follow_redirects=False) as client:
        response = await client.get(f"{site.url}/redirect/3")
        assert response.is_redirect and response.headers["location"] == "/redirect/2"


async def test_text_and_repeated_headers(site: Site) -> None:
    async with godwit.Client(verify=site.authority) as client:
        response = await client.get(f"{site.url}/latin")
        assert (response.encoding, response.text) == ("iso8859-1", "für")
        cookies = (await client.get(f"{site.url}/cookies")).headers
        assert cookies.get_list("Set-Cookie") == ["a=1", "b=2"] and cookies["set-cookie"] == "a=1, b=2"
        assert len([name for name, _ in cookies.multi_items() if name == "set-cookie"]) == 2


@pytest.mark.parametrize(("name", "version"), VERSIONS)
async def test_parallel_requests(site: Site, name: str, version: str) -> None:
    async with godwit.Client(verify=site.authority, http_versions=[name]) as client:
        requests = [client.post(f"{site.url}/echo", content=f"number {n}") for n in range(200)]
        responses = await asyncio.gather(*requests)
        assert [response.text for response in responses] == [f"number {n}" for n in range(200)]
        assert {response.http_version for response in responses} == {version}


def test_one_event_loop_after_the_other(site: Site) -> None:
    client = godwit.Client(verify=site.authority)

    async def fetch() -> int:
        return (await client.get(f"{site.url}/about")).status_code

    assert [asyncio.run(fetch()) for _ in range(3)] == [200, 200, 200]
    asyncio.run(client.aclose())
    with pytest.raises(godwit.ClosedError, match="make another one"):
        asyncio.run(fetch())


def test_without_asyncio(site: Site) -> None:
    response = godwit.get(f"{site.url}/lines", verify=site.authority, http_versions=["h3"])
    assert response.http_version == "HTTP/3" and response.text.splitlines()[0] == "first"
    assert godwit.post(f"{site.url}/echo", verify=str(site.authority), content=b"x").content == b"x"
    for pem in (site.authority.read_bytes(), site.authority.read_text()):
        assert godwit.get(f"{site.url}/about", verify=pem).is_success
    assert godwit.put(f"{site.url}/about", verify=site.authority.read_bytes()).json()["method"] == "PUT"


async def test_without_asyncio_within_it(site: Site) -> None:
    with pytest.raises(godwit.ClosedError, match="await a method of godwit.Client"):
        godwit.get(site.url)
