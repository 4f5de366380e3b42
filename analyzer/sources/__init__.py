"""Sources: files, folders, archives and standard input become blocks of numbered text lines.

Knows files, compression, encodings, terminal codes and launcher prefixes; knows no log format.
"""

from __future__ import annotations

from analyzer.sources.bug_report import BugReport, about_dump
from analyzer.sources.clean import clean
from analyzer.sources.discover import Job, expand
from analyzer.sources.limits import Limits
from analyzer.sources.member import Member
from analyzer.sources.names import name_host, name_rank
from analyzer.sources.parts import cut_points, part_of
from analyzer.sources.prefix import Prefixed, split_prefix
from analyzer.sources.streams import members
from analyzer.sources.text import BLOCK, LINE_CAP, Block, blocks

__all__ = [
    "BLOCK",
    "LINE_CAP",
    "Block",
    "BugReport",
    "Job",
    "Limits",
    "Member",
    "Prefixed",
    "about_dump",
    "blocks",
    "clean",
    "cut_points",
    "expand",
    "members",
    "name_host",
    "name_rank",
    "part_of",
    "split_prefix",
]
