"""Out-of-memory killer of the kernel: who asked, what the host had left, which process died.

    pt_data_worker invoked oom-killer: gfp_mask=0x140cca(GFP_HIGHUSER_MOVABLE|__GFP_COMP), order=0, oom_score_adj=0
    Mem-Info:
    Node 0 Normal free:181248kB min:45056kB low:90112kB high:135168kB
    33554432 pages RAM
    Tasks state (memory values in pages):
    [  pid  ]   uid  tgid total_vm      rss pgtables_bytes swapents oom_score_adj name
    [    881]  1000     881    65536    15360      960        0             0 systemd-journal
    oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),...,task=pt_data_worker,pid=71384,uid=1000
    Out of memory: Killed process 71384 (pt_data_worker) total-vm:29360128kB, anon-rss:2455728kB, ...

Seen: kernels 3.10 to 6.12. A kill is one event: the constraint line is used where the line of the kill is missing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from analyzer.parsers.base import Emit, Format, Line, Session, Verdict
from analyzer.parsers.values import integer
from analyzer.shapes import LineGrammar

Fields = Mapping[str, str]

PAGE_BYTES = 4096
_KIB = 1024
_NO_LIMIT_KIB = 1 << 52
_PATIENCE = 8
_RESIDENT = re.compile(r"(?:anon|file|shmem)-rss:([0-9]+)kB")
_COLUMNS = ("uid", "tgid", "total_vm", "rss", "nr_ptes", "swapents", "oom_score_adj", "name")


class KernelOomSession(Session):
    """Open from ``Mem-Info`` or the table of tasks up to the kill."""

    def __init__(self, grammar: LineGrammar, emit: Emit) -> None:
        super().__init__(grammar, emit)
        self._columns: tuple[str, ...] = _COLUMNS
        self._free_kib = 0
        self._free_line: Line | None = None
        self._constraint: tuple[Line, dict[str, str]] | None = None
        self._foreign = 0
        self._cgroup = False

    def foreign(self, line: Line) -> Verdict:
        self._foreign += bool(line.text.strip())
        return Verdict.ENDED if self._foreign > _PATIENCE else Verdict.LEFT

    def close(self) -> None:
        """Sends the sum of free memory and a kill of which only the constraint line is there."""
        self._send_free()
        self._send_constraint()
        super().close()

    def _open(self) -> None:
        self.open = True
        self._foreign = 0

    def on_invoked(self, f: Fields, line: Line) -> None:
        self._send_constraint()
        self._cgroup = False
        self._event(line, "oom_invoked", f["name"])

    def _event(self, line: Line, kind: str, device: str, **values: object) -> None:
        common = {"boot_s": line.boot_s, "kind": kind, "device": device, "text": line.text}
        self.emit("kernel_event", line, common | values)

    def _memory(self, line: Line, what: str, kib: int) -> None:
        self.emit("host_memory", line, {"what": what, "bytes": kib * _KIB})

    def on_memory_head(self, f: Fields, line: Line) -> None:
        self._send_free()
        self._open()

    def on_counters(self, f: Fields, line: Line) -> None:
        self._foreign = 0

    def on_zone(self, f: Fields, line: Line) -> None:
        self._free_line = self._free_line or line
        self._free_kib += int(f["free"].removesuffix("kB"))
        self._foreign = 0

    def _send_free(self) -> None:
        line, self._free_line = self._free_line, None
        if line is not None:
            self._memory(line, "free", self._free_kib)
        self._free_kib = 0

    def on_pages(self, f: Fields, line: Line) -> None:
        self._foreign = 0
        if f["page_kind"] == "pages RAM":
            self._send_free()
            self._memory(line, "total", int(f["pages"]) * PAGE_BYTES // _KIB)

    def on_swap(self, f: Fields, line: Line) -> None:
        self._foreign = 0
        self._memory(line, "swap_total" if f["swap_kind"].startswith("Total") else "swap_free", int(f["swap"]))

    def on_cgroup_usage(self, f: Fields, line: Line) -> None:
        self._memory(line, "cgroup_used", int(f["used"]))
        if int(f["limit"]) < _NO_LIMIT_KIB:
            self._memory(line, "cgroup_limit", int(f["limit"]))

    def on_cgroup_task(self, f: Fields, line: Line) -> None:
        self._cgroup = True

    def on_tasks_head(self, f: Fields, line: Line) -> None:
        self._send_free()
        self._columns = _COLUMNS
        self._open()

    def on_columns(self, f: Fields, line: Line) -> None:
        columns = tuple(f["columns"].split())
        self._columns = columns if "rss" in columns and columns[-1] == "name" else _COLUMNS
        self._open()

    def on_task(self, f: Fields, line: Line) -> Verdict | None:
        parts = f["row"].split(None, len(self._columns) - 1)
        if not self.open or len(parts) < len(self._columns):
            return Verdict.LEFT
        pages = integer(parts[self._columns.index("rss")])
        self._foreign = 0
        if pages is None:
            return Verdict.LEFT
        self._event(line, "oom_task", parts[-1].strip(), pid=int(f["pid"]), bytes=pages * PAGE_BYTES)
        return None

    def on_constraint(self, f: Fields, line: Line) -> None:
        self._send_constraint()
        pairs = dict(part.split("=", 1) for part in f["text"].split(",") if "=" in part)
        pairs["constraint"] = f["text"].partition(",")[0]
        self._constraint = (line, pairs)
        self._send_free()
        self.open = False

    def _send_constraint(self) -> None:
        waiting, self._constraint = self._constraint, None
        if waiting is not None:
            line, pairs = waiting
            self._kill(line, pairs.get("task", ""), integer(pairs.get("pid")), _limited(pairs), None)

    def on_chosen(self, f: Fields, line: Line) -> None:
        self._cgroup = self._cgroup or "cgroup" in f["scope"]

    def on_killed(self, f: Fields, line: Line) -> None:
        pid = int(f["pid"])
        waiting = self._constraint
        memcg = self._cgroup or "cgroup" in f.get("scope", "")
        if waiting is not None and integer(waiting[1].get("pid")) == pid:
            memcg = memcg or _limited(waiting[1])
            self._constraint = None
        self._send_constraint()
        resident = [int(size) for size in _RESIDENT.findall(f.get("text", ""))]
        self._kill(line, f["program"][1:-1], pid, memcg, sum(resident) * _KIB if resident else None)
        self._cgroup = False
        self._send_free()
        self.open = False

    def _kill(self, line: Line, program: str, pid: int | None, memcg: bool, size: int | None) -> None:
        self._event(line, "oom_kill", program, severity="memcg" if memcg else "global", pid=pid, bytes=size)

    def on_reaped(self, f: Fields, line: Line) -> None:
        """Known: the memory of the killed process came back."""


def _limited(pairs: Mapping[str, str]) -> bool:
    """The limit of a memory cgroup was hit, not the end of the host's memory."""
    return pairs.get("constraint") == "CONSTRAINT_MEMCG"


FORMAT = Format(
    name="kernel-oom",
    grammar="kernel_oom",
    literals=(
        " invoked oom-killer:",
        "oom-kill:constraint=",
        "Killed process ",
        "out of memory: Kill",
        "Out of memory: Kill",
        "oom_reaper: reaped process",
        "Mem-Info:",
        " pages RAM",
        "memory: usage ",
        " killed as a result of limit of ",
        "Tasks state (memory values",
        "oom_score_adj name",
    ),
    session=KernelOomSession,
    title="out-of-memory killer of the kernel",
    command="sudo dmesg -T (or journalctl -k -b -o short-iso)",
    versions="kernels 3.10 to 6.12",
    weak_literals=frozenset({"Killed process ", "memory: usage ", "Mem-Info:", " pages RAM", "oom_score_adj name"}),
)
