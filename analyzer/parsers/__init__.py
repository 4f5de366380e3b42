"""The formats that crashcart reads, in the order in which a line is offered to them."""

from __future__ import annotations

from analyzer.parsers.base import Document, Format
from analyzer.parsers.cuda_error import FORMAT as CUDA_ERROR
from analyzer.parsers.host_memory import FORMAT as HOST_MEMORY
from analyzer.parsers.kernel_log import FORMAT as KERNEL_LOG
from analyzer.parsers.kernel_oom import FORMAT as KERNEL_OOM
from analyzer.parsers.lspci_tree import FORMAT as LSPCI_TREE
from analyzer.parsers.memory_step import FORMAT as MEMORY_STEP
from analyzer.parsers.nccl_log import FORMAT as NCCL_LOG
from analyzer.parsers.nccl_tests import FORMAT as NCCL_TESTS
from analyzer.parsers.p2p_test import FORMAT as P2P_TEST
from analyzer.parsers.ps_table import FORMAT as PS_TABLE
from analyzer.parsers.smi_csv import FORMAT as SMI_CSV
from analyzer.parsers.smi_nvlink import FORMAT as SMI_NVLINK
from analyzer.parsers.smi_query import FORMAT as SMI_QUERY
from analyzer.parsers.smi_table import FORMAT as SMI_TABLE
from analyzer.parsers.smi_topo import FORMAT as SMI_TOPO
from analyzer.parsers.torch_distributed import FORMAT as TORCH_DISTRIBUTED
from analyzer.parsers.torch_elastic import FORMAT as TORCH_ELASTIC
from analyzer.parsers.torch_oom import FORMAT as TORCH_OOM
from analyzer.parsers.torch_summary import FORMAT as TORCH_SUMMARY
from analyzer.parsers.traceback import FORMAT as TRACEBACK

FORMATS: tuple[Format, ...] = (
    NCCL_LOG,
    TORCH_OOM,
    TORCH_SUMMARY,
    CUDA_ERROR,
    TRACEBACK,
    TORCH_DISTRIBUTED,
    TORCH_ELASTIC,
    MEMORY_STEP,
    SMI_QUERY,
    SMI_TABLE,
    SMI_TOPO,
    SMI_NVLINK,
    SMI_CSV,
    P2P_TEST,
    NCCL_TESTS,
    KERNEL_LOG,
    KERNEL_OOM,
    PS_TABLE,
    HOST_MEMORY,
    LSPCI_TREE,
)

DOCUMENTS: tuple[Document, ...] = ()

__all__ = ["DOCUMENTS", "FORMATS", "Document", "Format"]
