"""Versions of packages: pip, conda, dpkg, rpm, ``nvcc --version`` and ``python -m torch.utils.collect_env``.

    torch==2.4.0+cu121
    nvidia-nccl-cu12          2.20.5
    [pip3] torch==1.13.1
    CUDA used to build PyTorch: 12.1
    ii  libnvidia-compute-535  535.171.04-0ubuntu0.22.04.1  amd64  NVIDIA libcompute package
    Cuda compilation tools, release 12.4, V12.4.131
    torch.version.cuda 12.1

Seen: pip 19 to 25, conda 4 to 24, dpkg 1.19 to 1.22, CUDA 9 to 13, PyTorch 1.0 to 2.11. Kept are the packages of the
framework, of CUDA and of the driver only; the build's CUDA follows from the local part of a version (``+cu121``).
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from analyzer.parsers.base import Format, Line, Session, Verdict

Fields = Mapping[str, str]

_KEPT = re.compile(
    r"torch|nvidia|cuda|cudnn|nccl|cupy|jax|tensorflow|triton|vllm|deepspeed|flash.attn|xformers|apex|megatron|transformers"
    r"|accelerate|bitsandbytes|cudatoolkit|numpy"
)
_LOCAL_CUDA = re.compile(r"\+cu([0-9]{2,3})\b")
_RPM = re.compile(r"(?P<name>[\w+-]+?)-(?P<version>[0-9][\w.~+:]*)-")
_FACTS = {
    "PyTorch version": "torch",
    "CUDA used to build PyTorch": "torch CUDA",
    "CUDA runtime version": "CUDA toolkit",
    "Nvidia driver version": "NVIDIA driver",
    "cuDNN version": "cuDNN",
}


class PackageListSession(Session):
    """Line by line; a table's row counts only where its name is one of the packages that matter."""

    def unread(self, line: Line) -> Verdict:
        return Verdict.LEFT

    def _send(self, line: Line, name: str, value: str, tool: str) -> Verdict | None:
        name = name.lower().replace("_", "-")
        if not _KEPT.search(name) or not any(letter.isdigit() for letter in value):
            return Verdict.LEFT
        self.emit("package", line, {"name": name, "version": value, "tool": tool})
        if name == "torch":
            self._version(line, "torch", value)
            local = _LOCAL_CUDA.search(value)
            if local:
                digits = local.group(1)
                self._version(line, "torch CUDA", f"{digits[:-1]}.{digits[-1]}")
        return None

    def _version(self, line: Line, component: str, value: str) -> None:
        self.emit("version", line, {"component": component, "value": value})

    def on_frozen(self, f: Fields, line: Line) -> Verdict | None:
        return self._send(line, f["name"], f["value"], "pip")

    def on_collected(self, f: Fields, line: Line) -> Verdict | None:
        self._send(line, f["name"], f["value"].lstrip("="), "collect_env")
        return None

    def on_table(self, f: Fields, line: Line) -> Verdict | None:
        if not f["value"][0].isdigit():
            return Verdict.LEFT
        rest = f.get("rest", "")
        return self._send(line, f["name"], f["value"], "conda" if rest and "/" not in rest else "pip")

    def on_fact(self, f: Fields, line: Line) -> None:
        component = _FACTS.get(line.text.partition(":")[0].strip())
        value = line.text.partition(":")[2].strip()
        if component and value[:1].isdigit():
            self._version(line, component, value.split()[0])
            local = _LOCAL_CUDA.search(value)
            if local and component == "torch":
                self._version(line, "torch CUDA", f"{local.group(1)[:-1]}.{local.group(1)[-1]}")

    def on_torch_cuda(self, f: Fields, line: Line) -> Verdict | None:
        value = f["value"].strip("'\"() ")
        if not value[:1].isdigit():
            return Verdict.LEFT
        self._version(line, "torch CUDA", value)
        return None

    def on_nvcc(self, f: Fields, line: Line) -> None:
        self._version(line, "CUDA toolkit", f["value"])

    def on_dpkg(self, f: Fields, line: Line) -> Verdict | None:
        if line.text[0] not in "ih":
            return None
        return self._send(line, f["name"].partition(":")[0], f["value"], "dpkg")

    def on_rpm(self, f: Fields, line: Line) -> Verdict | None:
        found = _RPM.match(line.text.strip())
        return self._send(line, found.group("name"), found.group("version"), "rpm") if found else Verdict.LEFT


_LITERALS = (
    "torch==",
    "torch   ",
    "nvidia-",
    "cudatoolkit",
    "pytorch-cuda",
    "[pip3] ",
    "[pip] ",
    "[conda] ",
    "PyTorch version:",
    "CUDA used to build PyTorch",
    "CUDA runtime version:",
    "Nvidia driver version:",
    "cuDNN version:",
    "torch.version.cuda",
    "Cuda compilation tools",
    "ii  lib",
    "ii  nv",
    "ii  cuda",
    "kmod-nvidia",
)
FORMAT = Format(
    name="package-list",
    grammar="package_list",
    literals=_LITERALS,
    session=PackageListSession,
    title="installed packages (pip, conda, dpkg, collect_env)",
    command="pip list; conda list; python -m torch.utils.collect_env",
    versions="pip 19 to 25, conda 4 to 24, PyTorch 1.0 to 2.11",
    weak_literals=frozenset(_LITERALS),
    blocks=False,
)
