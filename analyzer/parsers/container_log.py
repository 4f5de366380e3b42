"""Containers that could not be started or given their GPUs, and the settings that ``docker inspect`` prints.

    nvidia-container-cli: initialization error: nvml error: driver not loaded: unknown.
    docker: Error response from daemon: could not select device driver "" with capabilities: [[gpu]].
    ... failed to create shim task: OCI runtime create failed: ... error running hook #0: ... requirement error: ...
    failed to inject CDI devices: unresolvable CDI devices nvidia.com/gpu=all
            "OOMKilled": true,
            "ShmSize": 67108864,

One row for each line, by its most telling part. Seen: docker 18 to 28, containerd 1.4 to 2.0, libnvidia-container 1.0
to 1.17.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from analyzer.parsers.base import Format, Line, Session, Verdict

Fields = Mapping[str, str]

_KINDS = (
    (re.compile(r"timed out"), "driver_timeout"),
    (re.compile(r"driver not loaded|driver not found"), "driver_not_loaded"),
    (re.compile(r"version mismatch"), "version_mismatch"),
    (re.compile(r"load library failed|cannot open shared object"), "library_missing"),
    (re.compile(r"unsatisfied condition"), "requirement"),
    (re.compile(r"unknown device|no such device|device error"), "device_missing"),
    (re.compile(r"cgroup"), "cgroup"),
    (re.compile(r"permission|operation not permitted"), "permission"),
    (re.compile(r"nvml error|driver error|cuda error"), "nvml_error"),
    (re.compile(r"mount"), "mount"),
)
_DEVICE = re.compile(r"unknown device id: *([\w-]+)|device error: *([\w/-]+): unknown device|(GPU-[0-9a-f-]{8,})")
_VALUE = re.compile(r"unsatisfied condition: ([^,\\]+)|load library failed: ([\w.+-]+)|(nvidia\.com/[\w.=:-]+)")
_TEXT_CAP = 400


class ContainerSession(Session):
    """Each line is a statement by itself."""

    def unread(self, line: Line) -> Verdict:
        return Verdict.LEFT

    def _event(self, line: Line, kind: str, text: str) -> None:
        device, value = _DEVICE.search(text), _VALUE.search(text)
        self.emit(
            "container_event",
            line,
            {
                "kind": kind,
                "device": next((g for g in device.groups() if g), None) if device else None,
                "value": next((g.strip() for g in value.groups() if g), None) if value else None,
                "rank": None,
                "text": text.strip()[:_TEXT_CAP],
            },
        )

    def on_cli(self, f: Fields, line: Line) -> None:
        text = f"{f['stage'].strip()} error: {f['text']}".replace("\\n", " ").split('"', 1)[0]
        kind = next((kind for words, kind in _KINDS if words.search(text)), "hook_failed")
        self._event(line, kind, text.strip(" \\"))

    def on_select(self, f: Fields, line: Line) -> None:
        self._event(line, "no_gpu_runtime", f"could not select device driver {f.get('text', '')}")

    def on_runtime(self, f: Fields, line: Line) -> None:
        self._event(line, "no_gpu_runtime", line.text)

    def on_cdi(self, f: Fields, line: Line) -> None:
        self._event(line, "cdi", line.text)

    def on_hook(self, f: Fields, line: Line) -> None:
        self._event(line, "hook_failed" if "hook" in line.text else "start_failed", line.text)

    def on_setting(self, f: Fields, line: Line) -> None:
        name, value = f["name"].strip('"'), f["value"].strip('"')
        self.emit("container_setting", line, {"name": name, "value": value, "rank": None})
        if name == "OOMKilled" and value == "true":
            values = {"system": "docker", "kind": "oom", "state": "OOMKilled", "rank": None, "text": line.text.strip()}
            self.emit("scheduler_event", line, values)


_JSON = ('"OOMKilled":', '"ExitCode":', '"ShmSize":', '"IpcMode":')
FORMAT = Format(
    name="container-log",
    grammar="container_log",
    literals=(
        "nvidia-container-cli",
        "nvidia-container-runtime",
        "could not select device driver",
        "nknown runtime specified",
        "unknown or invalid runtime name",
        "CDI devices",
        "CDI device injection failed",
        "OCI runtime create failed",
        "failed to create shim",
        "failed to create containerd task",
        "error running hook",
        "error running prestart hook",
        *_JSON,
    ),
    session=ContainerSession,
    title="containers that could not start, docker inspect",
    command="docker run --rm --gpus all IMAGE nvidia-smi; docker inspect CONTAINER; journalctl -u docker -u containerd",
    versions="docker 18 to 28, containerd 1.4 to 2.0, libnvidia-container 1.0 to 1.17",
    weak_literals=frozenset({"nvidia-container-cli", "nvidia-container-runtime", "CDI devices", *_JSON}),
    blocks=False,
)
