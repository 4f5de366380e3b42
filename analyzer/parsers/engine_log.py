"""Serving engines and Ray: the engine did not start, a worker died, nobody answers. None of these names a cause.

    RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}
    (EngineCore pid=81) TimeoutError: RPC call to sample_tokens timed out.
    No available shared memory broadcast block found in 60 seconds. This typically happens when ...
    [2025-04-20 16:41:57] Child process unexpectedly failed with an exit code 9. pid=40122
    (raylet) A worker died or was killed while executing a task by an unexpected system error. ... Worker PID: 4711 ...
    Memory on the node (IP: 10.0.0.3, ID: ab) where the task (task ID: cd, name=train, pid=4711, memory used=51.23GB)
    was running was 240.10GB / 251.50GB (0.954), which exceeds the memory usage threshold of 0.95. Ray killed ...

The memory monitor of Ray does name one: it becomes a row of ``scheduler_event``. Seen: vLLM 0.4 to 0.11, SGLang 0.4
and 0.5, TGI 1 to 3, Ray 2.2 to 2.49.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from analyzer.parsers.base import Format, Line, Session, Verdict
from analyzer.parsers.values import integer

Fields = Mapping[str, str]

_IP = re.compile(r"\s*([\w.:-]+)(?:,|\))")
_WORKER_PID = re.compile(r"[Ww]orker PID: *([0-9]+)|\bpid=([0-9]+)")
_NAME = re.compile(r"name=([\w.<>-]+)")
_OWN = re.compile(r"memory used=([0-9.]+ ?[KMGT]i?B)")
_USED = re.compile(r"was running was ([0-9]+\.[0-9]+)GB / ([0-9]+\.[0-9]+)GB")  # Ray's GB are GiB
_SIGNAL = re.compile(r"signal ([0-9]+)|exit code:? *(-?[0-9]+)")
_SGLANG = (
    "Received sigquit",
    "Child process unexpectedly",
    "scheduler is dead",
    "Watchdog timeout (self",
    "Scheduler watch",
)
_ENGINES = (("sglang", _SGLANG), ("tgi", ("Shard",)))


class EngineSession(Session):
    """Each line is a statement by itself."""

    def unread(self, line: Line) -> Verdict:
        return Verdict.LEFT

    def event(self, line: Line, kind: str, **values: object) -> None:
        """Sends a row of ``engine_event``."""
        engine = next((name for name, words in _ENGINES if any(word in line.text for word in words)), "vllm")
        common = {"engine": engine, "kind": kind, "pid": line.prefix_pid, "text": line.text.strip()}
        self.emit("engine_event", line, common | values)

    def on_init(self, f: Fields, line: Line) -> None:
        self.event(line, "init_failed")

    def on_dead(self, f: Fields, line: Line) -> None:
        self.event(line, "engine_dead")

    def on_rpc(self, f: Fields, line: Line) -> None:
        self.event(line, "rpc_timeout")

    def on_broadcast(self, f: Fields, line: Line) -> None:
        self.event(line, "broadcast_wait", seconds=float(f["seconds"]))

    def on_worker(self, f: Fields, line: Line) -> None:
        self.event(line, "worker_died")

    def on_worker_code(self, f: Fields, line: Line) -> None:
        self._died(line, int(f["pid"]), int(f["code"]))

    def on_sglang(self, f: Fields, line: Line) -> None:
        self._died(line, int(f["pid"]), int(f["code"]))

    def _died(self, line: Line, pid: int, code: int) -> None:
        self.event(line, "worker_died", pid=pid, code=code)

    def on_watchdog(self, f: Fields, line: Line) -> None:
        self.event(line, "watchdog")

    def on_shard(self, f: Fields, line: Line) -> None:
        found = _SIGNAL.search(line.text)
        signal = integer(found.group(1)) if found else None
        self.event(line, "worker_died" if signal else "init_failed", code=-signal if signal else None)

    def on_ray_memory(self, f: Fields, line: Line) -> None:
        text = f["text"]
        pid, name, used, ip = _WORKER_PID.search(text), _NAME.search(text), _USED.search(text), _IP.match(text)
        own = _OWN.search(text)
        sizes = [round(float(used.group(n)) * (1 << 30)) if used else None for n in (1, 2)]
        self.emit(
            "scheduler_event",
            line,
            {
                "system": "ray",
                "kind": "oom",
                "job": name.group(1) if name else None,
                "node": ip.group(1) if ip else None,
                "pid": integer(pid.group(1) or pid.group(2)) if pid else None,
                "bytes": sizes[0],
                "limit_bytes": sizes[1],
                "reason": f"the worker used {own.group(1)}" if own else None,
                "state": "killed by Ray's memory monitor",
                "text": line.text.strip(),
            },
        )

    def on_ray_killed(self, f: Fields, line: Line) -> None:
        self._ray_oom(line)

    def on_ray_count(self, f: Fields, line: Line) -> None:
        if int(f["count"]):
            self._ray_oom(line)

    def _ray_oom(self, line: Line) -> None:
        values = {"system": "ray", "kind": "oom", "state": "killed by Ray's memory monitor", "text": line.text.strip()}
        self.emit("scheduler_event", line, values)

    def on_ray_worker(self, f: Fields, line: Line) -> None:
        """Its text lists possible causes, the out-of-memory killer among them: that is advice, no evidence."""
        pid = _WORKER_PID.search(f.get("text", ""))
        self.event(line, "worker_died", engine="ray", pid=integer(pid.group(1) or pid.group(2)) if pid else None)

    def on_ray_actor(self, f: Fields, line: Line) -> None:
        self.event(line, "worker_died", engine="ray")


FORMAT = Format(
    name="engine-log",
    grammar="engine_log",
    literals=(
        "Engine core ",
        "Engine process failed",
        "EngineCore failed",
        "EngineCore encountered",
        "EngineDeadError",
        "Background loop has errored",
        "MQLLMEngine",
        "WorkerProc ",
        "RPC call to ",
        "RPC Call to ",
        "block found in ",
        " died unexpectedly",
        " died, exit code: ",
        "Watchdog timeout (self",
        "Scheduler watchdog timeout",
        "Child process unexpectedly failed",
        "Received sigquit from a child",
        "scheduler is dead",
        " failed to start",
        "ShardCannotStart",
        "Shard process was signaled",
        "Memory on the node (IP:",
        "running low on memory",
        "killed due to memory pressure",
        "A worker died or was killed",
    ),
    session=EngineSession,
    title="serving engines and Ray: engine or worker lost",
    command="output of the server (vllm serve, sglang.launch_server, text-generation-launcher); ray logs raylet",
    versions="vLLM 0.4 to 0.11, SGLang 0.4 and 0.5, TGI 1 to 3, Ray 2.2 to 2.49",
    weak_literals=frozenset(
        {
            "Engine core ",
            "EngineDeadError",
            "MQLLMEngine",
            "WorkerProc ",
            "RPC call to ",
            "RPC Call to ",
            "block found in ",
            " died unexpectedly",
            " died, exit code: ",
            " failed to start",
            "running low on memory",
            "ShardCannotStart",
        }
    ),
    blocks=False,
)
