"""The application behind the servers: pages with a counter each.

GET /p/N answers with the counter as it was when the request came; the page takes a while, as pages
do, and comes in two pieces. POST /p/N changes a page, and answers with the new counter; it waits for
a moment until somebody has the page made, so that a fetch is under way when the page changes. A server
that says X-LSCACHE is answered in the fields of LiteSpeed's protocol. GET /told says how many pages
were made, and how many changes met a fetch.
"""

import asyncio
import contextlib
import json
import re
import sys

MAKING_SECONDS = 0.02
MEETING_SECONDS = 0.1


class Page:
    def __init__(self):
        self.counter = 0
        self.making = 0
        self.begun = asyncio.Event()


class Application:
    def __init__(self, pages):
        self.pages = [Page() for _ in range(pages)]
        self.fetches = self.met = 0

    async def serve(self, reader, writer):
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                method, target, _ = head.split(b"\r\n", 1)[0].split(b" ")
                if length := re.search(rb"(?i)\r\ncontent-length: *(\d+)", head):
                    await reader.readexactly(int(length[1]))
                await self.answer(writer, method, target, b"\r\nx-lscache:" in head.lower())
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    async def answer(self, writer, method, target, is_litespeed):
        if target == b"/told":
            return await send(writer, [], json.dumps({"fetches": self.fetches, "met": self.met}))
        number = int(target.rsplit(b"/", 1)[1])
        page = self.pages[number]
        if method == b"POST":
            return await self.change(writer, number, page, is_litespeed)
        self.fetches += 1
        page.making += 1
        page.begun.set()
        try:
            fields = ["Cache-Control: max-age=3600", f"xkey: page:{number} every"]
            if is_litespeed:
                fields = ["X-LiteSpeed-Cache-Control: public,max-age=3600", f"X-LiteSpeed-Tag: page:{number},every"]
            return await send(writer, fields, f"version {page.counter};", MAKING_SECONDS)
        finally:
            page.making -= 1

    async def change(self, writer, number, page, is_litespeed):
        if not page.making:
            page.begun.clear()
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(page.begun.wait(), MEETING_SECONDS)
        self.met += page.making > 0
        page.counter += 1
        name = "X-LiteSpeed-Purge: public," if is_litespeed else "X-Cache-Purge-Tags: "
        return await send(writer, [f"{name}page:{number}"], str(page.counter))


async def send(writer, fields, body, seconds=0.0):
    head = "".join(f"{field}\r\n" for field in fields)
    writer.write(f"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {len(body)}\r\n{head}\r\n".encode())
    half = len(body) // 2
    writer.write(body[:half].encode())
    await writer.drain()
    await asyncio.sleep(seconds)
    writer.write(body[half:].encode())
    await writer.drain()


async def main(port, pages):
    server = await asyncio.start_server(Application(pages).serve, "127.0.0.1", port, backlog=1024)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), int(sys.argv[2])))
