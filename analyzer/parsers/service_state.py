"""State of the driver's services: ``systemctl status|is-active``, their journal, ``nvidia-imex-ctl -N``.

    ● nvidia-fabricmanager.service - NVIDIA fabric manager service
         Active: failed (Result: exit-code) since Mon 2024-07-01 14:13:57 UTC; 5s ago
    $ systemctl is-active nvidia-fabricmanager
    inactive
    Oct 21 10:15:41 node1 systemd[1]: Stopped NVIDIA fabric manager service.
    Oct 21 10:15:41 node1 systemd[1]: nvidia-fabricmanager.service: Failed with result 'exit-code'.
    Domain State: UP

Seen: systemd 219 to 256. What nv-fabricmanager itself writes to the journal becomes ``fabric_message``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from analyzer.parsers.base import Emit, Format, Line, Session, Verdict
from analyzer.parsers.fabric_texts import fabric_message
from analyzer.shapes import LineGrammar
from analyzer.sources.stamp import iso_seconds

Fields = Mapping[str, str]

_UNIT = re.compile(r"nvidia-(?:fabricmanager|persistenced|imex|dcgm)|nv-hostengine")
_DESCRIPTIONS = (
    ("fabric manager", "nvidia-fabricmanager"),
    ("persistence daemon", "nvidia-persistenced"),
    ("imex", "nvidia-imex"),
    ("dcgm", "nvidia-dcgm"),
    ("data center gpu manager", "nvidia-dcgm"),
)
_VERBS = {"Failed to start": "failed", "Reloading": "", "Reloaded": ""}
_UNIT_EVENTS = (
    ("Failed with result", "failed"),
    ("entered failed state", "failed"),
    ("Deactivated successfully", "stopped"),
    ("Succeeded", "stopped"),
)
_SINCE = re.compile(r"since (?:[A-Z][a-z]{2} )?([0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2})")
_ENABLED = re.compile(r"; (enabled|disabled|static|masked|indirect|enabled-runtime)\b")
_STATES = frozenset({"active", "inactive", "failed", "activating", "deactivating", "unknown", "not-found", "masked"})
_FILE_STATES = frozenset({"enabled", "disabled", "static", "masked"})
_ASKS = re.compile(r"\b(is-active|is-enabled|is-failed|list-unit-files|list-units|status)\b")
_FOREIGN_LINES = 6
_NODE_LINES = 64


class ServiceSession(Session):
    """Reads the head of a status block, answers to ``is-active``, and events of the journal."""

    def __init__(self, grammar: LineGrammar, emit: Emit) -> None:
        super().__init__(grammar, emit)
        self._unit = ""
        self._enabled: str | None = None
        self._asked: list[tuple[str, str]] = []
        self._strange = 0

    def close(self) -> None:
        """Forgets the block."""
        self._unit, self._enabled, self._strange = "", None, 0
        self._asked.clear()
        super().close()

    def foreign(self, line: Line) -> Verdict:
        self._strange += bool(line.text.strip())
        return Verdict.ENDED if self._strange > _FOREIGN_LINES else Verdict.LEFT

    def unread(self, line: Line) -> Verdict:
        return self.foreign(line) if self.open else Verdict.LEFT

    def _state(self, line: Line, unit: str, state: str, says: str, **more: object) -> None:
        self.emit(
            "service_state", line, {"unit": unit, "state": state, "says": says, "text": line.text.strip(), **more}
        )

    def on_head(self, f: Fields, line: Line) -> None:
        self.close()
        self._unit = _unit(f["unit"])
        self.open = True

    def on_loaded(self, f: Fields, line: Line) -> Verdict | None:
        if not self._unit:
            return self.foreign(line)
        enabled = _ENABLED.search(f["text"])
        self._enabled = enabled.group(1) if enabled else None
        word = f["text"].partition(" ")[0]
        if word in ("not-found", "masked"):
            self._enabled = word
        return None

    def on_active(self, f: Fields, line: Line) -> Verdict | None:
        if not self._unit:
            return self.foreign(line)
        since = _SINCE.search(f["text"])
        state = "not-found" if self._enabled == "not-found" else f["text"].partition(" ")[0]
        at = iso_seconds(since.group(1)) if since else None
        self._state(line, self._unit, state, "systemctl", enabled=self._enabled, since=at)
        return None

    def on_detail(self, f: Fields, line: Line) -> Verdict | None:
        """Known: other lines of a status block."""
        return None if self._unit else self.foreign(line)

    def on_missing(self, f: Fields, line: Line) -> None:
        unit = _UNIT.search(line.text)
        if unit:
            self._state(line, unit.group(), "not-found", "systemctl")

    def on_journal(self, f: Fields, line: Line) -> Verdict | None:
        unit = _named(f["what"])
        if unit is None:
            return self.on_text(f, line)
        state = _VERBS.get(f["verb"], f["verb"].lower())
        if state:
            self._state(line, unit, state, "journal")
        return None

    def on_unit(self, f: Fields, line: Line) -> Verdict | None:
        """``unit: event`` of the journal, ``unit: word`` of a script, a row of list-units or list-unit-files."""
        unit, text = _unit(f["unit"]), f.get("text", "").strip()
        for piece, state in _UNIT_EVENTS:
            if text.startswith(piece):
                self._state(line, unit, state, "journal")
                return None
        words = text.replace("(", " ").split()
        if words and (words[0] in _STATES or words[0] in ("loaded", *_FILE_STATES)):
            self._listed(line, unit, words)
        return None if words else Verdict.LEFT

    def _listed(self, line: Line, unit: str, words: list[str]) -> None:
        if words[0] in _FILE_STATES and words[0] != "masked":
            self._state(line, unit, "", "systemctl", enabled=words[0])
        elif words[0] == "loaded" and len(words) > 1 and words[1] in _STATES:
            self._state(line, unit, words[1], "systemctl")
        elif words[0] in _STATES:
            self._state(line, unit, words[0], "systemctl")

    def on_command(self, f: Fields, line: Line) -> Verdict:
        self.close()
        ask = _ASKS.search(f.get("text", ""))
        units = [match.group() for match in _UNIT.finditer(line.text)]
        if ask and units and ask.group(1).startswith("is-"):
            self._asked = [(unit, ask.group(1)) for unit in units]
            self.open = True
        return Verdict.LEFT

    def on_word(self, f: Fields, line: Line) -> Verdict | None:
        """The answer to ``is-active`` or ``is-enabled``, one word for each unit asked for."""
        if not self._asked:
            return self.foreign(line)
        unit, ask = self._asked.pop(0)
        word = f["word"]
        if ask == "is-enabled":
            self._state(line, unit, "", "systemctl", enabled=word)
        else:
            self._state(line, unit, word, "systemctl")
        if not self._asked:
            self.open = False
        return None

    def on_version(self, f: Fields, line: Line) -> None:
        self.emit("version", line, {"component": "fabric manager", "value": f["value"]})

    def on_node(self, f: Fields, line: Line) -> None:
        state = "active" if f["state"] == "READY" else f["state"].lower()
        self._state(line, "nvidia-imex", state, "nvidia-imex-ctl", version=f["value"])

    def on_domain(self, f: Fields, line: Line) -> None:
        word = f["text"].strip()
        self._state(line, "nvidia-imex", "active" if word == "UP" else f"domain {word.lower()}", "nvidia-imex-ctl")

    def on_text(self, f: Fields, line: Line) -> Verdict | None:
        """A line of the journal that a service of the driver wrote, or any other line."""
        values = fabric_message(line.text.strip()) if _FABRIC.search(line.text) else None
        if values is not None and values["kind"] != "other":
            self.emit("fabric_message", line, values)
            return None
        return self.foreign(line) if self.open else Verdict.LEFT


_FABRIC = re.compile(r"fabric manager|NVSwitch|multicast|Fabric Manager")


def _unit(text: str) -> str:
    return text.removesuffix(".service").replace("nv-hostengine", "nvidia-dcgm")


def _named(text: str) -> str | None:
    """The unit that a journal line means, by its name or by its description."""
    found = _UNIT.search(text)
    if found:
        return _unit(found.group())
    lower = text.lower()
    if "nvidia" not in lower:
        return None
    return next((unit for words, unit in _DESCRIPTIONS if words in lower), None)


FORMAT = Format(
    name="service-state",
    grammar="service_state",
    literals=(
        "nvidia-fabricmanager",
        "nv-fabricmanager",
        "nvidia-persistenced",
        "nvidia-imex",
        "nvidia-dcgm",
        "NVIDIA fabric manager",
        "NVIDIA Fabric Manager",
        "NVIDIA Persistence Daemon",
        "NVIDIA IMEX",
        "Fabric Manager version is",
        "- Version: ",
        "Domain State:",
    ),
    session=ServiceSession,
    title="state of the driver's services",
    command="systemctl status nvidia-fabricmanager nvidia-persistenced nvidia-imex",
    versions="systemd 219 to 256, fabric manager and IMEX 450 to 580",
    weak_literals=frozenset(
        {
            "nvidia-fabricmanager",
            "nv-fabricmanager",
            "nvidia-persistenced",
            "nvidia-imex",
            "nvidia-dcgm",
            "NVIDIA fabric manager",
            "NVIDIA Fabric Manager",
            "NVIDIA Persistence Daemon",
            "NVIDIA IMEX",
            "- Version: ",
            "Domain State:",
        }
    ),
)
