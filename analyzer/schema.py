"""Every table of the evidence: its columns, their types and units. Rules query exactly these.

Each raw table starts with the columns of ``COMMON``; a derived table names all its columns itself.
``ref`` packs input and line (see ``model.make_ref``); memory is integer bytes; ``at`` is seconds since the
epoch in UTC (a stamp without a zone is taken as UTC) or NULL; bus ids read ``0000:3b:00.0``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Type = Literal["int", "float", "str", "bool"]


@dataclass(frozen=True, slots=True)
class Column:
    """One column; ``doc`` says what it holds, with its unit where the name does not carry it."""

    name: str
    type: Type
    doc: str


@dataclass(frozen=True, slots=True)
class Table:
    """One table. ``derived`` tables are made by ``analyzer.derive``; ``hint`` tells how to obtain a raw one."""

    name: str
    doc: str
    columns: tuple[Column, ...]
    derived: bool = False
    hint: str = ""

    @property
    def names(self) -> tuple[str, ...]:
        """Column names in order."""
        return tuple(column.name for column in self.columns)


def _columns(text: str) -> tuple[Column, ...]:
    """Reads ``name type documentation`` lines."""
    found = []
    for line in text.strip().splitlines():
        name, kind, doc = line.strip().split(None, 2)
        if kind not in ("int", "float", "str", "bool"):
            raise ValueError(f"column {name}: unknown type {kind}")
        found.append(Column(name, kind, doc))  # type: ignore[arg-type]
    return tuple(found)


COMMON = _columns(
    """
    ref int packed reference to input and line
    stream int number of the stream (input and launcher label) that printed the line
    host str short host name, where known
    rank int global rank, where known
    at float seconds since the epoch, UTC, where the line carries a time
    """
)


def _raw(name: str, doc: str, text: str, hint: str) -> Table:
    return Table(name, doc, COMMON + _columns(text), hint=hint)


def _derived(name: str, doc: str, text: str) -> Table:
    return Table(name, doc, _columns(text), derived=True)


_NCCL_INFO = "run the job with NCCL_DEBUG=INFO (and NCCL_DEBUG_SUBSYS=INIT,ENV,GRAPH,P2P,NET,ALLOC,NVLS)"
_SMI_Q = "nvidia-smi -q > nvidia-smi-q.txt"
_LOG = "the output of the training program (every rank: torchrun --redirects 3 --tee 3)"
_KERNEL = "sudo dmesg -T > dmesg.txt (or journalctl -k -b -o short-iso)"

RAW: tuple[Table, ...] = (
    _raw(
        "stream",
        "one per input file and launcher label in it: what the label and the file name say of the writer",
        """
        input int number of the input
        label str launcher label as printed (rank label, pod, actor), empty for the bare file
        label_rank int rank that the launcher label states
        name_rank int rank that the file name states (rank3.log)
        """,
        "",
    ),
    # who
    _raw(
        "version",
        "software versions as printed",
        """
        component str NCCL, CUDA driver, CUDA runtime, torch, NVIDIA driver, kernel
        value str version text
        pid int process that printed it
        """,
        _NCCL_INFO,
    ),
    _raw(
        "env_var",
        "environment variables that a library says it uses",
        """
        pid int process
        name str variable
        value str value as printed
        """,
        _NCCL_INFO,
    ),
    # cards
    _raw(
        "gpu_device",
        "a GPU as a tool listed it",
        """
        gpu int index in the tool's order
        bus_id str PCI bus id
        uuid str GPU UUID
        minor int minor device number
        name str product name
        total_bytes int frame-buffer total
        reserved_bytes int part the driver keeps for itself (drivers 510 and later print it)
        mig_mode str MIG mode now in force (Enabled, Disabled)
        compute_mode str compute mode
        tool str what printed it
        """,
        _SMI_Q,
    ),
    _raw(
        "gpu_memory",
        "frame-buffer use of a GPU at one time",
        """
        gpu int index
        bus_id str PCI bus id
        used_bytes int used (without the driver's reserve where that is printed apart)
        free_bytes int free
        error_bytes int half width of the rounding of the figures
        tool str what printed it
        """,
        _SMI_Q,
    ),
    _raw(
        "gpu_process",
        "a process that holds memory on a GPU",
        """
        gpu int index
        bus_id str PCI bus id
        pid int process id
        kind str C, G, C+G, M+C
        name str program
        used_bytes int memory of this process on this GPU
        error_bytes int half width of the rounding
        tool str what printed it
        """,
        _SMI_Q,
    ),
    _raw(
        "gpu_health",
        "health fields of a GPU that matter for a diagnosis, one row per field",
        """
        gpu int index
        bus_id str PCI bus id
        field str path of the field, lower case, joined by dots (pci.gpu_link_info.link_width.current)
        text str value as printed
        value float value as a number where it is one (unit as printed)
        """,
        _SMI_Q,
    ),
    _raw(
        "device_fault",
        "an error text that stands where a device should be (GPU is lost, Unknown Error)",
        """
        gpu int index, where printed
        bus_id str PCI bus id, where printed
        text str error text
        tool str what printed it
        """,
        "nvidia-smi; nvidia-smi -q (keep its error output)",
    ),
    _raw(
        "gpu_link",
        "state of one NVLink of one GPU",
        """
        gpu int index
        link int link number
        active bool link carries traffic
        speed_gbps float rate per direction in GB/s
        """,
        "nvidia-smi nvlink -s",
    ),
    # paths
    _raw(
        "topo_link",
        "path between two devices as nvidia-smi topo prints it",
        """
        a str device (GPU0, NIC0)
        b str device
        path str X, NV#, PIX, PXB, PHB, NODE, SYS, SOC, PSB as printed
        nvlinks int number of bonded NVLinks, 0 for a PCIe path
        """,
        "nvidia-smi topo -m",
    ),
    _raw(
        "affinity",
        "CPUs and NUMA node next to a GPU",
        """
        gpu int index
        cpus str CPU list
        numa str NUMA node or list
        """,
        "nvidia-smi topo -m",
    ),
    _raw(
        "pair_measure",
        "a figure measured between two GPUs",
        """
        a int index of the source
        b int index of the destination
        metric str latency_us, cpu_latency_us, unidirectional_gbps, bidirectional_gbps, connectivity (0 or 1); of peer reads: latency_read_us, cpu_latency_read_us, unidirectional_read_gbps
        p2p bool peer access switched on for this figure
        value float figure in the unit that the metric names
        tool str tool
        """,
        "p2pBandwidthLatencyTest (from cuda-samples)",
    ),
    _raw(
        "pair_device",
        "the GPUs as a probe tool numbered them",
        """
        gpu int index in the tool's order
        bus_id str PCI bus id
        name str product name
        tool str tool
        """,
        "p2pBandwidthLatencyTest (from cuda-samples)",
    ),
    _raw(
        "pci_tree",
        "a PCI device and the bridges above it",
        """
        bus_id str device
        parent str the bridge above it
        name str device name
        """,
        "lspci -tv",
    ),
    # NCCL
    _raw(
        "communicator",
        "a communicator seen by one rank: one row per init, completion or end line",
        """
        pid int process
        tid int thread
        handle str pointer of the communicator in its process
        comm_id str hash that all its ranks share
        comm_rank int rank inside the communicator
        nranks int size
        cuda_dev int CUDA device index
        nvml_dev int NVML device index
        bus_id str PCI bus id
        state str start, complete, destroy, abort, finalize
        parent str handle of the communicator it was split from
        call str API call that made it
        """,
        _NCCL_INFO,
    ),
    _raw(
        "ring_order",
        "ranks of one ring in order, as rank 0 prints them",
        """
        pid int process
        tid int thread
        channel int channel
        nchannels int channels in all
        ranks str ranks in ring order, separated by blanks
        """,
        _NCCL_INFO,
    ),
    _raw(
        "tree_edge",
        "one rank's place in the tree of one channel",
        """
        pid int process
        tid int thread
        channel int channel
        me int rank
        up int parent rank, -1 for none
        down str child ranks, separated by blanks
        """,
        _NCCL_INFO,
    ),
    _raw(
        "channel",
        "one connection between two ranks and its transport",
        """
        pid int process
        tid int thread
        channel int channel
        conn int 0 collectives, 1 send/recv, NULL where the version does not print it
        src int sending rank inside the communicator
        dst int receiving rank inside the communicator
        src_dev str device in brackets behind the sender
        dst_dev str device in brackets behind the receiver
        direction str send or receive (NET only)
        transport str P2P/CUMEM/read, SHM/direct/direct, NET/IB/0/GDRDMA
        """,
        _NCCL_INFO,
    ),
    _raw(
        "nccl_layout",
        "numbers of channels and buffer geometry of a communicator",
        """
        pid int process
        tid int thread
        what str coll_channels, nvls_channels, p2p_channels, p2p_channels_per_peer, p2p_chunksize, nvls_total
        value int number, or bytes for p2p_chunksize and nvls_total
        """,
        _NCCL_INFO,
    ),
    _raw(
        "nccl_net",
        "network that NCCL chose",
        """
        pid int process
        network str IB, Socket, AWS Libfabric ...
        detail str text behind it
        """,
        _NCCL_INFO,
    ),
    _raw(
        "comm_alloc",
        "one allocation that NCCL logged",
        """
        pid int process
        tid int thread
        site str source file and line that NCCL names
        bytes int requested bytes
        pointer str address as printed (0x7f4a00000200)
        kind str device, shareable, host
        """,
        _NCCL_INFO,
    ),
    _raw(
        "nccl_message",
        "a WARN, and INFO lines that report a fault",
        """
        pid int process
        tid int thread
        dev int device of the calling thread
        level str WARN or INFO
        site str source file and line
        kind str class of the message (cuda_failure, malloc_failed, remote_closed, duplicate_gpu ...)
        text str message
        bytes int bytes that the message names
        peer str peer that the message names
        """,
        "run the job with NCCL_DEBUG=WARN or INFO",
    ),
    _raw(
        "collective_call",
        "collective calls of one communicator in one process, aggregated: one row per block of the log",
        """
        pid int process
        comm str pointer of the communicator
        operation str AllReduce, AllGather ...
        calls int number of calls
        last_op int highest operation count
        last_count int element count of that call
        nranks int size of the communicator
        """,
        "run the job with NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=COLL",
    ),
    # memory
    _raw(
        "oom_event",
        "an out-of-memory error of a framework",
        """
        framework str pytorch, jax, cupy, cuda
        gpu int device index as the process sees it
        requested_bytes int request that failed
        capacity_bytes int total capacity
        free_bytes int free
        allocated_bytes int allocated by the framework
        reserved_bytes int held by the framework's allocator (allocated and cached)
        unallocated_bytes int reserved but not allocated
        own_bytes int memory of this process, outside parts included
        allowed_bytes int limit set for this process
        private_pool_bytes int in private pools (CUDA graphs)
        error_bytes int half width of the rounding of the figures
        text str the message
        """,
        _LOG,
    ),
    _raw(
        "oom_holder",
        "another process that an out-of-memory text names",
        """
        event_ref int reference of the event
        gpu int device index
        pid int process
        used_bytes int memory of that process
        error_bytes int half width of the rounding
        """,
        _LOG,
    ),
    _raw(
        "memory_step",
        "memory figures that a training program prints while it runs",
        """
        step int step or iteration
        epoch int epoch
        allocated_bytes int allocated now
        max_allocated_bytes int peak so far
        reserved_bytes int reserved now
        max_reserved_bytes int peak reserved
        device_used_bytes int use of the whole card where printed
        error_bytes int half width of the rounding of the figures
        source str style of the line (training log, megatron, deepspeed)
        """,
        _LOG,
    ),
    _raw(
        "memory_summary",
        "one metric of torch.cuda.memory_summary()",
        """
        gpu int device index
        metric str allocated, active, requested, reserved, non_releasable, ooms, retries ...
        pool str all, large, small
        current int now (bytes or count)
        peak int peak (bytes or count)
        error_bytes int half width of the rounding
        """,
        "print(torch.cuda.memory_summary())",
    ),
    _raw(
        "host_memory",
        "memory of the host at one time",
        """
        what str total, used, free, available, shared, buff_cache, locked, swap_total, swap_used, swap_free, cgroup_used, cgroup_limit, pinned
        bytes int figure
        pid int process, for pinned memory
        """,
        "free -k; cat /proc/meminfo",
    ),
    # failures
    _raw(
        "cuda_error",
        "a CUDA, cuBLAS or cuDNN error that a program printed",
        """
        code int error code where printed
        name str symbolic name (cudaErrorIllegalAddress, CUBLAS_STATUS_ALLOC_FAILED)
        api str call that returned it
        text str error text
        gpu int device index where printed
        """,
        _LOG,
    ),
    _raw(
        "kernel_assert",
        "an assertion that failed inside a GPU kernel, one row per place",
        """
        site str source file and line
        condition str asserted condition
        """,
        _LOG,
    ),
    _raw(
        "exception",
        "a Python exception, at the end of its traceback",
        """
        type str exception class
        message str first line of the message
        frames str innermost frames, file:line function, separated by ' < '
        """,
        _LOG,
    ),
    _raw(
        "collective_timeout",
        "a watchdog line of ProcessGroupNCCL",
        """
        pg str process group as printed
        seq int sequence number of the work that timed out
        operation str ALLREDUCE ...
        numel_in int elements in
        numel_out int elements out
        timeout_ms int limit
        ran_ms int time it ran
        last_enqueued int last enqueued work
        last_completed int last completed work
        """,
        _LOG,
    ),
    _raw(
        "distributed_error",
        "an error of the process group, store or transport that names no cause by itself",
        """
        kind str nccl_error, store_timeout, store_error, gloo_timeout, gloo_closed, gloo_connect, watchdog_exception, heartbeat, mismatch, desync
        text str message
        value int figure in the message (seconds waited, clients joined, bytes of a failed allocation, number of a collective)
        total int figure that value is compared with (clients expected)
        peer str peer it names
        """,
        _LOG,
    ),
    _raw(
        "exit_status",
        "how a process ended, and who says so",
        """
        local_rank int rank on its host
        pid int process
        code int exit code (negative: signal)
        signal int signal number
        program str program
        says str who reports it (torchelastic, kernel, dataloader, launcher)
        first bool the reporter calls it the first failure
        """,
        _LOG,
    ),
    _raw(
        "xid",
        "an Xid line of the NVIDIA kernel driver",
        """
        boot_s float seconds since boot where that is the clock
        bus_id str PCI bus id
        code int Xid number
        pid int process
        process str process name
        text str rest of the line
        """,
        _KERNEL,
    ),
    _raw(
        "kernel_event",
        "another line of the kernel that matters",
        """
        boot_s float seconds since boot where that is the clock
        kind str aer, link_down, dpc, pcie_limited, iommu, iommu_fault, mce, hung_task, soft_lockup, segfault, panic, boot, boot_mark, gpu_lost, driver_loaded, rm_init_failed, probe_failed, bar_invalid, api_mismatch, open_module_required, unsupported_gpu, gsp, sxid, nvrm, uvm, peermem, nic_link_down, nic_link_up, nic_fault, oom_invoked, oom_task, oom_kill
        severity str severity as printed
        device str bus id or process name
        pid int process
        bytes int memory the line names
        text str line
        """,
        _KERNEL,
    ),
    _raw(
        "os_process",
        "a process as ps lists it",
        """
        pid int process
        ppid int parent process
        state str state letter
        started str start time as printed
        command str command line
        """,
        "ps -eo pid,ppid,stat,lstart,cmd",
    ),
    # speed
    _raw(
        "bench_row",
        "one row of nccl-tests",
        """
        tool str test (all_reduce_perf) where known
        size_bytes int message size
        time_us float out of place
        algbw_gbps float out of place
        busbw_gbps float out of place
        in_place_busbw_gbps float in place
        wrong int wrong elements
        """,
        "all_reduce_perf -b 8 -e 1G -f 4 -g N (from nccl-tests)",
    ),
    _raw(
        "bench_device",
        "a rank of nccl-tests and its GPU",
        """
        bench_rank int rank
        pid int process
        gpu int device index
        bus_id str PCI bus id
        name str product name
        """,
        "all_reduce_perf -b 8 -e 1G -f 4 -g N (from nccl-tests)",
    ),
)

DERIVED: tuple[Table, ...] = (
    _derived(
        "process",
        "identity of each process: rank, GPU and streams joined over formats",
        """
        host str host
        pid int process
        rank int global rank
        local_rank int rank on its host
        gpu int physical GPU index
        bus_id str PCI bus id
        stream int stream that it alone writes, where there is one
        nranks int size of its largest communicator
        communicators int communicators it completed and did not end
        ref int line that shows it
        """,
    ),
    _derived(
        "gpu",
        "identity of each GPU: index, bus id and name joined over formats",
        """
        host str host
        gpu int index
        bus_id str PCI bus id
        uuid str UUID
        name str product name
        total_bytes int total
        reserved_bytes int driver's reserve
        capacity_bytes int what CUDA can hand out
        ref int line that shows it
        """,
    ),
    _derived(
        "comm_memory",
        "device memory that NCCL holds in one process, by communicator buffers",
        """
        host str host
        pid int process
        rank int rank
        gpu int GPU index
        bytes int device memory
        error_bytes int half width
        origin str computed (from ALLOC lines) or estimated (from channels)
        communicators int live communicators
        granule_bytes int allocation granule that the pointers show, 0 for none
        channels int channels of the largest communicator
        ref int first line it rests on
        refs str references it rests on, separated by commas
        """,
    ),
    _derived(
        "ledger",
        "memory ledger: one row per GPU and part; the parts of one GPU add up to its capacity",
        """
        host str host
        gpu int GPU index
        bus_id str bus id
        rank int rank that uses it
        entry str framework_allocated, framework_reserved_unallocated, comm_buffers, context_and_other, other_processes, free, unexplained
        bytes int size
        origin str read, computed or estimated
        error_bytes int half width
        refs str references, separated by commas
        """,
    ),
    _derived(
        "ledger_total",
        "one row per GPU of the ledger",
        """
        host str host
        gpu int GPU index
        bus_id str bus id
        rank int rank that uses it
        name str product name
        total_bytes int total
        driver_reserved_bytes int driver's reserve
        capacity_bytes int capacity
        used_bytes int used
        free_bytes int free
        own_bytes int memory of the job's process
        other_bytes int memory of other processes
        other_pids str these processes, separated by commas
        allocated_bytes int framework allocated
        unallocated_bytes int framework reserved but unallocated
        comm_bytes int communication buffers
        comm_origin str computed, estimated or NULL
        communicators int live communicators
        context_bytes int context, libraries and rest
        requested_bytes int request that failed, NULL where none did
        allowed_bytes int limit set for the process
        peak_allocated_bytes int highest allocated figure that a run without these communicators printed
        balanced bool the parts add up
        tolerance_bytes int tolerance
        note str what is missing
        failed bool an out-of-memory happened here
        ref int main reference
        refs str references, separated by commas
        """,
    ),
    _derived(
        "shortfall",
        "one row per card on which a request failed: what was missing, and which part of the ledger decides",
        """
        host str host
        gpu int GPU index
        bus_id str bus id
        rank int rank that failed
        requested_bytes int request that failed
        free_bytes int free then
        missing_bytes int requested minus free
        capacity_bytes int capacity
        allocated_bytes int framework allocated
        unallocated_bytes int framework reserved but unallocated
        comm_bytes int communication buffers
        comm_origin str computed, estimated or NULL
        communicators int live communicators
        other_bytes int memory of other processes
        other_pids str these processes, separated by commas
        orphans int how many of them have parent pid 1
        outside_bytes int memory that is neither the framework's nor a named buffer: context, libraries, rest
        allowed_bytes int limit set for the process
        peak_allocated_bytes int peak of a run without these communicators
        demand_bytes int what the job needs: tensors at their peak, buffers, context
        decisive str part that alone covers what is missing and is largest: other_processes, reserved_unallocated, comm_buffers, outside, process_limit, workload, unknown
        decisive_bytes int size of that part
        runner_up_bytes int size of the next largest part
        used_share float used share of the capacity, 0..1
        at float time of the failure
        ref int line of the failure
        refs str references, separated by commas
        """,
    ),
    _derived(
        "edge",
        "one pair of GPUs with its path, measurements and the medians of its path class",
        """
        host str host
        a int GPU index, lower
        b int GPU index, higher
        path str path label
        nvlinks int NVLinks
        latency_us float mean of both directions, peer access on
        bandwidth_gbps float mean of both directions, peer access on
        class_size int pairs of the same path class that were measured
        class_latency_us float median latency of the other pairs of the class
        class_bandwidth_gbps float median bandwidth of the other pairs of the class
        best_latency_us float median latency of the best class of this host
        best_bandwidth_gbps float median bandwidth of the best class of this host
        nvlink_pairs int pairs of this host that have NVLink
        pairs int pairs of this host
        inactive_links_a int inactive NVLinks of a
        inactive_links_b int inactive NVLinks of b
        ring_channels int channels whose ring uses the pair
        transport str NCCL transport on the pair
        ref int main reference
        refs str references, separated by commas
        """,
    ),
    _derived(
        "ring_path",
        "one edge of the rings of a communicator: which GPUs, over what, in how many channels",
        """
        host str host
        comm_id str communicator
        a int GPU index of the sender
        b int GPU index of the receiver
        src int rank
        dst int rank
        transport str transport
        channels int channels that use it
        latency_us float measured latency of the pair
        bandwidth_gbps float measured bandwidth of the pair
        others_bandwidth_gbps float median measured bandwidth of the other ring edges
        others_latency_us float median measured latency of the other ring edges
        others_transport str most frequent transport of the other ring edges
        path str path label
        ref int main reference
        refs str references, separated by commas
        """,
    ),
    _derived(
        "event",
        "time line: every dated or ordered event of a failure",
        """
        at float seconds since the epoch
        clock str wall, after (not before this time of its stream), boot or none
        boot_s float seconds since boot
        host str host
        rank int rank
        gpu int GPU index
        kind str oom, cuda_error, exception, collective_timeout, nccl_warn, exit, xid, aer, oom_kill ...
        text str text
        weight int 0 follower, 1 raises a question, 2 can be a cause
        ref int reference
        """,
    ),
    _derived(
        "trend",
        "memory over steps of one stream",
        """
        stream int stream
        rank int rank
        points int figures
        slope_bytes_per_step float least-squares slope of allocated memory
        r2 float share of the variance that the line explains
        first_bytes int first figure
        last_bytes int last figure
        peak_bytes int highest figure
        ref int first line
        refs str references, separated by commas
        """,
    ),
)

TABLES: dict[str, Table] = {table.name: table for table in RAW + DERIVED}
