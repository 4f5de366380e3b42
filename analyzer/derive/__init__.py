"""What needs code before rules can ask: identity, memory ledger, links and rings, time line, trends.

raw tables -> identity (who is who) -> communication memory -> ledger -> shortfall
                                    -> edges and ring paths
                                    -> events in time
                                    -> trends over steps
                                    -> ranks: who waited, who is missing, what differs, who failed first
"""

from __future__ import annotations

from analyzer.derive.asymmetry import derive_asymmetry
from analyzer.derive.clock import fix_years
from analyzer.derive.comm_memory import derive_comm_memory
from analyzer.derive.cpu_binding import derive_cpu_binding
from analyzer.derive.device_order import derive_wrong_cards
from analyzer.derive.fabric import derive_fabric
from analyzer.derive.file_hosts import derive_file_hosts
from analyzer.derive.first_failure import derive_first_failure
from analyzer.derive.host_collision import derive_host_collision
from analyzer.derive.identity import derive_identity
from analyzer.derive.ledger import derive_ledger
from analyzer.derive.links import derive_links
from analyzer.derive.missing_rank import derive_missing_rank
from analyzer.derive.nccl_shortfall import derive_nccl_shortfall
from analyzer.derive.nic_pairing import derive_nic_pairing
from analyzer.derive.pcie_cards import derive_pcie_cards
from analyzer.derive.peer_access import derive_peer_trouble
from analyzer.derive.peer_detour import derive_peer_detours
from analyzer.derive.phase import derive_failures
from analyzer.derive.plugin_xid import derive_plugin_xids
from analyzer.derive.rank_state import derive_rank_state
from analyzer.derive.run_change import derive_run_change
from analyzer.derive.shortfall import derive_shortfall
from analyzer.derive.timeline import derive_timeline
from analyzer.derive.trend import derive_free_trend, derive_trend
from analyzer.derive.xids import derive_xids
from analyzer.evidence import Evidence

__all__ = ["derive"]


def derive(evidence: Evidence, baseline: Evidence | None = None) -> None:
    """Adds the derived tables to ``evidence``; ``baseline`` is an earlier good run to compare with."""
    fix_years(evidence)
    derive_file_hosts(evidence)
    derive_plugin_xids(evidence)
    derive_identity(evidence)
    derive_comm_memory(evidence)
    derive_failures(evidence)
    derive_trend(evidence)
    derive_free_trend(evidence)
    derive_ledger(evidence, baseline)
    derive_shortfall(evidence)
    derive_nccl_shortfall(evidence)
    derive_links(evidence)
    derive_nic_pairing(evidence)
    derive_peer_trouble(evidence)
    derive_peer_detours(evidence)
    derive_pcie_cards(evidence)
    derive_cpu_binding(evidence)
    derive_wrong_cards(evidence)
    derive_xids(evidence)
    derive_fabric(evidence)
    derive_timeline(evidence)
    derive_rank_state(evidence)
    derive_missing_rank(evidence)
    derive_asymmetry(evidence)
    derive_host_collision(evidence)
    derive_run_change(evidence)
    derive_first_failure(evidence)
