"""NCCL debug log: ``NCCL_DEBUG=INFO`` or ``WARN``, NCCL 2.4 to 2.30.

node-a:41780:42080 [0] NCCL INFO ncclCommInitRank comm 0x55d0 rank 0 nranks 4 cudaDev 0 nvmlDev 0 busId 17000 ...
node-a:41780:42080 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via P2P/IPC/read
node-a:41780:42090 [0] NCCL INFO transport/p2p.cc:218 Cuda Alloc Size 6291456 pointer 0x7f4a75a19400
node-a:30113:30416 [3] misc/strongstream.cc:395 NCCL WARN Cuda failure 'unspecified launch failure'
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace

from analyzer.parsers.base import Emit, Format, Line, Session, Verdict
from analyzer.parsers.nccl_heads import HEADS
from analyzer.parsers.nccl_net import NOTES, Row, read_fault, read_note
from analyzer.parsers.nccl_warn import classify
from analyzer.parsers.values import integer, nccl_bus_id
from analyzer.shapes import LineGrammar

Fields = Mapping[str, str]

_GLUED = re.compile(
    r"(?=(?<![^\s>)\]])[^\s:\[\]()<>]+:[0-9]+:[0-9]+ (?:\[-?[0-9]+\] )?(?:NCCL|\S+:[0-9]+ (?:\(\S+\) )?NCCL))"
)
_UNNAMED = re.compile(r"(\S+:[0-9]+:[0-9]+ \[-?[0-9]+\] (?:\S+\.cu:[0-9]+ )?)(?:INFO|WARN) ")
_TREE = re.compile(r"\[([0-9]+)\] ?([-0-9/|>]+)")
_NVLS_TOTAL = re.compile(r"nvlsTotalSize ([0-9]+)")
_KNOWN_BEGINNINGS = (
    *HEADS,
    *(
        "NET/",
        "TUNER/",
        "PROFILER/",
        "ENV/",
        "RAS ",
        "COLLNET/",
        "Bootstrap",
        "Setting affinity for GPU",
        "Plugin Path",
    ),
    *("P2P plugin", "Affinity for GPU", "NCCL git version", "Sharp rank", "RCCL version", "[node_id = ", "MSCCL"),
    *("initialized internal alternative rsmi", "Kernel version", "ROCr version", "HIP version", "Hip version"),
    *("Enabled GDRCopy equivalent", "Dmabuf feature disabled", "CC Off", "CC On", "ncclP2pSchedule", "GIN/"),
)
_KNOWN_FORMS = re.compile(
    r"[A-Z]\w+: [0-9]+ Bytes -> Algo|[0-9]+ +: +(?:GPU|NET)/|\+ (?:PCI|NVL|SYS|NET|C2C|LOC|CPU)\[|={3,}|"
    r"(?:CPU|GPU|NIC|NET|PCI|NVS)/|(?:Algorithm|Protocol|Max NThreads) +\||"
    r"(?:Broadcast|Reduce|AllGather|ReduceScatter|AllReduce) +\||"
    r"\w+: (?:Affinity for GPU|[Cc]onnect (?:to|returned) )|(?:localRank|rank|comm|dev) \S+ "
)
_STATES = {
    "Init START": "start",
    "Init COMPLETE": "complete",
    "COMPLETE": "complete",
    "Destroy COMPLETE": "destroy",
    "Abort COMPLETE": "abort",
    "Finalize START": "finalize",
    "Finalize COMPLETE": "finalize",
}
_ENDED = frozenset({"destroy", "abort"})


class NcclSession(Session):
    """Reads NCCL lines one by one; only repeated connections and collective calls are folded."""

    def __init__(self, grammar: LineGrammar, emit: Emit) -> None:
        super().__init__(grammar, emit)
        self._seen: dict[str, set[tuple[object, ...]]] = {}
        self._calls: dict[tuple[str, str, str], list[object]] = {}

    def offer(self, line: Line, called: bool) -> Verdict:
        """NCCL 2.3 wrote INFO and WARN without its name before them."""
        if "NCCL " not in line.text and (old := _UNNAMED.match(line.text)):
            line = replace(line, text=f"{old.group(1)}NCCL {line.text[old.end(1) :]}")
        return super().offer(line, called)

    def unread(self, line: Line) -> Verdict:
        """Two messages glued into one line, or one behind other text, are read apart."""
        if "NCCL INFO" not in line.text and "NCCL WARN" not in line.text:
            return Verdict.LEFT
        pieces = [piece.rstrip() for piece in _GLUED.split(line.text) if piece.strip()]
        taken = Verdict.UNREAD
        for piece in pieces if len(pieces) > 1 else ():
            match = self.grammar.parse(piece)
            if match is not None:
                getattr(self, f"on_{match.kind}")(match.fields, line)
                taken = Verdict.TAKEN
        return taken

    def close(self) -> None:
        """Sends the folded collective calls."""
        for (pid, comm, operation), (line, host, calls, last_op, count, nranks) in self._calls.items():
            assert isinstance(line, Line)
            self.emit(
                "collective_call",
                line,
                {
                    "host": host,
                    "pid": int(pid),
                    "comm": comm,
                    "operation": operation,
                    "calls": calls,
                    "last_op": last_op,
                    "last_count": count,
                    "nranks": nranks,
                },
            )
        self._calls.clear()
        super().close()

    def on_version_banner(self, f: Fields, line: Line) -> None:
        self.emit("version", line, {"component": "NCCL", "value": f["value"]})

    def on_version(self, f: Fields, line: Line) -> None:
        self.emit("version", line, _who(f) | {"component": "NCCL", "value": f["value"]})

    def on_driver(self, f: Fields, line: Line) -> None:
        self.emit("version", line, _who(f) | {"component": "CUDA driver", "value": f["value"]})

    def on_env(self, f: Fields, line: Line) -> None:
        value = f.get("value", "")
        value = value[:-1] if value.endswith(".") and value[:-1].lstrip("-").isdigit() else value
        self.emit("env_var", line, _who(f) | {"name": f["name"], "value": value})

    def on_network(self, f: Fields, line: Line) -> None:
        self.emit("nccl_net", line, _who(f) | {"network": f["value"]})

    def on_comm(self, f: Fields, line: Line) -> None:
        state = _STATES.get(f["state"].strip())
        if state is None:
            return
        self._seen.pop(f["pid"], None)
        self.emit(
            "communicator",
            line,
            _who(f)
            | {
                "tid": int(f["tid"]),
                "handle": f["handle"],
                "comm_id": f.get("comm_id"),
                "comm_rank": int(f["comm_rank"]),
                "nranks": int(f["nranks"]),
                "cuda_dev": integer(f.get("cuda_dev")),
                "nvml_dev": integer(f.get("nvml_dev")),
                "bus_id": nccl_bus_id(f.get("bus")),
                "state": state,
                "parent": f.get("parent"),
                "call": f.get("call"),
            },
        )

    def on_comm_layout(self, f: Fields, line: Line) -> None:
        """Of what the init line lacks, the number of hosts."""
        self.emit("nccl_layout", line, _thread(f) | {"what": "nodes", "value": int(f["nodes"])})

    def on_order(self, f: Fields, line: Line) -> None:
        ranks = " ".join(f["order"].split())
        if self._repeated(f["pid"], ("order", f["tid"], f["channel"], ranks)):
            return
        self.emit(
            "ring_order",
            line,
            _thread(f) | {"channel": int(f["channel"]), "nchannels": integer(f.get("slash")), "ranks": ranks},
        )

    def on_channel(self, f: Fields, line: Line) -> None:
        key = (f["tid"], f["channel"], f.get("slash"), f["src"], f["dst"], f.get("direction"), f["transport"])
        if self._repeated(f["pid"], key):
            return
        self.emit(
            "channel",
            line,
            _thread(f)
            | {
                "channel": int(f["channel"]),
                "conn": integer(f.get("slash")),
                "src": int(f["src"]),
                "dst": int(f["dst"]),
                "src_dev": f.get("src_dev"),
                "dst_dev": f.get("dst_dev"),
                "direction": f["direction"].strip("[]") if "direction" in f else None,
                "transport": f["transport"],
            },
        )

    def _repeated(self, pid: str, key: tuple[object, ...]) -> bool:
        """The same line again, without a communicator having been made in between: it adds nothing."""
        seen = self._seen.setdefault(pid, set())
        if key in seen:
            return True
        seen.add(key)
        return False

    def on_ring(self, f: Fields, line: Line) -> None:
        """Known: the neighbours of one rank, which the Channel lines carry with their transport."""

    def on_collnet(self, f: Fields, line: Line) -> None:
        """Known: no buffers of the ring or tree kind."""

    def on_trees(self, f: Fields, line: Line) -> None:
        for channel, text in _TREE.findall(f.get("trees", "")):
            edge = _tree_edge(text)
            if edge is not None:
                me, up, down = edge
                self.emit("tree_edge", line, _thread(f) | {"channel": int(channel), "me": me, "up": up, "down": down})

    def on_layout(self, f: Fields, line: Line) -> None:
        for field, what in (
            ("coll", "coll_channels"),
            ("nvls", "nvls_channels"),
            ("p2p", "p2p_channels"),
            ("per_peer", "p2p_channels_per_peer"),
        ):
            if field in f:
                self.emit("nccl_layout", line, _thread(f) | {"what": what, "value": int(f[field])})

    def on_chunk(self, f: Fields, line: Line) -> None:
        self.emit("nccl_layout", line, _thread(f) | {"what": "p2p_chunksize", "value": integer(f["value"])})

    def on_nvls(self, f: Fields, line: Line) -> None:
        total = _NVLS_TOTAL.search(f["text"])
        if total:
            self.emit("nccl_layout", line, _thread(f) | {"what": "nvls_total", "value": int(total.group(1))})

    def on_alloc(self, f: Fields, line: Line) -> None:
        self._alloc(f, line, "device")

    def on_shareable(self, f: Fields, line: Line) -> None:
        self._alloc(f, line, "shareable")

    def _alloc(self, f: Fields, line: Line, kind: str) -> None:
        self.emit(
            "comm_alloc",
            line,
            _thread(f) | {"site": f.get("site"), "bytes": int(f["bytes"]), "pointer": f["pointer"], "kind": kind},
        )

    def on_alloc_host(self, f: Fields, line: Line) -> None:
        """Host memory: known, never part of the card's ledger."""

    def on_return(self, f: Fields, line: Line) -> None:
        """An error code on its way up the call stack: it repeats the message that stands before it."""

    def on_collective(self, f: Fields, line: Line) -> None:
        key = (f["pid"], f["comm"], f["operation"])
        known = self._calls.get(key)
        op, count = int(f["op_count"], 16), int(f["count"])
        if known is None:
            self._calls[key] = [line, f["host"], 1, op, count, int(f["nranks"])]
            return
        known[2] = int(str(known[2])) + 1
        if op >= int(str(known[3])):
            known[0], known[3], known[4] = line, op, count

    def on_note(self, f: Fields, line: Line) -> Verdict | None:
        """Known by how it begins; of these only what tells of a fault becomes a row."""
        text = _message(line.text).lstrip()
        if text.startswith(NOTES):
            self._network(f, line, read_note(text))
        if text.startswith(_KNOWN_BEGINNINGS) or _KNOWN_FORMS.match(text):
            if "fail" in text or "error" in text.lower():
                fault = classify(text)
                if fault.kind != "other":
                    self._message(f, line, "INFO", text)
            return None
        return Verdict.UNREAD

    def on_warn(self, f: Fields, line: Line) -> None:
        text = f.get("text", "")
        self._message(f, line, "WARN", text)
        self._network(f, line, read_fault(text))

    def _network(self, f: Fields, line: Line, rows: Iterable[Row]) -> None:
        """Rows about the network; of repeated attempts to connect only the first is kept."""
        for table, values in rows:
            if values.get("kind") == "connect_retry" and self._repeated(f["pid"], ("retry", *values.values())):
                continue
            own = _thread(f) if table == "network_event" else _who(f)
            self.emit(table, line, own | values)

    def _message(self, f: Fields, line: Line, level: str, text: str) -> None:
        fault = classify(text)
        self.emit(
            "nccl_message",
            line,
            _thread(f)
            | {
                "dev": integer(f.get("dev")),
                "level": level,
                "site": f.get("site"),
                "kind": fault.kind,
                "text": text,
                "bytes": fault.bytes,
                "peer": fault.peer,
            },
        )

    def on_abort(self, f: Fields, line: Line) -> None:
        self._message(f, line, "WARN", "ABORT " + f.get("text", ""))

    def on_trace_level(self, f: Fields, line: Line) -> None:
        """Known: trace builds of NCCL."""

    def on_api_call(self, f: Fields, line: Line) -> None:
        """Known: calls of the API."""


def _message(text: str) -> str:
    return text.partition("NCCL INFO ")[2]


def _who(f: Fields) -> dict[str, object]:
    return {"host": f["host"], "pid": int(f["pid"])}


def _thread(f: Fields) -> dict[str, object]:
    return {"host": f["host"], "pid": int(f["pid"]), "tid": int(f["tid"])}


def _tree_edge(text: str) -> tuple[int, int, str] | None:
    """Own rank, parent and children of ``d0/d1/d2->me->up`` (2.8 and later) or ``up->me->d0/d1/d2``."""
    parts = text.split("|")[0].split("->")
    if len(parts) != 3 or not all(part and part != "-" for part in parts):
        return None
    first, me, last = parts
    up, down = (last, first) if "/" in first else (first, last)
    children = [child for child in down.split("/") if child not in ("", "-1")]
    try:
        return int(me), int(up.split("/")[0]), " ".join(str(int(child)) for child in children)
    except ValueError:
        return None


_OLD = (
    "] INFO NET ",
    "] INFO NET/",
    "] INFO Ring ",
    "] INFO init.cu",
    "] INFO CUDA Dev",
    "] INFO comm 0x",
    "] INFO Using",
    "] transport/",
    "] init.cu:",
    "] bootstrap.cu:",
)
"""How the lines of NCCL 2.3 are told from those of other programs."""

FORMAT = Format(
    name="nccl-log",
    grammar="nccl_log",
    literals=("NCCL INFO", "NCCL WARN", "NCCL version", "NCCL TRACE", "NCCL CALL", "NCCL ABORT", *_OLD),
    session=NcclSession,
    title="NCCL debug log",
    command="NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,ENV,GRAPH,P2P,NET,ALLOC,NVLS",
    versions="NCCL 2.4 to 2.30",
    blocks=False,
    anchor="NCCL INFO",
    weak_literals=frozenset({"NCCL version", *_OLD}),
)
