"""Python tracebacks (3.8 to 3.14, with the marks of 3.11, chains and groups) and the last words of C++ programs.

    Traceback (most recent call last):
      File "/job/train.py", line 73, in <module>
        a = torch.empty(64, 64, device=dev); print((a @ a).sum().item())
                                                    ~~^~~
    RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`

    terminate called after throwing an instance of 'c10::DistBackendError'
      what():  [PG ID 0 PG GUID 0(default_pg) Rank 1] Process group watchdog thread terminated with exception: ...

Indentation tells source code from the last line. Some loggers repeat their own words before each line; these are
taken from the first frame.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Mapping
from dataclasses import replace

from analyzer.parsers.base import Emit, Format, Line, Session, Verdict
from analyzer.shapes import LineGrammar, shape_of

Fields = Mapping[str, str]

_FRAMES = 3
_CALLS = 40
_CODE = 3
_CODE_CAP = 160
_MESSAGE_CAP = 1000
_FOREIGN_LIMIT = 16  # lines of other programs in a row
_HEAD = "Traceback (most recent call last):"
_EXCEPTION = re.compile(
    r"(?:Error|Exception|Warning|Interrupt|Exit|Iteration|Group|Fault|Timeout|TimedOut|Expired|Empty|Abort|Aborted"
    r"|Failure|Failed|Cancelled|Killed|Signal|NotFound)$"
)
_LOWER = frozenset({"timeout", "error", "gaierror", "herror"})
_MAYBE = re.compile(r"[A-Z]\w*[a-z]\w*")


class TracebackSession(Session):
    """One row for each exception, at the line that names it."""

    def __init__(self, grammar: LineGrammar, emit: Emit) -> None:
        super().__init__(grammar, emit)
        self._frames: deque[str] = deque(maxlen=_FRAMES)
        self._calls: deque[str] = deque(maxlen=_CALLS)
        self._code: deque[str] = deque(maxlen=_CODE)
        self._base = 0
        self._indent = ""
        self._lead = ""
        self._foreign = 0
        self._maybe: tuple[Line, Fields] | None = None
        self._terminate: tuple[Line, str] | None = None
        self._thrown = ""

    def offer(self, line: Line, called: bool) -> Verdict:
        """Tells by the indentation what a line inside a traceback is; only the others go to the grammar."""
        text = self._without_lead(line.text) if self.open else line.text
        bare = text.lstrip(" \t|+")
        self._indent = text[: len(text) - len(bare)]
        if self.open and not bare.startswith(('File "', "Traceback", "Exception Group")):
            if not bare.strip("-0123456789 "):
                return Verdict.LEFT
            if len(self._indent) > self._base and (not self._lead or text is not line.text):
                self._foreign = 0
                if bare.strip("^~ ") and not bare.startswith("[Previous line"):
                    self._code.appendleft(bare[:_CODE_CAP])
                return Verdict.TAKEN
        verdict = super().offer(replace(line, text=text.lstrip(" \t|")), called)
        if verdict is Verdict.LEFT and self.open:
            self._foreign += 1
            if self._foreign >= _FOREIGN_LIMIT:
                return Verdict.ENDED
        return verdict

    def _without_lead(self, text: str) -> str:
        at = text.find('File "')
        if not self._frames and at >= 0 and ", line " in text:
            lead = text[: max(at - 2, 0)]
            self._lead = lead if lead.strip(" \t|+") else ""
            self._base = 0 if self._lead else len(lead)
        end = len(self._lead)
        if end and shape_of(text[:end]) == shape_of(self._lead):
            return text[end:]
        return text

    def unread(self, line: Line) -> Verdict:
        """Only a head or a frame in an unknown form is a fault; the other literals also stand in prose."""
        return Verdict.LEFT

    def close(self) -> None:
        """Sends an exception of unusual name, and a C++ exception without a message."""
        if self._maybe is not None:
            line, fields = self._maybe
            self._exception(line, fields["type"], fields.get("text"))
        if self._terminate is not None:
            self._send(self._terminate[0], self._terminate[1], None, None)
        self._terminate, self._thrown = None, ""
        self._end()
        super().close()

    def _end(self) -> None:
        self._frames.clear()
        self._calls.clear()
        self._code.clear()
        self._maybe, self._lead, self._base, self._foreign, self.open = None, "", 0, 0, False

    def on_head(self, f: Fields, line: Line) -> None:
        if self._maybe is not None:
            self._exception(self._maybe[0], self._maybe[1]["type"], self._maybe[1].get("text"))
        self._end()
        self.open = True

    def on_frame(self, f: Fields, line: Line) -> Verdict | None:
        if not self.open:
            return Verdict.LEFT
        self._foreign = 0
        place = "/".join(f["path"].strip('"').replace("\\", "/").rsplit("/", 2)[-2:])
        self._frames.appendleft(f"{place}:{f['number']} {f.get('function', '')}".rstrip())
        self._calls.appendleft(f"{place.rpartition('/')[2].removesuffix('.py')}.{f.get('function', '').strip() or '?'}")
        return None

    def on_chain(self, f: Fields, line: Line) -> None:
        """The next traceback has its own head."""

    def on_final(self, f: Fields, line: Line) -> Verdict | None:
        name = f["type"]
        if _is_exception(name) and (self.open or not self._indent or "|" in self._indent):
            self._exception(line, name, f.get("text"))
            return None
        if self.open and self._maybe is None and _MAYBE.fullmatch(name):
            self._maybe = (line, f)
        return Verdict.LEFT

    def _exception(self, line: Line, name: str, text: str | None) -> None:
        self._send(line, name, text, " < ".join(self._frames) or None)
        self._end()

    def _send(self, line: Line, name: str, text: str | None, frames: str | None) -> None:
        message = (text or "").strip()[:_MESSAGE_CAP]
        values = {"type": name, "message": message or None, "frames": frames}
        if frames:
            values |= {"calls": " ".join(self._calls), "code": " < ".join(self._code) or None}
        self.emit("exception", line, values)

    def on_terminate(self, f: Fields, line: Line) -> None:
        kind = f.get("kind", "").strip("'")
        if not kind:
            self._send(line, "terminate", "called without an active exception", None)
            return
        self._terminate, self._thrown = (line, kind), kind

    def on_what(self, f: Fields, line: Line) -> None:
        self._send(line, self._thrown or "C++ exception", f.get("text"), None)
        self._terminate = None

    def on_fatal(self, f: Fields, line: Line) -> None:
        self._send(line, "Fatal Python error", f["text"], None)


def _is_exception(name: str) -> bool:
    """Whether a name is surely that of an exception: by its ending, or by its module."""
    module, _, last = name.rpartition(".")
    if not last or name.startswith("nccl"):  # ncclSystemError is a text of NCCL, not a class
        return False
    if _EXCEPTION.search(last):
        return _EXCEPTION.fullmatch(last) is None or bool(module)
    return bool(module) and all(module.split(".")) and (last[0].isupper() or last in _LOWER)


FORMAT = Format(
    name="traceback",
    grammar="traceback",
    literals=(_HEAD, "terminate called ", "what():  ", "Fatal Python error: ", "Error: "),
    session=TracebackSession,
    title="Python traceback",
    command="the output of the program",
    versions="Python 3.8 to 3.14, libstdc++",
    weak_literals=frozenset({"terminate called ", "what():  ", "Error: "}),
)
