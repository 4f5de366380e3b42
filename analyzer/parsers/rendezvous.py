"""The rendezvous of torch.distributed where it could not begin: a port in use, a store that waits for ranks.

[W socket.cpp:426] [c10d] The server socket has failed to bind to [::]:29500 (errno: 98 - Address already in use).
torch.distributed.DistNetworkError: The server socket has failed to listen on any local network address. port: 29500,
useIpv6: false, code: -98, name: EADDRINUSE, message: address already in use
RuntimeError: Address already in use
Waiting in store based barrier to initialize process group for rank: 0, key: ... (world_size=2, worker_count=1, ...
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from analyzer.parsers.base import Emit, Format, Line, Session, Verdict
from analyzer.shapes import LineGrammar

Fields = Mapping[str, str]

_PORT = re.compile(
    r"(?:bind to|listen on|address) ?\S*?[:\]]([0-9]{2,5})\b|[Pp]ort:? ?([0-9]{2,5})\b|\]:([0-9]{2,5})\b|"
    r"[0-9*]:([0-9]{2,5})\b|tcp://[^:\s]+:([0-9]{2,5})"
)
_BARRIER = re.compile(r"for rank: ([0-9]+).*world_size=([0-9]+), worker_count=([0-9]+)")
_TEXT_CAP = 400


class RendezvousSession(Session):
    """Single lines; the same words again add nothing."""

    def __init__(self, grammar: LineGrammar, emit: Emit) -> None:
        super().__init__(grammar, emit)
        self._told: set[tuple[object, ...]] = set()

    def unread(self, line: Line) -> Verdict:
        """A listener that failed for another reason is read as an error of the store."""
        return Verdict.LEFT

    def on_bind(self, f: Fields, line: Line) -> Verdict | None:
        if "NCCL INFO" in line.text or "NCCL WARN" in line.text:
            return Verdict.LEFT
        found = _PORT.search(line.text)
        port = int(next(part for part in found.groups() if part)) if found else None
        key = ("bind", line.rank, port)
        if key not in self._told:
            self._told.add(key)
            values = {"kind": "address_in_use", "text": line.text.strip()[:_TEXT_CAP], "value": port}
            self.emit("distributed_error", line, values)
        return None

    def on_barrier_wait(self, f: Fields, line: Line) -> Verdict | None:
        """Counts only when it repeats: the first such line is normal."""
        found = _BARRIER.search(line.text)
        if found is None:
            return Verdict.LEFT
        rank, total, came = (int(part) for part in found.groups())
        again = ("wait", rank, total, came)
        if again in self._told and (*again, "sent") not in self._told:
            self._told.add((*again, "sent"))
            values = {"rank": rank, "kind": "store_timeout", "value": came, "total": total}
            self.emit("distributed_error", line, values | {"text": line.text.strip()[:_TEXT_CAP]})
        self._told.add(again)
        return None


FORMAT = Format(
    name="rendezvous",
    grammar="rendezvous",
    literals=("EADDRINUSE", "ddress already in use", "Waiting in store based barrier"),
    session=RendezvousSession,
    title="rendezvous of torch.distributed",
    command="the output of the training program",
    versions="PyTorch 1.4 to 2.11",
    blocks=False,
    weak_literals=frozenset({"EADDRINUSE", "ddress already in use"}),
)
