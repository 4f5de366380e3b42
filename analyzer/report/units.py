"""Figures as text. Bytes are shown in GiB or MiB (powers of 1,024); GB (10^9) only where a log used it."""

from __future__ import annotations

import math
from datetime import datetime, timedelta, timezone

from analyzer.model import Figure

GIB = 1 << 30
MIB = 1 << 20
KIB = 1 << 10

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_BOOT_LIMIT_S = 10**8
_CONFIDENCE = ((0.9, "high"), (0.7, "good"), (0.5, "moderate"))
_BYTE_UNITS = ("b", "byte", "bytes")


def gib(size: float) -> str:
    """Bytes as a bare GiB figure with two decimals: ``66.39``."""
    return f"{size / GIB:,.2f}"


def gib_unit(size: float) -> str:
    """Bytes in GiB with the unit: ``66.39 GiB``."""
    return f"{gib(size)} GiB"


def gb_unit(size: float) -> str:
    """Bytes in decimal GB with the unit: ``78.5 GB``."""
    return f"{size / 1e9:,.1f} GB"


def size(count: float) -> str:
    """Bytes in the unit that fits: GiB from 0.1 GiB up, then MiB, KiB, B."""
    if abs(count) >= 0.1 * GIB:
        return gib_unit(count)
    if abs(count) >= MIB:
        return f"{count / MIB:,.1f} MiB"
    if abs(count) >= 10 * KIB:
        return f"{count / KIB:,.0f} KiB"
    return f"{count:,.0f} B"


def margin(error: float) -> str:
    """The half width of a size, ``5.1 MiB``; empty where two decimals of a GiB do not show it."""
    return size(error) if error >= MIB else ""


def finite(value: float | None) -> float | None:
    """The value, or None where it is not a finite number."""
    return value if value is not None and math.isfinite(value) else None


def number(value: float, digits: int = 2) -> str:
    """A number with thousands separated and no needless zeros: ``1,204``, ``2.32``."""
    if not math.isfinite(value):
        return "unknown"
    return f"{value:,.0f}" if value == int(value) else f"{value:,.{digits}f}"


def latency(value_us: float) -> str:
    """Microseconds with two decimals: ``4.71 us``."""
    return f"{value_us:,.2f} us"


def bandwidth(value_gbps: float) -> str:
    """Gigabytes (10^9) a second with one decimal: ``92.4 GB/s``."""
    return f"{value_gbps:,.1f} GB/s"


def figure(value: Figure) -> str:
    """A figure with its unit, bytes in the unit that fits, ``+-`` its error where it has one; no mark of origin."""
    if not math.isfinite(value.value):
        return "unknown"
    if value.unit.lower() in _BYTE_UNITS:
        return size(value.value) + (f" +- {size(value.error)}" if value.error else "")
    error = f" +- {number(value.error)}" if value.error else ""
    return f"{number(value.value)}{error} {value.unit}".strip()


def confidence_word(confidence: float) -> str:
    """High from 0.9, good from 0.7, moderate from 0.5, else low."""
    return next((word for least, word in _CONFIDENCE if confidence >= least), "low")


def confidence_pips(confidence: float) -> int:
    """The same as one to four filled marks."""
    return 4 - next((i for i, (least, _) in enumerate(_CONFIDENCE) if confidence >= least), 3)


def confidence(value: float) -> str:
    """The word and the figure: ``high (0.95)``."""
    return f"{confidence_word(value)} ({value:.2f})"


def iso_utc(at: float | None) -> str | None:
    """Seconds since the epoch as ISO 8601 in UTC with milliseconds; None where there is no such date."""
    if at is None or not math.isfinite(at):
        return None
    try:
        moment = _EPOCH + timedelta(seconds=round(at, 3))
    except OverflowError:
        return None
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


_YEARLESS_S = 366 * 86400.0


def moment(at: float | None, clock: str = "wall") -> str:
    """A time for readers: UTC, or seconds since boot for an early reading of a boot clock; ``undated`` without one."""
    if at is not None and clock in ("wall", "after") and 0 <= at < _YEARLESS_S:
        return f"{iso_utc(at) or ''}".replace("T", " ").replace("Z", "").removeprefix("1970-") + ", year not printed"
    if at is not None and clock == "after":
        return f"after {moment(at)}"
    if at is not None and clock != "wall" and abs(at) < _BOOT_LIMIT_S:
        return f"{clock} +{at:.3f} s"
    text = iso_utc(at)
    return text.replace("T", " ").replace("Z", " UTC") if text else "undated"


def count(amount: int, noun: str, plural: str = "") -> str:
    """``1 card``, ``2 cards``, ``1,204 lines``."""
    return f"{amount:,} {noun if amount == 1 else plural or noun + 's'}"
