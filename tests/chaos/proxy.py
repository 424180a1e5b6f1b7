"""TCP links of our own, between parts that think they talk to each other."""

from __future__ import annotations

import asyncio
import random
import threading
from collections.abc import Callable

_CHUNK = 1 << 16
# Smaller chunks are mostly of gRPC itself.
_FLIP_BYTES = 300


class Link:
    """Passes on bytes to `target`, until it is told otherwise.

    Bytes that are held back come later, as they do in a network that drops
    packets for a while. Methods may be called from any thread.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, seed: int) -> None:
        self.target: tuple[str, int] = ("127.0.0.1", 0)
        self.address = ""
        self.flipped = 0
        self._loop = loop
        self._random = random.Random(seed)
        self._open: set[asyncio.StreamWriter] = set()
        self._delay = 0.0
        self._flips = 0
        # Of both ways: to the target, and back.
        self._is_clear = [asyncio.Event(), asyncio.Event()]
        for event in self._is_clear:
            event.set()

    def cut(self) -> None:
        """Resets every connection that is open."""
        self._call(lambda: [w.transport.abort() for w in list(self._open)])

    def hold(self, way: int) -> None:
        """Lets nothing through in one way (0: to the target)."""
        self._call(self._is_clear[way].clear)

    def heal(self) -> None:
        self._call(lambda: [event.set() for event in self._is_clear])

    def delay(self, seconds: float) -> None:
        self._delay = seconds

    def flip(self, times: int) -> None:
        """Changes a bit in so many of the next large chunks to the caller."""
        self._flips = times

    def _call(self, deed: Callable[[], object]) -> None:
        self._loop.call_soon_threadsafe(deed)

    async def start(self) -> None:
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        host, port = server.sockets[0].getsockname()[:2]
        self.address = f"{host}:{port}"

    async def _serve(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        try:
            far_reader, far_writer = await asyncio.open_connection(*self.target)
        except OSError:
            writer.transport.abort()
            return
        both = {writer, far_writer}
        self._open |= both
        ways = [
            asyncio.create_task(self._pump(reader, far_writer, 0)),
            asyncio.create_task(self._pump(far_reader, writer, 1)),
        ]
        await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        for way in ways:
            way.cancel()
        for each in both:
            each.transport.abort()
        self._open -= both

    async def _pump(
        self, source: asyncio.StreamReader, to: asyncio.StreamWriter, way: int
    ) -> None:
        try:
            while data := await source.read(_CHUNK):
                if self._delay:
                    await asyncio.sleep(self._delay)
                await self._is_clear[way].wait()
                if way == 1 and self._flips and len(data) >= _FLIP_BYTES:
                    data = self._flipped(data)
                to.write(data)
                await to.drain()
        except OSError:
            pass  # One of them was reset, and so the other is.

    def _flipped(self, data: bytes) -> bytes:
        self._flips -= 1
        self.flipped += 1
        changed = bytearray(data)
        at = self._random.randrange(len(changed))
        changed[at] ^= 1 << self._random.randrange(8)
        return bytes(changed)


class Network:
    """A thread that runs links."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._loop = asyncio.new_event_loop()
        self._loop.set_exception_handler(lambda loop, context: None)
        self._thread = threading.Thread(
            target=self._loop.run_forever, daemon=True
        )
        self._thread.start()

    def link(self) -> Link:
        link = Link(self._loop, self._random.randrange(1 << 30))
        asyncio.run_coroutine_threadsafe(link.start(), self._loop).result(10)
        return link

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(5)
