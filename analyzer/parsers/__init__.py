"""The formats that crashcart reads, in the order in which a line is offered to them."""

from __future__ import annotations

from analyzer.parsers.base import Format
from analyzer.parsers.nccl_log import FORMAT as NCCL_LOG

FORMATS: tuple[Format, ...] = (NCCL_LOG,)

__all__ = ["FORMATS", "Format"]
