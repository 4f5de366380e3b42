"""The formats that crashcart reads, in the order in which a line is offered to them."""

from __future__ import annotations

from analyzer.parsers.base import Document, Format
from analyzer.parsers.container_log import FORMAT as CONTAINER_LOG
from analyzer.parsers.cuda_error import FORMAT as CUDA_ERROR
from analyzer.parsers.dcgm_diag import FORMAT as DCGM
from analyzer.parsers.device_holder import FORMAT as DEVICE_HOLDER
from analyzer.parsers.driver_stack import FORMAT as DRIVER_STACK
from analyzer.parsers.engine_log import FORMAT as ENGINE_LOG
from analyzer.parsers.engine_memory import FORMAT as ENGINE_MEMORY
from analyzer.parsers.fabric_log import FORMAT as FABRIC_LOG
from analyzer.parsers.filesystem import FORMAT as FILESYSTEM
from analyzer.parsers.flight_recorder import DOCUMENT as FLIGHT_RECORDER
from analyzer.parsers.free_memory import FORMAT as FREE_MEMORY
from analyzer.parsers.gpu_burn import FORMAT as GPU_BURN
from analyzer.parsers.host_facts import FORMAT as HOST_FACTS
from analyzer.parsers.host_limits import FORMAT as HOST_LIMITS
from analyzer.parsers.host_memory import FORMAT as HOST_MEMORY
from analyzer.parsers.host_net import FORMAT as HOST_NET
from analyzer.parsers.host_pair import FORMAT as HOST_PAIR
from analyzer.parsers.host_setup import FORMAT as HOST_SETUP
from analyzer.parsers.hwloc_xml import FORMAT as HWLOC_XML
from analyzer.parsers.ib_port import FORMAT as IB_PORT
from analyzer.parsers.kernel_log import FORMAT as KERNEL_LOG
from analyzer.parsers.kernel_oom import FORMAT as KERNEL_OOM
from analyzer.parsers.kubernetes import FORMAT as KUBERNETES
from analyzer.parsers.libfabric_log import FORMAT as LIBFABRIC_LOG
from analyzer.parsers.library_path import FORMAT as LIBRARY_PATH
from analyzer.parsers.lspci_detail import FORMAT as LSPCI_DETAIL
from analyzer.parsers.lspci_tree import FORMAT as LSPCI_TREE
from analyzer.parsers.memory_step import FORMAT as MEMORY_STEP
from analyzer.parsers.nccl_log import FORMAT as NCCL_LOG
from analyzer.parsers.nccl_ras import FORMAT as NCCL_RAS
from analyzer.parsers.nccl_tests import FORMAT as NCCL_TESTS
from analyzer.parsers.nccl_xml import FORMAT as NCCL_XML
from analyzer.parsers.nvbandwidth import FORMAT as NVBANDWIDTH
from analyzer.parsers.other_oom import FORMAT as OTHER_OOM
from analyzer.parsers.p2p_test import FORMAT as P2P_TEST
from analyzer.parsers.package_list import FORMAT as PACKAGE_LIST
from analyzer.parsers.package_log import FORMAT as PACKAGE_LOG
from analyzer.parsers.parallel_runtime import FORMAT as PARALLEL_RUNTIME
from analyzer.parsers.perftest import FORMAT as PERFTEST
from analyzer.parsers.power_supply import FORMAT as POWER_SUPPLY
from analyzer.parsers.ps_table import FORMAT as PS_TABLE
from analyzer.parsers.rendezvous import FORMAT as RENDEZVOUS
from analyzer.parsers.run_phase import FORMAT as RUN_PHASE
from analyzer.parsers.sanitizer import FORMAT as SANITIZER
from analyzer.parsers.service_state import FORMAT as SERVICE_STATE
from analyzer.parsers.shell_exit import FORMAT as SHELL_EXIT
from analyzer.parsers.simple_p2p import FORMAT as SIMPLE_P2P
from analyzer.parsers.slurm_log import FORMAT as SLURM_LOG
from analyzer.parsers.slurm_table import FORMAT as SLURM_TABLE
from analyzer.parsers.smi_csv import FORMAT as SMI_CSV
from analyzer.parsers.smi_monitor import FORMAT as SMI_MONITOR
from analyzer.parsers.smi_nvlink import FORMAT as SMI_NVLINK
from analyzer.parsers.smi_p2p import FORMAT as SMI_P2P
from analyzer.parsers.smi_query import FORMAT as SMI_QUERY
from analyzer.parsers.smi_table import FORMAT as SMI_TABLE
from analyzer.parsers.smi_topo import FORMAT as SMI_TOPO
from analyzer.parsers.smi_xml import FORMAT as SMI_XML
from analyzer.parsers.socket_table import FORMAT as SOCKET_TABLE
from analyzer.parsers.stack_dump import FORMAT as STACK_DUMP
from analyzer.parsers.system_fact import FORMAT as SYSTEM_FACT
from analyzer.parsers.system_message import FORMAT as SYSTEM_MESSAGE
from analyzer.parsers.tensor_shape import FORMAT as TENSOR_SHAPE
from analyzer.parsers.torch_distributed import FORMAT as TORCH_DISTRIBUTED
from analyzer.parsers.torch_elastic import FORMAT as TORCH_ELASTIC
from analyzer.parsers.torch_oom import FORMAT as TORCH_OOM
from analyzer.parsers.torch_snapshot import DOCUMENT as TORCH_SNAPSHOT
from analyzer.parsers.torch_summary import FORMAT as TORCH_SUMMARY
from analyzer.parsers.traceback import FORMAT as TRACEBACK
from analyzer.parsers.wddm_memory import FORMAT as WDDM_MEMORY
from analyzer.parsers.xla_memory import FORMAT as XLA_MEMORY

FORMATS: tuple[Format, ...] = (
    NCCL_LOG,
    TORCH_OOM,
    TORCH_SUMMARY,
    CUDA_ERROR,
    TRACEBACK,
    TORCH_DISTRIBUTED,
    TORCH_ELASTIC,
    MEMORY_STEP,
    ENGINE_MEMORY,
    SMI_QUERY,
    SMI_XML,
    SMI_TABLE,
    SMI_TOPO,
    SMI_P2P,
    SMI_NVLINK,
    SMI_CSV,
    SMI_MONITOR,
    P2P_TEST,
    SIMPLE_P2P,
    NVBANDWIDTH,
    DCGM,
    GPU_BURN,
    NCCL_TESTS,
    KERNEL_LOG,
    KERNEL_OOM,
    FABRIC_LOG,
    SERVICE_STATE,
    POWER_SUPPLY,
    PS_TABLE,
    HOST_MEMORY,
    LSPCI_TREE,
    LSPCI_DETAIL,
    HOST_SETUP,
    NCCL_XML,
    HWLOC_XML,
    IB_PORT,
    FREE_MEMORY,
    XLA_MEMORY,
    DEVICE_HOLDER,
    HOST_NET,
    NCCL_RAS,
    PARALLEL_RUNTIME,
    RENDEZVOUS,
    SOCKET_TABLE,
    STACK_DUMP,
    TENSOR_SHAPE,
    OTHER_OOM,
    RUN_PHASE,
    SYSTEM_FACT,
    DRIVER_STACK,
    FILESYSTEM,
    HOST_FACTS,
    HOST_LIMITS,
    LIBRARY_PATH,
    PACKAGE_LIST,
    PACKAGE_LOG,
    SYSTEM_MESSAGE,
    HOST_PAIR,
    SLURM_LOG,
    SLURM_TABLE,
    KUBERNETES,
    CONTAINER_LOG,
    ENGINE_LOG,
    SHELL_EXIT,
    SANITIZER,
    LIBFABRIC_LOG,
    PERFTEST,
    WDDM_MEMORY,
)

DOCUMENTS: tuple[Document, ...] = (FLIGHT_RECORDER, TORCH_SNAPSHOT)

__all__ = ["DOCUMENTS", "FORMATS", "Document", "Format"]
