"""Who listens on which TCP port: ``ss -ltnp``, ``netstat -ltnp``, ``lsof -i :PORT``, ``fuser PORT/tcp``.

LISTEN 0      4096         0.0.0.0:29500      0.0.0.0:*    users:(("python",pid=4711,fd=47))
tcp6       0      0 :::29500                :::*                    LISTEN      4711/python
python  4711 user   47u  IPv6 123456      0t0  TCP *:29500 (LISTEN)
29500/tcp:            4711
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from analyzer.parsers.base import Format, Line, Session, Verdict

Fields = Mapping[str, str]

_SS = re.compile(r"LISTEN +[0-9]+ +[0-9]+ +(\S+):([0-9]+) +\S+(.*)")
_USERS = re.compile(r'"([^"]*)",(?:pid=)?([0-9]+)')
_NETSTAT = re.compile(r"tcp6? +[0-9]+ +[0-9]+ +(\S+):([0-9]+) +\S+ +LISTEN *(?:([0-9]+)/(\S+))?")
_LSOF = re.compile(r"(\S+) +([0-9]+) +\S+ .*TCP (\S+):([0-9]+) \(LISTEN\)")
_FUSER = re.compile(r"([0-9]+)/tcp: +([0-9]+)")


class SocketSession(Session):
    """Every line stands for itself."""

    def unread(self, line: Line) -> Verdict:
        """The word LISTEN in another sentence."""
        return Verdict.LEFT

    def on_ss(self, f: Fields, line: Line) -> None:
        found = _SS.search(line.text)
        assert found is not None
        address, port, rest = found.groups()
        user = _USERS.search(rest)
        self._send(line, address, port, user.group(2) if user else None, user.group(1) if user else None)

    def on_netstat(self, f: Fields, line: Line) -> None:
        found = _NETSTAT.search(line.text)
        assert found is not None
        self._send(line, *found.groups())

    def on_lsof(self, f: Fields, line: Line) -> None:
        found = _LSOF.search(line.text)
        assert found is not None
        program, pid, address, port = found.groups()
        self._send(line, address, port, pid, program)

    def on_fuser(self, f: Fields, line: Line) -> None:
        found = _FUSER.search(line.text)
        assert found is not None
        self._send(line, "*", found.group(1), found.group(2), None)

    def _send(self, line: Line, address: str, port: str, pid: str | None, program: str | None) -> None:
        values = {"port": int(port), "address": address, "pid": int(pid) if pid else None, "process": program}
        self.emit("listener", line, values)


_WEAK = ("LISTEN ", "(LISTEN)", "/tcp: ")
FORMAT = Format(
    name="socket-table",
    grammar="socket_table",
    literals=_WEAK,
    session=SocketSession,
    title="listening TCP ports",
    command="sudo ss -ltnp",
    versions="iproute2 4 to 6, net-tools 2, lsof 4, psmisc 23",
    blocks=False,
    weak_literals=frozenset(_WEAK),
)
