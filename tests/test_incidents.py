"""The labelled incidents: the expected cause first, its culprit, no wrong root, the figures of the ledger."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
import yaml

from analyzer.analysis import Options, analyze
from analyzer.model import Finding, LedgerCard, Report

FOLDER = Path(__file__).parent / "fixtures" / "incidents"
CASES = sorted(path.name for path in FOLDER.iterdir() if (path / "case.yaml").exists())
LEVEL = {"info": 0, "warning": 1, "error": 2}


def load(name: str) -> tuple[dict[str, Any], Report]:
    case = yaml.safe_load((FOLDER / name / "case.yaml").read_text(encoding="utf-8"))
    paths = tuple(str(FOLDER / name / path) for path in case["inputs"])
    return case, analyze(Options(paths, jobs=1))


@pytest.fixture(scope="module", params=CASES)
def judged(request: pytest.FixtureRequest) -> tuple[dict[str, Any], Report]:
    return load(request.param)


def roots(report: Report) -> list[Finding]:
    return [f for f in report.findings if f.role == "root" and f.severity in ("error", "warning")]


def test_every_incident_has_a_label() -> None:
    assert len(CASES) >= 11
    assert {path.name for path in FOLDER.iterdir()} == set(CASES)


def test_cause_comes_first(judged: tuple[dict[str, Any], Report]) -> None:
    case, report = judged
    found = roots(report)
    if case["healthy"]:
        worst = max((LEVEL[f.severity] for f in report.findings), default=0)
        assert worst <= LEVEL[case.get("max_level", "info")], [f.cause for f in report.findings]
        return
    assert found, "no root at all"
    assert found[0].cause in {case["cause"], *case["accept"]}
    assert not {f.cause for f in found} & set(case["not_root"])
    for second in case.get("second", []):
        assert second in [f.cause for f in report.findings]


def test_no_rule_breaks(judged: tuple[dict[str, Any], Report]) -> None:
    _, report = judged
    assert [row for row in report.not_evaluated if not row.missing] == []
    assert [p for p in report.problems if "parser failed" in p.what] == []


def test_baseline_shows_what_the_card_lacks() -> None:
    """An earlier good run given by --baseline: it fitted alone, with communicators it needs more than there is."""
    folder = FOLDER / "four-cards-drop-out"
    paths = [str(p) for p in sorted(folder.iterdir()) if p.suffix in (".log", ".txt") and p.name != "single-gpu.log"]
    report = analyze(Options(tuple(paths), baseline=(str(folder / "single-gpu.log"),), jobs=1))
    assert roots(report)[0].cause == "memory.comm-buffers-over-capacity"
    lines = {line.what: line for line in report.baseline}
    peak = lines["framework allocated, peak"].baseline
    assert peak is not None and peak.value == 78499999744
    demand = lines["needed in all"]
    assert demand.current is not None and demand.baseline is not None
    assert demand.current.value == pytest.approx(78499999744 + 12164936000 + 508997312, rel=0.001)
    assert demand.baseline.value == pytest.approx(78499999744 + 508997312, rel=0.001)
    assert "more than the card has" in demand.note


def test_baseline_shows_links_that_changed() -> None:
    """The repaired node against the broken one: the pair without NVLink stands out."""
    now = tuple(str(FOLDER / "four-cards-drop-out" / name) for name in ("topo.txt", "p2p.txt"))
    good = tuple(str(FOLDER / "healthy-after-repair" / name) for name in ("topo.txt", "p2p.txt"))
    report = analyze(Options(now, baseline=good, jobs=1))
    notes = {line.what: line.note for line in report.baseline}
    assert set(notes) == {"GPU0-GPU3"}
    assert "path NV4 before, PXB now" in notes["GPU0-GPU3"]


def test_culprit(judged: tuple[dict[str, Any], Report]) -> None:
    case, report = judged
    if case["healthy"]:
        return
    where = roots(report)[0].where
    for key, wanted in case["culprit"].items():
        got = {
            "rank": {str(v) for v in where.rank},
            "gpu": set(where.gpu) | set(where.bus_id),
            "host": set(where.host),
            "process": set(where.process),
            "link": {v.replace("GPU", "") for v in where.link},
        }[key]
        assert got & {str(v) for v in wanted}, (key, wanted, got)


def test_advice_names_the_remedy(judged: tuple[dict[str, Any], Report]) -> None:
    case, report = judged
    if case["healthy"]:
        return
    advice = " ".join(roots(report)[0].advice).lower()
    assert any(word.lower() in advice for word in case["fix_keywords"])


def test_ledger_figures(judged: tuple[dict[str, Any], Report]) -> None:
    case, report = judged
    expected = case.get("numbers", {}).get("ledger", [])
    tolerance = case.get("numbers", {}).get("tolerance", {})
    cards = {card.gpu: card for card in report.ledger}
    for row in expected:
        check_card(cards[row["gpu"]], row, tolerance)


def check_card(card: LedgerCard, row: dict[str, Any], tolerance: dict[str, Any]) -> None:
    size = {entry.entry: entry.bytes for entry in card.entries}
    wanted = {
        "framework_allocated": row["torch_allocated"],
        "framework_reserved_unallocated": row["torch_reserved_unallocated"],
        "other_processes": row["other_processes"],
        "free": row["free"],
    }
    for entry, value in wanted.items():
        slack = max(tolerance["oom_terms_abs"], tolerance["bytes_rel"] * value)
        assert size.get(entry, 0) == pytest.approx(value, abs=slack), entry
    assert card.capacity_bytes == pytest.approx(row["capacity"], rel=tolerance["bytes_rel"])
    comm = tolerance["comm_buffers_rel"] * row["comm_buffers"]
    assert size.get("comm_buffers", 0) == pytest.approx(row["comm_buffers"], abs=comm)
    assert size["context_and_other"] == pytest.approx(row["context_and_other"], abs=comm + tolerance["oom_terms_abs"])
    assert card.communicators == row["communicators"]
    assert card.balanced, card.note
    if "demand_plus_comm" in row and card.failed:
        assert card.demand_bytes is not None
        least = row["torch_allocated"] + row["comm_buffers"]
        assert least <= card.demand_bytes <= 1.02 * row["demand_plus_comm"] + row["context_and_other"]


def signature(report: Report) -> list[tuple[object, ...]]:
    return [(f.cause, f.role, f.severity, f.confidence, f.message, f.where, f.advice) for f in report.findings]


@pytest.mark.parametrize(
    "name", ["four-cards-drop-out", "switch-uplink-lost", "ring-over-host-memory", "orphans-hold-the-cards"]
)
def test_order_of_files_does_not_matter(name: str) -> None:
    case, report = load(name)
    paths = [str(FOLDER / name / path) for path in case["inputs"]]
    for seed in range(3):
        random.Random(seed).shuffle(paths)
        assert signature(analyze(Options(tuple(paths), jobs=1))) == signature(report)


def test_ranks_interleaved_in_one_file(tmp_path: Path) -> None:
    """All files of the incident in one, blocks of each rank in turn, with the labels of srun -l."""
    case, report = load("four-cards-drop-out")
    queues = []
    for path in case["inputs"]:
        rank = path[4] if path.startswith("rank") else "0"
        lines = (FOLDER / "four-cards-drop-out" / path).read_text(encoding="utf-8").splitlines()
        queues.append([f"{rank}: {line}" for line in lines])
    whole = tmp_path / "slurm-1.out"
    chance = random.Random(5)
    with whole.open("w", encoding="utf-8") as out:
        dumps = [queue for path, queue in zip(case["inputs"], queues, strict=True) if not path.startswith("rank")]
        ranks = [queue for path, queue in zip(case["inputs"], queues, strict=True) if path.startswith("rank")]
        for queue in dumps:
            out.write("\n".join(queue) + "\n")
        while ranks:
            queue = chance.choice(ranks)
            out.write("".join(line + "\n" for line in queue[:7]))
            del queue[:7]
            ranks = [left for left in ranks if left]
    again = analyze(Options((str(whole),), jobs=1))
    assert roots(again)[0].cause == "memory.comm-buffers-over-capacity"
    assert roots(again)[0].where == roots(report)[0].where
