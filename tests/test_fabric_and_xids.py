"""Derived tables of the fabric and of Xids: which failure a text means, restarts, episodes and their standing."""

from __future__ import annotations

import pytest

from analyzer.derive.fabric import derive_fabric, failure_kind
from analyzer.derive.xids import CATALOGUE, derive_xids
from analyzer.evidence import Evidence, make_frame
from analyzer.schema import TABLES

Row = dict[str, object]


def evidence(**tables: list[Row]) -> Evidence:
    """Evidence with these rows; references are counted up."""
    frames = {}
    for name, rows in tables.items():
        spec = TABLES[name]
        given = [{"ref": number, "stream": 0, "host": "node1", **row} for number, row in enumerate(rows, 1)]
        frames[name] = make_frame(spec, [tuple(row.get(column) for column in spec.names) for row in given])
    return Evidence(frames, {}, (), ())


@pytest.mark.parametrize(
    ("text", "site", "kind"),
    [
        ("Failed to bind NVLink SHARP (NVLS) Multicast memory of size 2097152 : CUDA error 401 'x'.", "", "nvls_state"),
        ("Cuda failure 1 'invalid argument'", "transport/nvls.cc:244", "nvls_argument"),
        ("Cuda failure 2 'out of memory'", "transport/nvls.cc:244", "nvls_memory"),
        ("Cuda failure 800 'operation not permitted'", "transport/nvls.cc:300", "nvls_permission"),
        ("Cuda failure 'out of memory'", "include/alloc.h:112", None),
        ("Cuda failure 802 'system not yet initialized'", "init.cc:1", "not_initialized"),
        (
            "MNNVL (cliqueSize 8) is available but not working on this system. Check the IMEX channel configuration",
            "mnnvl.cc:60",
            "imex",
        ),
        ("Cuda failure 800 'operation not permitted' cuMemCreate with fabric handles", "", "imex"),
        ("NVLS multicast support is available on dev 0", "", None),
        ("Cuda failure 'unhandled'", "transport/p2p.cc:1", None),
    ],
)
def test_what_a_message_means_for_the_fabric(text: str, site: str, kind: str | None) -> None:
    assert failure_kind(text, site) == kind


def test_an_info_line_of_nccl_is_no_failure_and_a_framework_only_repeats() -> None:
    text = "Failed to bind NVLink SHARP (NVLS) Multicast memory of size 1 : CUDA error 2 'out of memory'."
    seen = evidence(
        nccl_message=[
            {"level": "INFO", "rank": 0, "text": text},
            {"level": "WARN", "rank": 1, "text": text, "pid": 7},
        ],
        exception=[{"rank": 1, "type": "DistBackendError", "message": text}],
    )
    derive_fabric(seen)
    assert [(row["rank"], row["source"]) for row in seen.rows("fabric_failure")] == [(1, "nccl")]


def service(*states: tuple[str, float], boot: float | None = None) -> Row:
    """The service that these lines of a journal give."""
    rows: list[Row] = [{"unit": "nvidia-fabricmanager", "says": "journal", "state": s, "at": at} for s, at in states]
    boots: list[Row] = [] if boot is None else [{"kind": "boot", "at": boot}]
    seen = evidence(service_state=rows, kernel_event=boots)
    derive_fabric(seen)
    return seen.rows("service")[0]


def test_a_restart_is_a_start_after_a_stop_in_one_boot() -> None:
    again = (("started", 1e9), ("stopping", 1e9 + 100), ("stopped", 1e9 + 101), ("started", 1e9 + 120))
    assert service(*again)["restarted_at"] == 1e9 + 120
    assert service(*again)["state"] == "active"
    assert service(*again, boot=1e9 + 110)["restarted_at"] is None
    assert service(("started", 1e9))["restarted_at"] is None
    assert service(*again[:3])["state"] == "inactive"


def standings(*xids: tuple[int, str, float]) -> dict[tuple[int, str], tuple[str, object]]:
    """Standing and leader of each episode."""
    rows: list[Row] = [{"code": c, "bus_id": bus, "boot_s": t, "text": f"{c} at {t}"} for c, bus, t in xids]
    seen = evidence(xid=rows)
    derive_xids(seen)
    return {(e["code"], e["bus_id"]): (e["standing"], e["leader"]) for e in seen.rows("xid_episode")}


def test_echoes_follow_and_a_lone_xid_is_solo() -> None:
    assert standings((79, "a", 10.0)) == {(79, "a"): ("solo", None)}
    found = standings((79, "a", 10.0), (74, "b", 12.0), (45, "b", 12.5), (45, "c", 13.0))
    assert found[79, "a"] == ("first", None)
    assert found[74, "b"] == ("follower", 79)
    assert found[45, "c"] == ("follower", 79)


def test_of_two_that_could_explain_each_other_the_earlier_leads() -> None:
    assert standings((119, "a", 10.0), (62, "a", 20.0))[62, "a"] == ("follower", 119)
    assert standings((62, "a", 10.0), (119, "a", 20.0))[119, "a"] == ("follower", 62)
    assert standings((62, "a", 10.0), (119, "b", 20.0))[119, "b"] == ("first", None)


def test_alarms_of_a_fabric_follow_the_link_that_went_down() -> None:
    found = standings((145, "a", 10.0), (149, "b", 10.1), (145, "c", 10.2))
    assert found[145, "a"] == ("follower", 149)
    assert found[149, "b"] == ("first", None)


def test_a_pause_makes_two_episodes() -> None:
    seen = evidence(xid=[{"code": 13, "bus_id": "a", "boot_s": t} for t in (10.0, 20.0, 500.0)])
    derive_xids(seen)
    assert [row["t"] for row in seen.rows("xid_episode")] == [10.0, 500.0]


def test_the_catalogue_is_stamped_and_explains_what_occurs() -> None:
    assert CATALOGUE.read_text(encoding="utf-8").startswith("# made by scripts/make_xid_catalogue.py: ")
    seen = evidence(xid=[{"code": 79, "bus_id": "a"}, {"code": 9999, "bus_id": "a"}], sxid=[{"code": 20034}])
    derive_xids(seen)
    found = {(row["kind"], row["code"]): row for row in seen.rows("xid_meaning")}
    assert set(found) == {("Xid", 79), ("SXid", 20034)}
    assert found["Xid", 79]["severity"] == "fatal"
