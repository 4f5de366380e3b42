"""Sentences about the driver, its libraries and limits, as loaders, container tools and frameworks print them.

    Failed to initialize NVML: Driver/library version mismatch
    ImportError: .../libcusparse.so.12: undefined symbol: __nvJitLinkAddData_12_1, version libnvJitLink.so.12
    Loaded runtime CuDNN library: 8.0.5 but source was compiled with: 8.1.0.
    OSError: [WinError 1455] The paging file is too small for this operation to complete. Error loading "...dll"
    NVIDIA A100 with CUDA capability sm_80 is not compatible with the current PyTorch installation.

Seen: drivers 390 to 595, PyTorch 0.4 to 2.11, TensorFlow 1.15 to 2.17. The subject is
the library, symbol, device or file; what is there and what was asked for are apart where the sentence names both.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from analyzer.parsers.base import Format, Line, Session, Verdict
from analyzer.parsers.cuda_codes import BY_NUMBER, by_text
from analyzer.parsers.system_texts import ABOUT, Found, first_match
from analyzer.parsers.values import bus_id

Fields = Mapping[str, str]

_TEXT_CAP = 400


class SystemMessageSession(Session):
    """One row for each sentence; lines of NCCL's log are left to their own parser."""

    def offer(self, line: Line, called: bool) -> Verdict:
        """NCCL tells of libraries that it does without."""
        if "NCCL INFO" in line.text or "NCCL WARN" in line.text:
            return Verdict.LEFT
        return super().offer(line, called)

    def _send(self, kind: str, line: Line, found: Found | None = None) -> None:
        if found is None:
            found = first_match(ABOUT.get(kind, ()), line.text)
        self.emit(
            "system_message",
            line,
            {
                "kind": kind,
                "subject": found.subject,
                "found": found.found,
                "wanted": found.wanted,
                "text": line.text.strip()[:_TEXT_CAP],
            },
        )

    def on_nvml_mismatch(self, f: Fields, line: Line) -> None:
        self._send("nvml_mismatch", line)

    def on_nvml_unknown(self, f: Fields, line: Line) -> None:
        self._send("nvml_unknown", line)

    def on_nvml_failed(self, f: Fields, line: Line) -> None:
        mismatch = re.search(r"[Vv]ersion.?mismatch", line.text, re.IGNORECASE)
        self._send("nvml_mismatch" if mismatch else "nvml_failed", line)

    def on_no_driver(self, f: Fields, line: Line) -> None:
        self._send("no_driver", line)

    def on_compat_enabled(self, f: Fields, line: Line) -> None:
        self._send("compat_enabled", line)

    def on_compat_unavailable(self, f: Fields, line: Line) -> None:
        self._send("compat_unavailable", line)

    on_ngc_driver = on_compat_unavailable

    def on_cu_init(self, f: Fields, line: Line) -> Verdict | None:
        return self._code(int(f["code"]), "cuInit()", line)

    def on_cu_library(self, f: Fields, line: Line) -> Verdict | None:
        return self._code(int(f["code"]), "cuInit()", line)

    def _code(self, code: int, api: str, line: Line) -> Verdict | None:
        known = BY_NUMBER.get(code)
        if known is None:
            return Verdict.LEFT
        values = {"code": known.number, "name": known.name, "api": api, "text": known.text}
        self.emit("cuda_error", line, values)
        self._send("cuda_library", line)
        return None

    def on_cuda_init(self, f: Fields, line: Line) -> Verdict | None:
        known = by_text(f["what"])
        return self._code(known.number, "cuInit()", line) if known else Verdict.LEFT

    def on_driver_too_old(self, f: Fields, line: Line) -> None:
        self._send("driver_too_old", line)

    def on_allocator_retries(self, f: Fields, line: Line) -> Verdict | None:
        found = first_match(ABOUT["allocator_retries"], line.text)
        if found.found is None:
            return Verdict.LEFT
        self._send("allocator_retries", line, found)
        return None

    def on_module_failed(self, f: Fields, line: Line) -> Verdict | None:
        if "nvidia" not in line.text:
            return Verdict.LEFT
        found = first_match(ABOUT["module_failed"], line.text)
        if found.subject and "not found in directory" in line.text:
            name = found.subject.replace("-", "_")
            self.emit("module", line, {"name": name, "installed": False, "tool": "modprobe"})
        self._send("module_failed", line, found)
        return None

    def on_daemon_reload(self, f: Fields, line: Line) -> None:
        self._send("daemon_reload", line)

    def on_undefined_symbol(self, f: Fields, line: Line) -> None:
        self._send("undefined_symbol", line)

    def on_library_missing(self, f: Fields, line: Line) -> None:
        self._send("library_missing", line)

    def on_version_conflict(self, f: Fields, line: Line) -> Verdict | None:
        if "RM_VERSION" in line.text:
            self._send("nvml_mismatch", line)
        else:
            self._send("version_conflict", line)
        return None

    def on_arch_unsupported(self, f: Fields, line: Line) -> None:
        self._send("arch_unsupported", line)

    def on_arch_list(self, f: Fields, line: Line) -> None:
        self._send("arch_list", line)

    def on_paging_file(self, f: Fields, line: Line) -> None:
        self._send("paging_file", line)

    def on_pin_memory(self, f: Fields, line: Line) -> None:
        self._send("pin_memory", line)

    def on_shm(self, f: Fields, line: Line) -> None:
        self._send("shm", line)

    def on_allocator_flush(self, f: Fields, line: Line) -> None:
        self._send("allocator_flush", line)

    def on_persistence_off(self, f: Fields, line: Line) -> None:
        found = first_match(ABOUT["persistence_off"], line.text)
        self._send("persistence_off", line, found._replace(subject=bus_id(found.subject) or found.subject))

    def on_too_many_files(self, f: Fields, line: Line) -> None:
        self._send("too_many_files", line)

    def on_node_denied(self, f: Fields, line: Line) -> None:
        self._send("node_denied", line)


_LITERALS = (
    "river/library version mismatch",
    "NVML/RM version mismatch",
    "LIB_RM_VERSION_MISMATCH",
    "LibRmVersionMismatch",
    "ailed to initialize NVML",
    "Can't initialize NVML",
    "communicate with the NVIDIA driver",
    "CUDA Forward Compatibility mode",
    "compatibility mode is UNAVAILABLE",
    "This container was built for NVIDIA Driver",
    "cuInit()=",
    "library init failure: ",
    "cudart init failure: ",
    "failed to initialize CUDA: ",
    "nvidia driver is too old",
    "num_alloc_retries",
    "systemctl daemon-reload",
    "modprobe: FATAL:",
    "modprobe: ERROR:",
    "could not insert 'nvidia",
    "systemd[1]: Reloading",
    "undefined symbol: ",
    "cannot open shared object file",
    "Could not load dynamic library '",
    "Loaded runtime CuDNN library",
    "cuDNN version incompat",
    "compiled with different CUDA versions",
    "mismatches the version that was used to compile",
    "_SUBLIBRARY_VERSION_MISMATCH",
    "with CUDA capability sm_",
    "supports CUDA capabilities sm_",
    "aging file is too small",
    "in pin memory thread",
    "unable to mmap ",
    "unable to write to file <",
    "unable to open shared memory object",
    "unable to allocate shared memory",
    "o space left on device: '/dev/shm",
    "oo many open files",
    "received 0 items of ancdata",
    "allocator cache flushes since",
    "ersistence mode is disabled",
    "ersistence mode for GPU",
    ": Operation not permitted",
)
FORMAT = Format(
    name="system-message",
    grammar="system_message",
    literals=_LITERALS,
    session=SystemMessageSession,
    title="messages about driver, libraries and limits",
    command="the output of the training program, of docker run and of nvidia-smi",
    versions="drivers 390 to 595, PyTorch 0.4 to 2.11",
    weak_literals=frozenset(_LITERALS),
    blocks=False,
)
