"""Pickles from logs, read without running anything: plain containers, numbers and texts only."""

from __future__ import annotations

import io
import pickle
from typing import NoReturn

_PLAIN = {
    ("collections", "OrderedDict"): dict,
    **{("torch.jit._pickle", f"build_{kind}list"): list for kind in ("int", "double", "bool")},
}
"""Names that only wrap a container; everything else is refused."""


class PickleRefused(Exception):
    """A pickle that is broken, or that asks for more than plain values; the text says what."""


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str, /) -> object:
        """Only wrappers of containers."""
        plain = _PLAIN.get((module, name))
        if plain is None:
            raise PickleRefused(f"refused: it asks for {module[:60]}.{name[:60]}, and only plain values are read")
        return plain

    def persistent_load(self, pid: object) -> NoReturn:
        """No references to anything outside."""
        raise PickleRefused("refused: it refers to objects outside the file")


def load_plain(data: bytes) -> object:
    """The value in a pickle. Raises PickleRefused."""
    try:
        return _Unpickler(io.BytesIO(data)).load()
    except PickleRefused:
        raise
    except Exception as error:
        raise PickleRefused(f"broken pickle ({type(error).__name__})") from error
