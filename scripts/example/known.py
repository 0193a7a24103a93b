"""What has been written, by the editor's hand, for all visitors to see: a number for each kind and article."""

import mmap
import struct

KINDS = "htcasd"  # headline, text, comment, author, section's name, section's description
NUMBERS = 256
COUNTER = struct.Struct("<q")


class Noted:
    """How it was at one moment."""

    def __init__(self, content):
        self._content = content

    def of(self, kind, number):
        if kind not in KINDS or number >= NUMBERS:
            return 0
        return COUNTER.unpack_from(self._content, COUNTER.size * (1 + KINDS.index(kind) * NUMBERS + number))[0]


class Known:
    def __init__(self, path):
        with open(path, "r+b") as file:
            self._memory = mmap.mmap(file.fileno(), 0)

    @staticmethod
    def make(path):
        with open(path, "wb") as file:
            file.write(bytes(COUNTER.size * (1 + len(KINDS) * NUMBERS)))
        return Known(path)

    def note(self):
        return Noted(self._memory[:])

    def set(self, kind, number, version):
        COUNTER.pack_into(self._memory, COUNTER.size * (1 + KINDS.index(kind) * NUMBERS + number), version)

    @property
    def is_over(self):
        return self._memory[0] != 0

    def end(self):
        self._memory[0] = 1
