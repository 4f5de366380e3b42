"""The files inside tar and zip archives, one after the other, without writing anything to disk."""

from __future__ import annotations

import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO, Any

from analyzer.sources.limits import MIB, Budget, Damaged, LimitReached, Readable

_TAR_BLOCK = 64 << 10
_LONGEST_HEADER = MIB
_EXTENDED = (
    tarfile.XHDTYPE,
    tarfile.XGLTYPE,
    tarfile.SOLARIS_XHDTYPE,
    tarfile.GNUTYPE_LONGNAME,
    tarfile.GNUTYPE_LONGLINK,
)
_QUIET = (tarfile.DIRTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE)


@dataclass(frozen=True, slots=True)
class Entry:
    """One file of an archive: its stream, or why it has none. The name is as printed, fit for display only."""

    name: str
    size: int | None
    stream: Readable | None
    skipped: str = ""


class Part:
    """The next ``length`` bytes of a stream. Raises Damaged when the stream is shorter."""

    def __init__(self, stream: Readable, length: int) -> None:
        self._stream = stream
        self._left = length

    def read(self, n: int, /) -> bytes:
        """At most ``n`` of them."""
        if not self._left:
            return b""
        part = self._stream.read(min(n, self._left))
        if not part:
            raise Damaged("ends early: the archive is truncated")
        self._left -= len(part)
        return part


def tar_entries(source: Readable, budget: Budget) -> Iterator[Entry]:
    """The regular files of a tar archive that is read forward only. Raises StreamFault where it cannot go on."""
    header = _bounded_headers()
    try:
        stream: Any = _Forward(source)
        with tarfile.open(fileobj=stream, mode="r|", tarinfo=header, bufsize=_TAR_BLOCK) as archive:
            yield from _tar_walk(archive, budget)
    except (tarfile.TarError, ValueError, OverflowError, UnicodeError) as error:
        raise Damaged(f"tar archive cannot be read on: {error}") from error
    if header.end != "EOFHeaderError":
        raise Damaged("tar archive ends early or is corrupt, what follows is not read")


def _tar_walk(archive: Any, budget: Budget) -> Iterator[Entry]:
    count = 0
    while (info := archive.next()) is not None:
        archive.members.clear()  # the module keeps every header, which a long archive would pay for
        count += 1
        check_count(count, budget)
        entry = _tar_entry(archive, info, budget)
        if entry is not None:
            yield entry


def _tar_entry(archive: Any, info: tarfile.TarInfo, budget: Budget) -> Entry | None:
    if not info.isreg():
        return None if info.type in _QUIET else Entry(info.name, None, None, "is no regular file, not read")
    if hidden(info.name):
        return None
    # Not by extractfile: that drops what it has when the archive ends in the middle of a file.
    if info.issparse():
        return Entry(info.name, info.size, _SparseFile(archive.extractfile(info), budget))
    return Entry(info.name, info.size, Part(archive.fileobj, info.size))


def _bounded_headers() -> Any:
    """A header class that refuses extended headers of unreasonable length and notes how the archive ended."""

    class Header(tarfile.TarInfo):
        end = ""

        @classmethod
        def frombuf(cls, buf: bytes | bytearray, encoding: str | None, errors: str) -> Header:
            try:
                info = super().frombuf(buf, encoding, errors)  # type: ignore[arg-type]
            except tarfile.HeaderError as error:
                cls.end = type(error).__name__
                raise
            if info.type in _EXTENDED and info.size > _LONGEST_HEADER:
                raise Damaged("tar archive has a header of more than 1 MiB, the rest is not read")
            return info

    return Header


class _Forward:
    """What tarfile wants of a stream, and nothing to seek with."""

    def __init__(self, source: Readable) -> None:
        self._source = source

    def read(self, n: int = -1, /) -> bytes:
        return self._source.read(n)


class _SparseFile:
    """A file with holes, which count as inflated bytes."""

    def __init__(self, file: Any, budget: Budget) -> None:
        self._file = file
        self._budget = budget

    def read(self, n: int, /) -> bytes:
        try:
            part: bytes = self._file.read1(n)
        except (tarfile.TarError, ValueError) as error:
            raise Damaged("ends early: the archive is truncated") from error
        self._budget.take_inflated(len(part))
        return part


def open_zip(file: IO[bytes]) -> zipfile.ZipFile | None:
    """A zip archive that can be sought in, or None when its directory (at its end) is missing or broken."""
    try:
        return zipfile.ZipFile(file)
    except (zipfile.BadZipFile, ValueError, NotImplementedError, OSError):
        return None


def zip_entries(archive: zipfile.ZipFile, budget: Budget) -> Iterator[Entry]:
    """The files that the directory of a zip archive lists. Raises LimitReached when there are too many."""
    for count, info in enumerate(archive.infolist(), 1):
        check_count(count, budget)
        if not info.is_dir() and not hidden(info.filename):
            yield _zip_entry(archive, info, budget)


def _zip_entry(archive: zipfile.ZipFile, info: zipfile.ZipInfo, budget: Budget) -> Entry:
    if info.flag_bits & 0x1:
        return Entry(info.filename, info.file_size, None, "is encrypted, not read")
    try:
        return Entry(info.filename, info.file_size, _ZipFile(archive.open(info), budget))
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, ValueError) as error:
        return Entry(info.filename, info.file_size, None, f"cannot be read: {error}")


class _ZipFile:
    """The content of one file in a zip archive."""

    def __init__(self, file: IO[bytes], budget: Budget) -> None:
        self._file: Any = file
        self._budget = budget

    def read(self, n: int, /) -> bytes:
        try:
            part: bytes = self._file.read1(n)
        except (zipfile.BadZipFile, zlib.error, EOFError, ValueError) as error:
            raise Damaged(f"zip data is corrupt or cut: {error}") from error
        self._budget.take_inflated(len(part))
        return part


def check_count(count: int, budget: Budget) -> None:
    """Raises LimitReached when an archive holds more files than allowed."""
    if count > budget.limits.members:
        raise LimitReached(f"holds more than {budget.limits.members} files, the rest is not read")


def hidden(name: str) -> bool:
    """Hidden files are left out, as in folders; so is the shadow tree that macOS writes."""
    parts = name.split("/")
    return parts[0] == "__MACOSX" or any(part.startswith(".") and part not in (".", "..") for part in parts)
