"""A small valid PNG, made here so that the tree carries no binary file."""

import struct
import zlib


def png(width=64, height=48, seed=7):
    rows = b"".join(
        b"\0" + bytes((x * seed + y * 3 + c * 40) % 256 for x in range(width) for c in range(3))
        for y in range(height)
    )

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
