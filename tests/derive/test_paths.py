"""PCIe links, processor bindings, peer access and the order of devices, from rows of the raw tables."""

from __future__ import annotations

from typing import Any

from analyzer.derive.card_sizes import size_by_name
from analyzer.derive.cpu_binding import derive_cpu_binding
from analyzer.derive.device_order import derive_wrong_cards
from analyzer.derive.links import derive_links
from analyzer.derive.pcie_cards import derive_pcie_cards
from analyzer.derive.peer_access import derive_peer_trouble
from analyzer.derive.peer_detour import derive_peer_detours
from analyzer.evidence import Evidence, make_frame
from analyzer.schema import TABLES

Row = dict[str, Any]
GIB = 1 << 30


def evidence(**tables: list[Row]) -> Evidence:
    """Evidence of these rows; a row without a reference or stream gets one."""
    frames, line = {}, 0
    for name, rows in tables.items():
        tuples = []
        for row in rows:
            line += 1
            full = {"ref": line, "stream": 1, **row}
            tuples.append(tuple(full.get(column) for column in TABLES[name].names))
        frames[name] = make_frame(TABLES[name], tuples)
    return Evidence(frames, {}, (), ())


def health(gpu: int, field: str, value: float, **more: object) -> Row:
    return {"host": "n1", "gpu": gpu, "field": field, "text": str(value), "value": value, **more}


WIDTH, MOST = "pci.gpu_link_info.link_width.current", "pci.gpu_link_info.link_width.max"
GEN, BEST = "pci.gpu_link_info.pcie_generation.current", "pci.gpu_link_info.pcie_generation.max"


def test_links_are_joined_over_both_tools_and_compared_with_the_neighbours() -> None:
    found = evidence(
        gpu_health=[
            health(0, GEN, 3), health(0, BEST, 3), health(0, WIDTH, 16), health(0, MOST, 16), health(0, "utilization.gpu", 30),
            health(1, GEN, 2), health(1, BEST, 3), health(1, WIDTH, 1), health(1, MOST, 16), health(1, "utilization.gpu", 97),
        ],
        pci_link=[
            {"host": "n1", "bus_id": "0000:01:00.0", "kind": "3D controller", "name": "NVIDIA Corporation GA100", "width": 16,
             "max_width": 16, "speed_gts": 8.0, "max_speed_gts": 8.0},
            {"host": "n1", "bus_id": "0000:06:00.0", "kind": "3D controller", "name": "NVIDIA Corporation GA100", "width": 1,
             "max_width": 16, "speed_gts": 5.0, "max_speed_gts": 8.0},
            {"host": "n1", "bus_id": "0000:01:00.1", "kind": "Audio device", "name": "NVIDIA Corporation", "width": 16},
        ],
    )  # fmt: skip
    derive_pcie_cards(found)
    first, second = found.rows("pcie_card")
    assert (first["bus_id"], first["width"], first["others_width"]) == ("0000:01:00.0", 16, 1)
    assert (second["bus_id"], second["width"], second["max_width"]) == ("0000:06:00.0", 1, 16)
    assert (second["gen"], second["max_gen"], second["busy"], second["others_gen"]) == (2, 3, True, 3)


def test_the_highest_generation_under_load_counts() -> None:
    rows = []
    for gen, load in ((1, 0), (4, 90), (1, 0)):
        rows += [health(0, GEN, gen), health(0, BEST, 4), health(0, "utilization.gpu", load)]
    found = evidence(gpu_health=rows)
    derive_pcie_cards(found)
    assert [(row["gen"], row["busy"]) for row in found.rows("pcie_card")] == [(4, True)]


def test_a_port_of_the_chipset_is_known_by_number_or_name() -> None:
    tree = [
        {"host": "n1", "bus_id": "0000:03:00.0", "parent": "0000:00:1c.4", "name": "NVIDIA Corporation GP102"},
        {"host": "n1", "bus_id": "0000:03:00.1", "parent": "0000:00:1c.4", "name": "NVIDIA Corporation Audio"},
        {"host": "n1", "bus_id": "0000:17:00.0", "parent": "0000:16:00.0", "name": "NVIDIA Corporation GP102"},
        {"host": "n1", "bus_id": "0000:04:00.0", "parent": "0000:02:05.0", "name": "NVIDIA Corporation GP102"},
        {"host": "n1", "bus_id": "0000:02:05.0", "parent": "0000:00:01.2"},
    ]
    named = [{"host": "n1", "bus_id": "0000:02:05.0", "kind": "PCI bridge", "name": "AMD Matisse PCIe GPP Bridge"}]
    found = evidence(pci_tree=tree, pci_link=named)
    derive_pcie_cards(found)
    assert {row["bus_id"]: row["chipset"] for row in found.rows("pcie_card")} == {
        "0000:03:00.0": True,
        "0000:17:00.0": False,
        "0000:04:00.0": True,
    }


def test_a_process_is_apart_only_where_no_processor_of_its_is_near() -> None:
    near = [{"host": "n1", "gpu": gpu, "cpus": "72-143", "numa": "1"} for gpu in range(4)]
    found = evidence(
        affinity=near,
        process_binding=[
            {"host": "n1", "rank": 0, "gpu": 0, "cpus": "0-71", "host_copy_gbps": 115.0},
            {"host": "n1", "rank": 1, "gpu": 1, "cpus": "0-143", "host_copy_gbps": 330.0},
            {"host": "n1", "rank": 2, "gpu": 2, "mems": "0"},
            {"host": "n1", "rank": 3, "gpu": 3, "cpus": "everywhere"},
            {"host": "n1", "rank": 9, "cpus": "0-71"},
        ],
    )
    derive_cpu_binding(found)
    rows = {row["rank"]: (row["apart"], row["others_copy_gbps"]) for row in found.rows("cpu_binding")}
    assert rows == {0: (True, 330.0), 1: (False, 330.0), 2: (True, 330.0)}


def measure(a: int, b: int, metric: str, p2p: bool | None, value: float) -> Row:
    return {"host": "n1", "a": a, "b": b, "metric": metric, "p2p": p2p, "value": value, "tool": "t"}


def test_trouble_is_what_peer_access_makes_worse() -> None:
    found = evidence(
        pair_measure=[
            measure(0, 1, "latency_us", True, 49216.0), measure(0, 1, "latency_us", False, 16.0),
            measure(2, 3, "unidirectional_gbps", True, 1.6), measure(2, 3, "unidirectional_gbps", False, 11.2),
            measure(0, 2, "unidirectional_gbps", True, 10.0), measure(0, 2, "unidirectional_gbps", False, 10.0),
            measure(1, 3, "unidirectional_gbps", True, 1.0), measure(1, 3, "unidirectional_gbps", False, 10.0),
            measure(1, 3, "connectivity", None, 0.0),
        ],
    )  # fmt: skip
    derive_links(found)
    derive_peer_trouble(found)
    assert {(row["kind"], row["link"]) for row in found.rows("peer_trouble")} == {
        ("latency", "GPU0-GPU1"),
        ("slower", "GPU2-GPU3"),
    }


def command(ref: int, value: str, name: str = "CUDA_VISIBLE_DEVICES") -> Row:
    return {"host": "n1", "ref": ref, "name": name, "value": value, "source": "command"}


def p2p(ref: int, transport: str = "P2P/IPC") -> Row:
    return {"host": "n1", "ref": ref, "pid": 1, "channel": 0, "src": 0, "dst": 1, "transport": transport}


def test_a_run_without_results_hangs_only_beside_one_with_results() -> None:
    commands = [command(10, "0,2"), command(20, "0,1"), command(20, "INFO", "NCCL_DEBUG"), command(30, "2,3")]
    done = [{"host": "n1", "ref": 15, "size_bytes": 8, "busbw_gbps": 6.2}]
    found = evidence(env_var=commands, channel=[p2p(22), p2p(32, "SHM/direct")], bench_row=done)
    derive_links(found)
    derive_peer_trouble(found)
    assert [(row["kind"], row["link"]) for row in found.rows("peer_trouble")] == [("hang", "GPU0-GPU1")]
    assert [(row["a"], row["b"], row["bench_gbps"]) for row in found.rows("edge")] == [(0, 2, 6.2)]
    found = evidence(env_var=commands, channel=[p2p(22)])
    derive_peer_trouble(found)
    assert found.rows("peer_trouble") == []


def test_completion_errors_need_gpudirect() -> None:
    message = {
        "host": "n1",
        "pid": 1,
        "kind": "ib_completion",
        "text": "NET/IB : Got completion with error 12, opcode 1",
    }
    other = {**message, "text": "NET/IB : Got completion with error 5, opcode 1"}
    direct = p2p(1, "NET/IB/0/GDRDMA")
    for channels, messages, kinds in (
        ([direct], [message], ["rdma"]),
        ([p2p(1, "NET/IB/0")], [message], []),
        ([direct], [other], []),
    ):
        found = evidence(channel=channels, nccl_message=messages)
        derive_peer_trouble(found)
        assert [row["kind"] for row in found.rows("peer_trouble")] == kinds


def test_a_detour_knows_whether_the_pair_could_talk_directly() -> None:
    found = evidence(
        topo_link=[
            {"host": "n1", "a": "GPU0", "b": "GPU1", "path": "PIX", "nvlinks": 0},
            {"host": "n1", "a": "GPU0", "b": "GPU2", "path": "SYS", "nvlinks": 0},
        ],
        channel=[
            p2p(1, "SHM/direct/direct") | {"src_dev": "0", "dst_dev": "1"},
            p2p(2, "direct shared memory") | {"src_dev": "17000", "dst_dev": "86000"},
            p2p(3, "P2P/IPC") | {"src_dev": "1", "dst_dev": "2"},
        ],
        p2p_status=[{"host": "n1", "a": 0, "b": 1, "capability": "r", "status": "CNS"}],
    )
    cards = [("0000:17:00.0", 0, "NVIDIA L40S"), ("0000:86:00.0", 2, "NVIDIA GeForce RTX 4090")]
    found.set("gpu", [{"host": "n1", "bus_id": bus, "gpu": gpu, "name": name} for bus, gpu, name in cards])
    derive_links(found)
    derive_peer_detours(found)
    rows = [(r["a"], r["b"], r["path"], r["possible"], r["consumer"]) for r in found.rows("peer_detour")]
    assert rows == [(0, 1, "PIX", False, False), (0, 2, "SYS", None, True)]


LISTED = [
    {"host": "n1", "gpu": 0, "name": "NVIDIA A800 80GB PCIe", "tool": "nvidia-smi -L", "bus_id": "0000:17:00.0"},
    {"host": "n1", "gpu": 1, "name": "NVIDIA RTX 3080", "tool": "nvidia-smi -L", "bus_id": "0000:18:00.0"},
    {"host": "n1", "gpu": 2, "name": "NVIDIA A800 80GB PCIe", "tool": "nvidia-smi -L", "bus_id": "0000:86:00.0"},
]
SMALL = {"host": "n1", "gpu": 0, "capacity_bytes": round(9.62 * GIB), "framework": "pytorch"}


def chosen(value: str, name: str = "CUDA_VISIBLE_DEVICES") -> Row:
    return {"host": "n1", "name": name, "value": value, "source": "listing", "stream": 2}


def wrong_cards(**tables: list[Row]) -> list[tuple[Any, ...]]:
    found = evidence(gpu_device=LISTED, **tables)
    derive_wrong_cards(found)
    return [(row["wanted"], row["got"], row["proof"], row["failed"]) for row in found.rows("wrong_card")]


def test_the_capacity_tells_which_card_a_process_got() -> None:
    assert wrong_cards(oom_event=[SMALL], env_var=[chosen("2")]) == [(2, "1", "capacity", True)]
    assert wrong_cards(oom_event=[SMALL]) == [(0, "1", "capacity", True)]
    assert wrong_cards(oom_event=[SMALL], env_var=[chosen("1")]) == []
    assert wrong_cards(oom_event=[SMALL], env_var=[chosen("GPU-aaaa")]) == []
    ordered = [chosen("2"), chosen("PCI_BUS_ID", "CUDA_DEVICE_ORDER")]
    assert wrong_cards(oom_event=[SMALL], env_var=ordered) == []
    assert wrong_cards(oom_event=[SMALL | {"capacity_bytes": 79 * GIB}], env_var=[chosen("2")]) == []


def test_bus_ids_of_a_cuda_program_tell_its_order() -> None:
    listed = [(0, "0000:17:00.0"), (1, "0000:86:00.0"), (2, "0000:18:00.0")]
    devices = [{"host": "n1", "gpu": gpu, "bus_id": bus, "tool": "t"} for gpu, bus in listed]
    assert wrong_cards(pair_device=devices) == [(1, "2", "bus_id", False)]
    assert wrong_cards(pair_device=devices[:2]) == []


def test_sizes_by_name() -> None:
    assert size_by_name("NVIDIA A800 80GB PCIe") == 80 * GIB
    assert size_by_name("NVIDIA GeForce RTX 2080 Ti") == 11 * GIB
    assert size_by_name("NVIDIA L40S") == 48 * GIB
    assert size_by_name("NVIDIA RTX 3080") is None
    assert size_by_name(None) is None
