"""`python -m bench.viewers BASE COUNT`: open dashboard pages and follow their updates, as browsers do.

The viewers run in a separate process and only count bytes, because real browsers run on other machines and use no
processor time on this one. The process prints ``open`` when every viewer is following its page, and exits when its
standard input is closed.
"""

import asyncio
import sys
from urllib.parse import urlsplit

# Pages that people keep open, in the order in which viewers open them.
VIEWED = ("", "/tarefas", "/tarefas/job_7", "/filas", "/filas/default?estado=dead", "/processos", "/freios")


async def follow(base: str, number: int, opened: asyncio.Semaphore) -> None:
    """Load a page and read its stream. The server ends a stream after some minutes; the viewer then opens a new one."""
    path = VIEWED[number % len(VIEWED)]
    await load(base + path)
    while True:
        reader, writer = await request(base + path, "text/event-stream")
        if b" 200 " not in (await reader.readline()):
            raise SystemExit(f"bench: {path} has no stream")
        await reader.readuntil(b"data:")
        opened.release()
        while await reader.read(65536):
            pass
        writer.close()


async def load(address: str) -> None:
    reader, writer = await request(address, "text/html")
    await reader.read(-1)
    writer.close()


async def request(address: str, accept: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    parts = urlsplit(address)
    reader, writer = await asyncio.open_connection(parts.hostname, parts.port, limit=4 << 20)
    target = parts.path + (f"?{parts.query}" if parts.query else "")
    head = f"GET {target} HTTP/1.1\r\nHost: {parts.netloc}\r\nAccept: {accept}\r\nConnection: close\r\n\r\n"
    writer.write(head.encode())
    return reader, writer


async def main(base: str, count: int) -> None:
    opened = asyncio.Semaphore(0)
    async with asyncio.TaskGroup() as viewers:
        for number in range(count):
            viewers.create_task(follow(base, number, opened))
            await asyncio.sleep(0.1)  # people do not all arrive in the same instant
        for _ in range(count):
            await opened.acquire()
        print("open", flush=True)
        await asyncio.to_thread(sys.stdin.read)
        sys.exit(0)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2])))
