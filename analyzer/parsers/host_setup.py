r"""Settings that people add to a report: environment, kernel command line, and processors that a process may use.

NCCL_GRAPH_FILE=/etc/graph.xml                                   env, export, /etc/nccl.conf
$ NCCL_P2P_DISABLE=1 ./all_reduce_perf -g 4                      in front of a command
BOOT_IMAGE=/boot/vmlinuz root=/dev/sda1 ro intel_iommu=on        /proc/cmdline, dmesg
/proc/4103/status:Cpus_allowed_list:\t0-71                       /proc/PID/status
pid 4103's current affinity list: 0-71                           taskset -cp PID
cpu-bind=MASK - node1, task  2  2 [4103]: mask 0xff00 set        srun --cpu-bind=verbose
torchrun --nproc_per_node=8 train.py                             command of a launcher
rank 2 gpu 2 cpus 0-71 membind 0 pinned D2H 115.2 GB/s           tables of bandwidth per rank
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from analyzer.parsers.base import Emit, Format, Line, Session, Verdict
from analyzer.parsers.cpu_list import from_mask
from analyzer.shapes import LineGrammar

Fields = Mapping[str, str]

_NAMES = re.compile(r"(?:NCCL|CUDA|NVIDIA|TORCH_NCCL)_[A-Z0-9_]+")
_ASSIGNED = re.compile(r"(?:^|[\s;])((?:NCCL|CUDA|NVIDIA|TORCH_NCCL)_[A-Z0-9_]+)[= ](\S*)")
_STATUS = re.compile(r"/proc/([0-9]+)/")
_RATE = re.compile(r"(?:[HD]2[HD]|[Hh]ost|[Dd]evice)\D{0,24}([0-9]+(?:\.[0-9]+)?) ?GB/s")
_LOCAL_RANKS = re.compile(r"(?:nproc[-_]per[-_]node|ntasks-per-node)\s{0,8}[=: ]\s{0,8}([0-9]{1,4})(?![0-9])")
_OFF = re.compile(r"(?:^|[\s\"'])(?:(?:intel_|amd_)?iommu=off)(?:[\s\"']|$)")
_PASS = re.compile(r"(?:^|[\s\"'])(?:iommu=pt|iommu\.passthrough=1|(?:intel|amd)_iommu=\S*\bpt\b\S*)(?:[\s\"']|$)")
_ON = re.compile(
    r"(?:^|[\s\"'])(?:(?:intel_|amd_)?iommu=(?:on|force|nopt|strict)\b\S*|iommu\.passthrough=0)(?:[\s\"']|$)"
)
_VARIABLES = (
    "NCCL_TOPO_FILE=",
    "NCCL_GRAPH_FILE=",
    "NCCL_P2P_",
    "NCCL_SHM_DISABLE=",
    "NCCL_NET_GDR_LEVEL=",
    "NCCL_IGNORE_DISABLED_P2P=",
    "NCCL_DEBUG=",
    "CUDA_VISIBLE_DEVICES=",
    "CUDA_DEVICE_ORDER=",
    "NVIDIA_VISIBLE_DEVICES=",
)


class HostSetupSession(Session):
    """Reads line by line; only the process id of a status file is kept for the lines below it."""

    def __init__(self, grammar: LineGrammar, emit: Emit) -> None:
        super().__init__(grammar, emit)
        self._pid: int | None = None

    def unread(self, line: Line) -> Verdict:
        """These literals also occur in prose and in other logs."""
        return Verdict.LEFT

    def on_variable(self, f: Fields, line: Line) -> None:
        self._assigned(line.text.partition("#")[0], line, "listing")

    def on_command(self, f: Fields, line: Line) -> Verdict | None:
        head = re.split(r"\s(?=[^\s=]+(?:\s|$))", line.text.lstrip("$%> "), maxsplit=1)[0]
        return None if self._assigned(head, line, "command") else Verdict.LEFT

    def _assigned(self, text: str, line: Line, source: str) -> bool:
        found = _ASSIGNED.findall(text)
        for name, value in found:
            self.emit("env_var", line, {"name": name, "value": value.strip("\"'"), "source": source})
        return bool(found)

    def on_launch(self, f: Fields, line: Line) -> None:
        found = _LOCAL_RANKS.search(line.text)
        if found:
            self.emit("launch", line, {"local_ranks": int(found.group(1))})
        self._assigned(line.text.partition("nproc")[0], line, "command")

    def on_boot(self, f: Fields, line: Line) -> None:
        text = line.text.strip('"')
        found = [word for word, form in (("off", _OFF), ("pt", _PASS), ("on", _ON)) if form.search(text)]
        values = {"boot_s": line.boot_s, "kind": "cmdline", "severity": found[0] if found else None, "text": line.text}
        self.emit("kernel_event", line, values)

    def on_process_id(self, f: Fields, line: Line) -> None:
        self._pid = int(f["pid"])

    def on_status(self, f: Fields, line: Line) -> None:
        self._bound(line, {"pid": self._of(line), "cpus": f["cpus"]})

    def on_memory_status(self, f: Fields, line: Line) -> None:
        self._bound(line, {"pid": self._of(line), "mems": f["cpus"]})

    def _of(self, line: Line) -> int | None:
        path = _STATUS.match(line.text)
        return int(path.group(1)) if path else self._pid

    def on_taskset(self, f: Fields, line: Line) -> None:
        self._bound(line, {"pid": int(f["pid"]), "cpus": f["cpus"]})

    def on_slurm_mask(self, f: Fields, line: Line) -> None:
        self._bound(
            line, {"host": f["host"], "rank": int(f["rank"]), "pid": int(f["pid"]), "cpus": from_mask(f["mask"])}
        )

    def on_placed(self, f: Fields, line: Line) -> None:
        rate = _RATE.search(f.get("text", ""))
        values: dict[str, object] = {"rank": int(f["rank"]), "gpu": int(f["gpu"]), "cpus": f["cpus"]}
        values |= {"mems": f.get("mems"), "host_copy_gbps": float(rate.group(1)) if rate else None}
        self._bound(line, values)

    def _bound(self, line: Line, values: Mapping[str, object]) -> None:
        self.emit("process_binding", line, values)


_LITERALS = (
    *_VARIABLES,
    "BOOT_IMAGE=",
    "ommand line: ",
    "iommu=",
    "GRUB_CMDLINE_LINUX",
    "Tgid:",
    "Cpus_allowed_list:",
    "Mems_allowed_list:",
    "current affinity list:",
    "cpu-bind=MASK",
    " membind ",
    "nproc_per_node",
    "nproc-per-node",
    "ntasks-per-node",
)
"""All of them also occur in prose and in other logs."""

FORMAT = Format(
    name="host-setup",
    grammar="host_setup",
    literals=_LITERALS,
    session=HostSetupSession,
    title="environment, kernel command line, processor binding",
    command="env | grep -E 'NCCL|CUDA'; cat /proc/cmdline; grep Cpus_allowed_list /proc/PID/status",
    versions="Linux; Slurm 20 to 24",
    blocks=False,
    weak_literals=frozenset(_LITERALS),
)
