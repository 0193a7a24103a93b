"""A database of which only its times matter: it serves a number of queries at once, and each takes a time.

PHP connects to its socket, and is answered with one byte when its query is over. While it is slow it serves a
tenth, and those that wait for it pile up, as behind a lock or a full disk.
"""

import os
import socket
import threading
import time


class Database:
    """`with Database(folder, at_once, milliseconds) as database: ...`; `set_slow` makes it ten times slower."""

    def __init__(self, folder, at_once, milliseconds):
        self.socket = os.path.join(folder, "database.sock")
        self._at_once, self._seconds = at_once, milliseconds / 1000
        self._is_slow = False
        self._under_way = 0
        self._room = threading.Condition()

    def __enter__(self):
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(self.socket)
        os.chmod(self.socket, 0o666)
        self._listener.listen(1024)
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_):
        self._listener.close()

    def set_slow(self, is_slow):
        with self._room:
            self._is_slow = is_slow
            self._room.notify_all()

    def _most(self):
        return max(1, self._at_once // 10) if self._is_slow else self._at_once

    def _accept(self):
        while True:
            try:
                query, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(query,), daemon=True).start()

    def _serve(self, query):
        with query:
            with self._room:
                self._room.wait_for(lambda: self._under_way < self._most())
                self._under_way += 1
            time.sleep(self._seconds)
            with self._room:
                self._under_way -= 1
                self._room.notify()
            try:
                query.sendall(b".")
            except OSError:
                pass
