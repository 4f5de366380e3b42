"""Errors of the CUDA runtime, driver and libraries as programs print them, and assertions that failed in kernels.

    CUDA error at bad.cu:27 code=700(cudaErrorIllegalAddress) "cudaDeviceSynchronize()": an illegal memory access ...
    torch.AcceleratorError: CUDA error: device-side assert triggered
    RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`
    cupy_backends.cuda.api.runtime.CUDARuntimeError: cudaErrorIllegalAddress: an illegal memory access was encountered
    Indexing.cu:1515: indexSelectSmallIndex: block: [0,0,0], thread: [3,0,0] Assertion `srcIndex < ...` failed.

Number, name and text of a CUDA error are completed from each other; the name is the runtime's, also where the driver's
was printed, and the number today's, also where a runtime before 10.1 printed its own. Statuses of cuBLAS and cuDNN
count by their own numbers, so ``code`` stays NULL there. CUDA 8 to 13, PyTorch 0.4 to 2.11, CuPy 8 to 14.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from analyzer.parsers.base import Emit, Format, Line, Session, Verdict
from analyzer.parsers.cuda_codes import BY_NAME, BY_NUMBER, Code, by_text
from analyzer.parsers.values import integer
from analyzer.shapes import LineGrammar

Fields = Mapping[str, str]

_CALL = re.compile(r"\b(cu(?:da)?[A-Z]\w*(?:\([^()]*\))?)(?: ->|:|$)")
_NUMBERED = re.compile(r"([0-9]+)(?: '([^']*)')?\.?")
_ERROR = re.compile(r"Error ([0-9]+): (.*)")
_IN_BRACKETS = re.compile(r"\(([0-9]+)\)")
_STATUS_CALL = re.compile(r"when calling (.*)")
_CLOSERS = " .'\")"
_TEXT_CAP = 400


class CudaSession(Session):
    """One row for each error line; an assertion of many threads becomes one row for its place."""

    def __init__(self, grammar: LineGrammar, emit: Emit) -> None:
        super().__init__(grammar, emit)
        self._asserted: set[tuple[str, str]] = set()

    def offer(self, line: Line, called: bool) -> Verdict:
        """Lines of NCCL's own log carry such texts too, and belong to its parser."""
        if "NCCL WARN" in line.text or "NCCL INFO" in line.text:
            return Verdict.LEFT
        return super().offer(line, called)

    def on_sample(self, f: Fields, line: Line) -> None:
        self._error(line, name=f["name"], code=f["code"], text=f.get("text"), api=f["quoted"].strip('"'))

    def on_error(self, f: Fields, line: Line) -> None:
        if "status" in f:
            self._status(f, line, f.get("api"))
            return
        text = _bare(f["text"])
        numbered = _NUMBERED.fullmatch(text)
        if numbered:
            self._error(line, code=numbered.group(1), text=numbered.group(2))
        else:
            self._error(line, text=text)

    def on_failure(self, f: Fields, line: Line) -> None:
        text = _bare(f["quoted"] if "quoted" in f else f["text"])
        self._error(line, code=f.get("code"), text=text.strip("'\""))

    def on_named(self, f: Fields, line: Line) -> Verdict | None:
        name = f["name"]
        if "text" not in f and "code" not in f and not line.text.rstrip(_CLOSERS).endswith(name):
            return Verdict.LEFT
        if "quoted" in f:  # compute-sanitizer
            called = f.get("text", "").rpartition(" to ")[2].rstrip(".")
            self._error(line, name=name, code=f["code"], text=f["quoted"].strip('"'), api=called or None)
            return None
        call = _CALL.search(line.text.partition(name)[0].rstrip())
        self._error(line, name=name, code=f.get("code"), text=_bare(f.get("text", "")), api=call and call.group(1))
        return None

    def on_status(self, f: Fields, line: Line) -> None:
        call = _STATUS_CALL.search(f.get("text", ""))
        self._status(f, line, call and call.group(1))

    def _status(self, f: Fields, line: Line, api: str | None) -> None:
        name = f["status"]
        text = line.text[line.text.find(name) :][:_TEXT_CAP]
        self.emit("cuda_error", line, {"name": name, "api": api and api.strip("`'\" ."), "text": text})

    def on_hint(self, f: Fields, line: Line) -> None:
        """The name that belongs to the error in the line before, which its text has given already."""

    def on_text(self, f: Fields, line: Line) -> None:
        message = f["message"]
        text = (message + line.text.partition(message)[2])[:_TEXT_CAP]
        error = _ERROR.search(text)
        number = _IN_BRACKETS.search(message)
        before = line.text.partition(message)[0].rstrip(" :")
        call = _CALL.search(message) or (_CALL.search(before) if number else None)
        code = error.group(1) if error else number.group(1) if number else None
        self._error(line, code=code, text=text, meant=error.group(2) if error else text, api=call and call.group(1))

    def on_old(self, f: Fields, line: Line) -> None:
        self._error(line, code=f["code"], text=f["text"].partition(" at /")[0])

    def on_check(self, f: Fields, line: Line) -> None:
        self._error(line, code=f["code"], text=f["text"])

    def on_dsa(self, f: Fields, line: Line) -> None:
        code = BY_NAME["cudaErrorAssert"]
        self.emit(
            "cuda_error",
            line,
            {"code": code.number, "name": code.name, "gpu": integer(f["gpu"]), "text": line.text.strip()},
        )

    def on_assert(self, f: Fields, line: Line) -> None:
        key = (f["site"].replace("\\", "/").rpartition("/")[2], f["condition"][1:-1])
        if key not in self._asserted:
            self._asserted.add(key)
            self.emit("kernel_assert", line, {"site": key[0], "condition": key[1]})

    def _error(
        self,
        line: Line,
        *,
        name: str | None = None,
        code: str | None = None,
        text: str | None = None,
        meant: str | None = None,
        api: str | None = None,
    ) -> None:
        """Emits one error; ``meant`` is the text that tells the code, where it is not the whole text."""
        known = _known(name, meant or text, integer(code))
        self.emit(
            "cuda_error",
            line,
            {
                "code": known.number if known else integer(code),
                "name": known.name if known else name,
                "api": api,
                "text": (text or (known.text if known else None) or name or "")[:_TEXT_CAP],
            },
        )


def _known(name: str | None, text: str | None, number: int | None) -> Code | None:
    """The error by its name, else by its text, else by its number."""
    return (BY_NAME.get(name) if name else None) or (by_text(text) if text else None) or BY_NUMBER.get(number or 0)


def _bare(text: str) -> str:
    """The text without the rest of the literal around it (``RuntimeError('CUDA error: ...')``)."""
    text = text.strip()
    for tail in ("')", '")', "',)", '",)'):
        text = text.removesuffix(tail)
    return text


_WEAK = (
    "CUDA error ",
    "cudaError",
    "CUDA_ERROR_",
    "CUBLAS_STATUS_",
    "CUDNN_STATUS_",
    "CUSPARSE_STATUS_",
    "CUSOLVER_STATUS_",
    "CURAND_STATUS_",
    "CUFFT_",
    "Cuda failure",
    "CUDA failure",
    "o CUDA-capable device",
    "No CUDA GPUs are",
    "all CUDA-capable devices are",
    "CUDA driver version is insufficient",
    "NVIDIA driver on your system",
    "Unexpected error from cudaGetDeviceCount",
    "CUDA unknown error",
    "CUDA driver initialization failed",
    "device kernel image is invalid",
    "uncorrectable ECC error encountered",
    "to cuInit: ",
    "], thread: [",
)
FORMAT = Format(
    name="cuda-error",
    grammar="cuda_error",
    literals=(
        "CUDA error: ",
        "CUDA Error: ",
        "cuda error: ",
        "Cuda error: ",
        "CUDA ERROR: ",
        "CUDA driver error: ",
        "CUDA kernel error: ",
        "cuDNN error: ",
        "GPUassert: ",
        "cuda runtime error (",
        "THCudaCheck FAIL",
        "CUDA device-side assertion failures",
        *_WEAK,
    ),
    session=CudaSession,
    title="CUDA error",
    command="the output of the program (run it with CUDA_LAUNCH_BLOCKING=1 to have the right line named)",
    versions="CUDA 8 to 13",
    weak_literals=frozenset(_WEAK),
)
