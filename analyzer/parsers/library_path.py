r"""Which file the loader takes for a shared library: ``ldconfig -p``, ``ldd``, ``readlink -f``, links, maps.

    \tlibcuda.so.1 (libc6,x86-64) => /usr/local/cuda-12.9/compat/libcuda.so.1
    \tlibcuda.so.1 (libc6,x86-64) => /usr/lib/x86_64-linux-gnu/libcuda.so.1
    /usr/local/cuda-12.9/compat/libcuda.so.575.57.08
    \tlibcudart.so.12 => /usr/local/cuda/lib64/libcudart.so.12 (0x00007f30a8000000)
    \tlibnvJitLink.so.12 => not found
    LD_LIBRARY_PATH=/usr/local/cuda-12.2/lib64

Seen: glibc 2.17 to 2.40. Only libraries of NVIDIA, of RDMA and of MPI are kept.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from analyzer.parsers.base import Emit, Format, Line, Session, Verdict
from analyzer.shapes import LineGrammar

Fields = Mapping[str, str]

_VERSION = re.compile(r"\.so\.([0-9]+(?:\.[0-9]+)*)$")
_KEPT = re.compile(r"(?:^|/)lib(?:cuda|nvidia|nccl|cudnn|cublas|nv|cusparse|cusolver|cufft|curand|ibverbs|mlx|mpi|efa)")


class LibraryPathSession(Session):
    """Each line is a row; the place in the list counts the lines of one name in one run of lines."""

    def __init__(self, grammar: LineGrammar, emit: Emit) -> None:
        super().__init__(grammar, emit)
        self._places: dict[str, int] = {}
        self._last = 0

    def offer(self, line: Line, called: bool) -> Verdict:
        """The line below ``echo $LD_LIBRARY_PATH`` is the value, whatever it holds."""
        if not self.open:
            return super().offer(line, called)
        self.open = False
        value = line.text.strip()
        if not value.startswith("/") or " " in value:
            return Verdict.ENDED
        self._variable(line, "LD_LIBRARY_PATH", value)
        return Verdict.TAKEN

    def _variable(self, line: Line, name: str, value: str) -> None:
        self.emit("env_var", line, {"name": name, "value": value, "source": "listing"})

    def on_variable(self, f: Fields, line: Line) -> None:
        name = "LD_PRELOAD" if "LD_PRELOAD=" in line.text[:20] else "LD_LIBRARY_PATH"
        if "value" in f:
            self._variable(line, name, f["value"])

    def on_echo(self, f: Fields, line: Line) -> None:
        self.open = True

    def _send(self, line: Line, tool: str, soname: str, path: str | None, **values: object) -> Verdict | None:
        if not _KEPT.search(soname):
            return None
        version = _VERSION.search(str(values.get("target") or path or ""))
        shown = version.group(1) if version and "." in version.group(1) else None
        row = {"soname": soname, "path": path, "version": shown, "tool": tool, "missing": False}
        self.emit("library", line, row | values)
        return None

    def on_cached(self, f: Fields, line: Line) -> Verdict | None:
        if line.ref - self._last > 4000:
            self._places.clear()
        self._last = line.ref
        place = self._places[f["soname"]] = self._places.get(f["soname"], 0) + 1
        return self._send(line, "ldconfig", f["soname"], f["path"], place=place)

    def on_linked(self, f: Fields, line: Line) -> Verdict | None:
        return self._send(line, "ldd", f["soname"], f["path"])

    def on_absent(self, f: Fields, line: Line) -> Verdict | None:
        return self._send(line, "ldd", f["soname"], None, missing=True)

    def on_mapped(self, f: Fields, line: Line) -> Verdict | None:
        return self._send(line, "maps", f["path"].rpartition("/")[2], f["path"])

    def on_link(self, f: Fields, line: Line) -> Verdict | None:
        return self._send(line, "link", f["path"].rpartition("/")[2], f["path"], target=f["target"])

    def on_bare(self, f: Fields, line: Line) -> Verdict | None:
        if not f["path"].startswith("/"):
            return Verdict.LEFT
        return self._send(line, "link", f["path"].rpartition("/")[2], f["path"])


_LITERALS = (
    " (libc6,x86-64",
    " (libc6,AArch64",
    " (libc6) => ",
    " => not found",
    " (0x0000",
    "LD_LIBRARY_PATH",
    "LD_PRELOAD=",
    "libcuda.so.",
    "libnvidia-ml.so.",
    "libnvJitLink.so.",
    "libcudnn.so.",
    "libnccl.so.",
)
FORMAT = Format(
    name="library-path",
    grammar="library_path",
    literals=_LITERALS,
    session=LibraryPathSession,
    title="paths of shared libraries (ldconfig, ldd)",
    command="ldconfig -p | grep -e libcuda -e libnccl; ldd FILE",
    versions="glibc 2.17 to 2.40",
    weak_literals=frozenset(_LITERALS),
)
