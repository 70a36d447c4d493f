"""Fetches a URL by whichever version of HTTP works best: python hello_client.py https://example.com/ [CA.PEM]"""

import asyncio
import sys

import godwit


async def main(url: str, authority: "str | None" = None) -> None:
    async with godwit.Client(verify=authority or True) as client:
        response = await client.get(url)
        print(response.http_version, response.status_code, response.reason_phrase)
        print(response.text)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
