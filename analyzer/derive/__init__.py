"""What needs code before rules can ask: identity, memory ledger, links and rings, time line, trends.

raw tables -> identity (who is who) -> communication memory -> ledger -> shortfall
                                    -> edges and ring paths
                                    -> events in time
                                    -> trends over steps
"""

from __future__ import annotations

from analyzer.derive.clock import fix_years
from analyzer.derive.comm_memory import derive_comm_memory
from analyzer.derive.identity import derive_identity
from analyzer.derive.ledger import derive_ledger
from analyzer.derive.links import derive_links
from analyzer.derive.shortfall import derive_shortfall
from analyzer.derive.timeline import derive_timeline
from analyzer.derive.trend import derive_trend
from analyzer.evidence import Evidence

__all__ = ["derive"]


def derive(evidence: Evidence, baseline: Evidence | None = None) -> None:
    """Adds the derived tables to ``evidence``; ``baseline`` is an earlier good run to compare with."""
    fix_years(evidence)
    derive_identity(evidence)
    derive_comm_memory(evidence)
    derive_trend(evidence)
    derive_ledger(evidence, baseline)
    derive_shortfall(evidence)
    derive_links(evidence)
    derive_timeline(evidence)
