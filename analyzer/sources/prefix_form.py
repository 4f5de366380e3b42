"""What prefixes look like: one regular expression for each character that a prefix can start with.

None of them backtracks over more than a bounded word.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from string import ascii_lowercase, digits
from typing import Final

from analyzer.sources.stamp import DAY, MONTH, MONTHS

_CLOCK = r"\d\d:\d\d:\d\d"
_ISO = rf"\d{{4}}[-/]\d\d[-/]\d\d[T ]{_CLOCK}(?:[.,]\d{{1,9}})?(?:Z|[+-]\d\d:?\d\d)?"
_LEVELS = "emerg|alert|crit|err|warn|notice|info|debug"
_FACILITIES = "kern user mail daemon authpriv auth syslog lpr news uucp cron ftp local[0-7]".split()

# A row "0: 3 -> 4", the interfaces of `ip link` and Darknet's steps begin like the label of `srun -l`, but are not;
# nor do the distance tables of numactl, and "[0]:" alone on its line is a heading in torchrun's summary of failures.
_NO_TASK = r"(?! *[-\d][-\d /]{0,40}->)(?![\w.@-]{1,40}: <)(?!\d{1,9}\.\d{1,9}, \d{1,9}\.\d{1,9} avg)"

_DATE = rf"(?P<iso>{_ISO}(?::? |\t))"
_TASK = rf"(?P<task>(?:\d{{1,7}}:| {{1,8}}\d{{1,7}}:(?!  *\d[\d ]*$))(?: {_NO_TASK}|$))"
_KMSG = r"(?P<kmsg>\d{1,3},\d{1,18},\d{1,18},[^;\s]{1,80};)"
_BRACKET = (
    rf"(?P<bracket>\[(?:{_ISO}|{DAY} {MONTH} [ \d]\d {_CLOCK} \d{{4}}|{MONTH} [ \d]\d \d{{4}} {_CLOCK})\] ?)"
    r"|(?P<boot>\[ {0,12}\d{1,12}\.\d{6}\] )"
    r"|(?P<label>\[rank\d{1,7}\]: ?|\[(?:default|host|trainer|worker)\d{1,7}\]:|\[\d{1,7}\]:(?= *[^ ])"
    r"|\[(?:[\w.@-]{1,80},)?\d{1,7}\]<std(?:out|err|diag)>:(?: (?! ))?|\[pod/[^\]\s]{1,300}\] )"
)
_RAY = (
    r"(?P<label>\((?:[^()\[\]]{1,100} )?pid=\d{1,10}(?:, ip=[^()\s,]{1,60})?\) ?"
    r"|\((?:raylet|autoscaler)(?: \+[\dhms]{1,12})?(?:, ip=[^()\s,]{1,60})?\) )"
)
_PRIORITY = r"(?P<boot><\d{1,3}>\[ {0,12}\d{1,12}\.\d{1,9}\] )|(?P<level><\d{1,3}>(?=[\[A-Z\d]))"
_SYSLOG = rf"(?P<syslog>{MONTH} [ \d]\d {_CLOCK}(?:\.\d{{1,9}})? )"
_HOROVOD = rf"(?P<horovod>{DAY} {MONTH} [ \d]\d {_CLOCK} \d{{4}}(?=\[[^\]\s]{{1,90}}\]<std))"
_WORD = r"(?P<word>[a-z][\w.-]{0,62}(?:: | {1,40}\| ))"
_LEVEL = rf"(?P<level>(?:{'|'.join(_FACILITIES)}) {{0,8}}:(?:{_LEVELS}) {{0,8}}: )"

Matcher = Callable[[str, int], "re.Match[str] | None"]


def _gates() -> dict[str, Matcher]:
    """Which prefixes can start with a character: a lookup that spares most lines the regular expressions."""
    patterns = {
        " ": _TASK,
        "[": _BRACKET,
        "(": _RAY,
        "<": _PRIORITY,
        **dict.fromkeys(digits, f"{_DATE}|{_TASK}|{_KMSG}"),
        **dict.fromkeys(ascii_lowercase, _WORD),
        **{name[0]: f"{_WORD}|{_LEVEL}" for name in _FACILITIES},
        **dict.fromkeys((name[0] for name in MONTHS), f"{_SYSLOG}|{_HOROVOD}"),
        **dict.fromkeys("MTWFS", f"{_SYSLOG}|{_HOROVOD}"),
    }
    return {first: re.compile(pattern, re.ASCII).match for first, pattern in patterns.items()}


GATES: Final = _gates()
"""Matchers by the first character; the group that matched names the kind of prefix."""
