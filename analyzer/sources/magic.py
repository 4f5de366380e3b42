"""What a stream is, told by its first bytes: a container to open, a binary file to leave, or text."""

from __future__ import annotations

from typing import Literal

Container = Literal["gzip", "zstd", "zip", "tar"]

HEAD = 8192
"""How many bytes the recognisers want to see."""

_BINARY: tuple[tuple[bytes, str], ...] = (
    (b"\x7fELF", "ELF"),
    (b"\x89PNG\r\n\x1a\n", "PNG"),
    (b"\xff\xd8\xff", "JPEG"),
    (b"GIF8", "GIF"),
    (b"%PDF-", "PDF"),
    (b"SQLite format 3\x00", "SQLite"),
    (b"\x89HDF\r\n\x1a\n", "HDF5"),
    (b"\x93NUMPY", "NumPy"),
    (b"BZh", "bzip2"),
    (b"\xfd7zXZ\x00", "xz"),
    (b"7z\xbc\xaf\x27\x1c", "7z"),
    (b"Rar!\x1a\x07", "rar"),
    (b"\x04\x22\x4d\x18", "lz4"),
    (b"PAR1", "Parquet"),
    (b"LPKSHHRH", "systemd journal"),
    (b"\x50\xed\x55\xba", "fatbin"),
    (b"\xca\xfe\xba\xbe", "Mach-O or Java class"),
    (b"\xcf\xfa\xed\xfe", "Mach-O"),
    (b"\x00asm", "WebAssembly"),
    (b"wOF2", "font"),
    (b"RIFF", "RIFF"),
    (b"OggS", "Ogg"),
    (b"\x0a\x0d\x0d\x0a", "pcapng"),
    (b"\xd4\xc3\xb2\xa1", "pcap"),
)
_PICKLE_FIRST = frozenset(b"c(}])N\x8a\x8c\x95\x58KMJGq\x85\x86\x87h\x88\x89\x80.")
_PICKLE_PROTOCOLS = frozenset(range(2, 6))

# Control bytes that text may hold: tab, line feed, vertical tab, form feed, carriage return, backspace, escape, bell.
_CONTROL = bytes(b for b in range(1, 32) if b not in (7, 8, 9, 10, 11, 12, 13, 27)) + b"\x7f"
_BINARY_SHARE = 0.3


def container_of(head: bytes) -> Container | None:
    """The archive or compression that ``head`` (512 bytes or more) starts, if it is one that can be opened."""
    if head.startswith(b"\x1f\x8b\x08"):
        return "gzip"
    if head.startswith(b"\x28\xb5\x2f\xfd") or (head[1:4] == b"\x2a\x4d\x18" and 0x50 <= head[0] <= 0x5F):
        return "zstd"
    if head.startswith((b"PK\x03\x04", b"PK\x05\x06\x00\x00", b"PK\x07\x08PK\x03\x04")):
        return "zip"
    return "tar" if _is_tar(head) else None


def _is_tar(head: bytes) -> bool:
    if len(head) < 512:
        return False
    if head[257:262] == b"ustar":
        return True
    # Archives of before 1988's format have no magic; their header carries a checksum.
    stated = head[148:156].strip(b" \x00")
    if not head[0] or not 4 <= len(stated) <= 7 or stated.strip(b"01234567"):
        return False
    return int(stated, 8) == sum(head[:148]) + 8 * 0x20 + sum(head[156:512])


def binary_kind(head: bytes) -> str | None:
    """The name of the binary format that ``head`` starts ("ELF", "pickle", ...), or None for text.

    A head that is mostly control bytes is "unknown format"; text with some NULs in it is text.
    """
    for magic, kind in _BINARY:
        if head.startswith(magic):
            return kind
    if len(head) > 2 and head[0] == 0x80 and head[1] in _PICKLE_PROTOCOLS and head[2] in _PICKLE_FIRST:
        return "pickle"
    return "unknown format" if _mostly_binary(head) else None


def _mostly_binary(head: bytes) -> bool:
    # A log that was cut while its writer had it open starts with a hole: NULs, then text.
    body = head.strip(b"\x00")
    if len(body) < 32:
        return False
    nul = body.count(0)
    control = len(body) - len(body.translate(None, _CONTROL))
    if nul + control > _BINARY_SHARE * len(body):
        return True
    return nul + control > 0.02 * len(body) and _invalid_share(body) > 0.1


def _invalid_share(body: bytes) -> float:
    """The share of bytes that are no UTF-8."""
    text = body.decode("utf-8", "replace")
    return text.count("\ufffd") / len(body)
