"""What Python's httpx gets from a server, as JSON. Usage: httpx_client.py 1|2 URL CERTIFICATE MB"""

import asyncio
import json
import ssl
import sys

import httpx

PIECE = bytes(1 << 20)


async def main(version, url, certificate, megabytes):
    told = {}
    trust = ssl.create_default_context(cafile=certificate)
    # As many connections as requests at once where each needs one.
    limits = httpx.Limits(max_connections=200 if version == 1 else 1)
    options = {"http1": version == 1, "http2": version == 2, "verify": trust, "limits": limits, "timeout": 120}
    async with httpx.AsyncClient(**options) as client:
        page = await client.get(f"{url}/page")
        told["page"], told["version"] = page.text, page.http_version
        told["post"] = (await client.post(f"{url}/echo", content=b"said")).text
        told["download"] = 0
        async with client.stream("GET", f"{url}/large") as answer:
            async for piece in answer.aiter_raw(1 << 20):
                told["download"] += len(piece)

        async def pieces():
            for _ in range(megabytes):
                yield PIECE

        length = {"Content-Length": str(megabytes << 20)}
        told["upload"] = int((await client.post(f"{url}/upload", content=pieces(), headers=length)).text)
        answers = await asyncio.gather(*(client.get(f"{url}/page?{number}") for number in range(200)))
        told["parallel"] = sum(answer.text == "page" for answer in answers)
        for _ in range(20):
            # Over HTTP/2, httpx resets no stream that it gives up, and gives back no room for what
            # still comes of it: only the connection can be given up.
            async with httpx.AsyncClient(**options) as leaving, leaving.stream("GET", f"{url}/large") as answer:
                async for _ in answer.aiter_raw(1 << 14):
                    break
        told["after_cancelling"] = (await client.get(f"{url}/page")).text
    print(json.dumps(told))


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), sys.argv[2], sys.argv[3], int(sys.argv[4])))
