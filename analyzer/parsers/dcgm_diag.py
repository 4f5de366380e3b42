"""NVIDIA DCGM: ``dcgmi diag`` (table and JSON), ``dcgmi health``, ``dcgmi topo``, ``dcgmi nvlink``; DCGM 2 to 4.

    | PCIe                      | Fail - GPU: 2                                  |
    | Warning                   | GPU 2 Detected more than 80 PCIe replays ...   |
    | GPU ID: 0        | Warning                                                 |
    | To GPU 1          | Connected via 4 NVLINKs (Links: 0, 1, 2, 3)            |
    gpuId 0:
        U U U U D D _ _

Links: U up, D down, X disabled, _ not there. One result of one test and GPU is one row of ``health_check``.
"""

from __future__ import annotations

from collections.abc import Mapping

from analyzer.parsers.base import Emit, Format, Line, Verdict
from analyzer.parsers.dcgm_texts import each_gpu, gpus, json_rows, path, result
from analyzer.parsers.json_block import JsonBlock, JsonOrTableSession, opening
from analyzer.shapes import LineGrammar

Fields = Mapping[str, str]

_NOTES = ("warning", "error", "info")
_NO_TESTS = frozenset({"diagnostic", "result", "dcgm version", "driver version detected", "gpu device ids detected"})


class DcgmSession(JsonOrTableSession):
    """Reads tables cell by cell; what a test says may go on over several rows."""

    foreign_lines = 4

    def __init__(self, grammar: LineGrammar, emit: Emit) -> None:
        super().__init__(grammar, emit)
        self._reset()

    def _reset(self) -> None:
        self._tool = "dcgmi diag"
        self._category: str | None = None
        self._test: tuple[Line, str, str, list[tuple[int | None, str]]] | None = None
        self._details: list[str] = []
        self._gpu: int | None = None
        self._gpu_of_links: int | None = None
        self._peer = 0
        self._strange = 0

    def close(self) -> None:
        """Sends the last test or the JSON document."""
        block, self._json = self._json, None
        if block is not None:
            for values in json_rows(block.value()):
                self.emit("health_check", block.line, {**values, "tool": "dcgmi diag"})
        self._flush()
        self._reset()
        super().close()

    def _flush(self) -> None:
        test, self._test = self._test, None
        if test is None:
            return
        line, name, word, each = test
        detail = " ".join(self._details) or None
        for gpu, outcome in each or [(None, word)]:
            values = {"tool": self._tool, "category": self._category, "name": name, "gpu": gpu, "result": outcome}
            self.emit("health_check", line, values | {"detail": None if outcome == "pass" else detail})
        self._details.clear()

    def on_json(self, f: Fields, line: Line) -> Verdict | None:
        head, text = opening(line.text, "DCGM")
        self.close()
        self._json = JsonBlock(line, head)
        self.open = True
        if self._json.add(text):
            self.close()
        return None

    def on_rule(self, f: Fields, line: Line) -> Verdict | None:
        return None if self.open else Verdict.LEFT

    def on_section(self, f: Fields, line: Line) -> Verdict | None:
        if not self.open:
            return Verdict.LEFT
        self._flush()
        self._category = line.text.strip("|+- \t")
        return None

    def on_row(self, f: Fields, line: Line) -> Verdict | None:
        left, right = f.get("left", ""), f.get("right", "")
        if left == "Diagnostic" or "Health Monitor" in line.text or "Overall Health" in line.text:
            self._begin("dcgmi health" if "Health" in line.text else "dcgmi diag")
            return None
        if not self.open:
            return self._topo(left, right, line)
        self._strange = 0
        if left.startswith("To GPU") or left.startswith("GPU ID:"):
            return self._card(left, right, line)
        if not left:
            self._more(right, line)
        elif left.lower().startswith(_NOTES) or left.startswith("->"):
            self._note(left, right, line)
        elif left.lower() not in _NO_TESTS:
            self._begin_test(left, right, line)
        return None

    def _begin(self, tool: str) -> None:
        if not self.open or tool != self._tool:
            self.close()
        self._tool, self.open = tool, True

    def _begin_test(self, name: str, text: str, line: Line) -> None:
        self._flush()
        word = result(text)
        if word is not None:
            named: list[tuple[int | None, str]] = [(gpu, word) for gpu in gpus(text)]
            self._test = (line, name, word, named)

    def _more(self, text: str, line: Line) -> None:
        """A row without a name: results by GPU, or more of the text before it."""
        each = each_gpu(text)
        if each and self._test is not None:
            self._test[3].extend(each)
        elif self._tool == "dcgmi health" and self._gpu is not None and ": " in text and result(text.split(": ")[1]):
            self._flush()
            name, _, rest = text.partition(": ")
            word = result(rest) or "warn"
            self._test = (line, name, word, [(self._gpu, word)])
            self._details.append(rest.partition(" - ")[2] or rest)
        elif self._gpu_of_links is not None and text:
            self._topo_more(text, line)
        elif text:
            self._details.append(text)

    def _note(self, left: str, right: str, line: Line) -> None:
        named = gpus(right) or gpus(left)
        if self._test is not None and named and not self._test[3]:
            self._test[3].extend((gpu, self._test[2]) for gpu in named)
        if right and not left.lower().startswith("info"):
            self._details.append(right)

    def _card(self, left: str, right: str, line: Line) -> Verdict | None:
        number = left.removeprefix("To GPU").removeprefix("GPU ID:").strip()
        if not number.isdigit():
            return self.foreign(line)
        if left.startswith("To GPU"):
            return self._topo(left, right, line)
        self._flush()
        if "Topology" in right:
            self._gpu_of_links, self._tool = int(number), "dcgmi topo"
            return None
        self._gpu = int(number)
        word = result(right)
        if word is not None:
            self._test = (line, "overall", word, [(self._gpu, word)])
        return None

    def _topo(self, left: str, right: str, line: Line) -> Verdict | None:
        if left.startswith("GPU ID:") and "Topology" in right:
            self.open = True
            return self._card(left, right, line)
        number = left.removeprefix("To GPU").strip()
        if self._gpu_of_links is None or not number.isdigit():
            return self.foreign(line)
        self._peer = int(number)
        self._topo_more(right, line)
        return None

    def _topo_more(self, text: str, line: Line) -> None:
        """A connection; where NVLinks join the cards, a second row names them and counts."""
        found = path(text)
        if found is not None and self._gpu_of_links is not None:
            label, links = found
            ends = {"a": f"GPU{self._gpu_of_links}", "b": f"GPU{self._peer}"}
            self.emit("topo_link", line, {**ends, "path": label, "nvlinks": links})

    def on_gpu_links(self, f: Fields, line: Line) -> Verdict | None:
        self._gpu_of_links = int(f["gpu"]) if line.text.strip().startswith("gpuId") else None
        self._tool, self.open, self._strange = "dcgmi nvlink", True, 0
        return None

    def on_links(self, f: Fields, line: Line) -> Verdict | None:
        if self._tool != "dcgmi nvlink" or not self.open:
            return self.foreign(line)
        for link, state in enumerate(f["states"].split() if self._gpu_of_links is not None else ()):
            if state in "UD":
                self.emit("gpu_link", line, {"gpu": self._gpu_of_links, "link": link, "active": state == "U"})
        return None

    def on_text(self, f: Fields, line: Line) -> Verdict | None:
        return self.foreign(line)


FORMAT = Format(
    name="dcgm",
    grammar="dcgm_diag",
    literals=(
        "| Diagnostic   ",
        '"DCGM Diagnostic"',
        '"DCGM GPU Diagnostic"',
        "Health Monitor Report",
        "Overall Health",
        "Topology Information",
        "gpuId ",
    ),
    session=DcgmSession,
    title="NVIDIA DCGM: diag, health, topo, nvlink",
    command="dcgmi diag -r 3; dcgmi health -c; dcgmi nvlink -s",
    versions="DCGM 2.0 to 4.4",
    weak_literals=frozenset(
        {"| Diagnostic   ", "Health Monitor Report", "Overall Health", "Topology Information", "gpuId "}
    ),
)
