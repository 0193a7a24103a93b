"""Debian's Redis for several nodes, Sentinels, and what lies between: a proxy that cuts and slows."""

import asyncio
import os
import signal
import socket
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "bench"))

from lib.ports import free_port  # noqa: E402

START_SECONDS = 20
SLOW_SECONDS = 0.2


def wait_until(is_so, what, seconds=START_SECONDS):
    ends = time.monotonic() + seconds
    while not is_so():
        if time.monotonic() > ends:
            raise RuntimeError(f"not in time: {what}")
        time.sleep(0.01)


class Redis:
    """A server, or a Sentinel, in a folder of its own."""

    def __init__(self, folder, name, *arguments, sentinel_of=None):
        self.folder, self.port = os.path.join(folder, name), free_port()
        os.makedirs(self.folder)
        self._command = ["/usr/bin/redis-server"]
        if sentinel_of:
            path = os.path.join(self.folder, "sentinel.conf")
            with open(path, "w") as file:
                file.write(
                    f"port {self.port}\nbind 127.0.0.1\ndir {self.folder}\n"
                    f"sentinel monitor pages 127.0.0.1 {sentinel_of.port} 2\n"
                    "sentinel down-after-milliseconds pages 500\nsentinel failover-timeout pages 2000\n"
                )
            self._command += [path, "--sentinel"]
        else:
            self._command += ["--port", str(self.port), "--bind", "127.0.0.1", "--save", "", "--dir", self.folder]
            self._command += ["--appendonly", "yes", "--appendfsync", "always", "--repl-diskless-sync-delay", "0"]
        self._command += arguments
        self.start()

    def start(self):
        with open(os.path.join(self.folder, "log"), "a") as log:
            self.process = subprocess.Popen(self._command, stdout=log, stderr=log, start_new_session=True)
        wait_until(lambda: self.say("PING") == "+PONG", f"{self._command} listening")

    def say(self, *words, lines=None):
        """The first line of the answer, or of its text, or so many lines; nothing if there is none."""
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=2) as stream:
                text = "".join(f"${len(word)}\r\n{word}\r\n" for word in words)
                # After that the engine closes the connection, so that all lines there are come in time.
                end = "*1\r\n$4\r\nQUIT\r\n" if lines else ""
                stream.sendall(f"*{len(words)}\r\n{text}{end}".encode())
                with stream.makefile(errors="replace") as answer:
                    if lines:
                        return "".join(answer.readline() for _ in range(lines)).strip()
                    line = answer.readline().strip()
                    return answer.readline().strip() if line.startswith("$") and line != "$-1" else line
        except OSError:
            return ""

    def signal(self, how):
        os.kill(self.process.pid, how)

    def log(self):
        with open(os.path.join(self.folder, "log")) as file:
            return file.read()

    def kill(self):
        self.process.kill()
        self.process.wait()

    def forget(self):
        """What it keeps on disk; it must not run."""
        subprocess.run(["rm", "-rf", os.path.join(self.folder, "appendonlydir")], check=True)

    def stop(self):
        if self.process.poll() is None:
            self.signal(signal.SIGCONT)
            self.kill()


class Proxies:
    """The thread that all proxies share."""

    def __init__(self):
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self._thread.start()

    def run(self, work):
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(START_SECONDS)

    def stop(self):
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()


class Proxy:
    """Between one node and the engine. `mode`: "whole"; "cut": no connection; "slow": each piece comes 200 ms later;
    "mute": what the engine answers is held back."""

    def __init__(self, proxies, to_port):
        self.mode, self._to_port, self._proxies, self._open = "whole", to_port, proxies, set()
        self._server = proxies.run(asyncio.start_server(self._serve, "127.0.0.1", 0))
        self.port = self._server.sockets[0].getsockname()[1]

    def be(self, mode):
        self.mode = mode
        if mode == "cut":
            self._proxies.loop.call_soon_threadsafe(self._close_all)

    def _close_all(self):
        for writer in list(self._open):
            writer.transport.abort()

    async def _serve(self, reader, writer):
        if self.mode == "cut":
            writer.transport.abort()
            return
        try:
            from_engine, to_engine = await asyncio.open_connection("127.0.0.1", self._to_port)
        except OSError:
            writer.transport.abort()
            return
        both = {writer, to_engine}
        self._open |= both
        await asyncio.gather(self._pass(reader, to_engine, False), self._pass(from_engine, writer, True))
        self._open -= both

    async def _pass(self, reader, writer, is_answer):
        try:
            while data := await reader.read(65536):
                if self.mode == "slow":
                    await asyncio.sleep(SLOW_SECONDS)
                while is_answer and self.mode == "mute":
                    await asyncio.sleep(0.005)
                writer.write(data)
                await writer.drain()
        except OSError:
            pass
        writer.close()
