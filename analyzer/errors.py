"""Faults of the user: they end the run with a help text and an exit code, never with a traceback."""

from __future__ import annotations

EXIT_OK = 0
EXIT_FINDINGS = 1
EXIT_USAGE = 2
EXIT_NOT_UNDERSTOOD = 3
EXIT_BUG = 70
EXIT_INTERRUPTED = 130


class CrashcartError(Exception):
    """A fault that the user can mend; ``help_text`` says how.

    ``exit_code`` is what the process returns when nothing catches it.
    """

    exit_code = EXIT_USAGE

    def __init__(self, message: str, help_text: str = "") -> None:
        super().__init__(message)
        self.help_text = help_text


class InputError(CrashcartError):
    """No path could be opened at all."""


class RuleError(CrashcartError):
    """A rule file is broken; the message reads ``file:line: what``."""
