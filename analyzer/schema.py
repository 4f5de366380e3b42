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
        source str listing (env, export, a configuration file) or command (in front of a command); NULL for a log
        """,
        _NCCL_INFO,
    ),
    _raw(
        "last_line",
        "one of the last plain lines of a stream: what its writer was doing at the end (no error lines)",
        """
        text str line, cut after 200 characters
        """,
        "",
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
        "mig_device",
        "a MIG slice of a GPU",
        """
        gpu int index of the card
        bus_id str PCI bus id of the card
        slice int number of the slice on its card
        uuid str UUID (MIG-...)
        profile str profile (1g.10gb)
        gpu_instance int GPU instance id
        compute_instance int compute instance id
        total_bytes int memory of the slice
        reserved_bytes int part the driver keeps
        used_bytes int used
        free_bytes int free
        tool str what printed it
        """,
        "nvidia-smi -L; nvidia-smi -q",
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
        "p2p_status",
        "whether the driver offers peer access between two GPUs, and what forbids it",
        """
        a int index of the GPU in whose row it stands
        b int index of the other GPU
        capability str r reads, w writes, n NVLink, a atomics, p PCIe; NULL where the command is not there
        status str OK, CNS (chipset), GNS (GPU), TNS (topology), NS (not supported), DR, U
        """,
        "nvidia-smi topo -p2p r",
    ),
    _raw(
        "topo_nic",
        "the network adapter behind a number of the topology matrix",
        """
        nic str label in the matrix (NIC0)
        device str adapter (mlx5_0)
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
        "launch",
        "how many processes a launcher starts on a host",
        """
        local_ranks int processes per host
        """,
        "the command line of the launcher (torchrun --nproc-per-node N)",
    ),
    _raw(
        "process_binding",
        "processors and memory that a process may use, and how fast it copies between host and card",
        """
        pid int process
        gpu int GPU that it works with, where the line says so
        cpus str list of processors
        mems str list of NUMA nodes
        host_copy_gbps float rate between host and card in GB/s, where the line says so
        """,
        "grep Cpus_allowed_list /proc/PID/status (each rank); taskset -cp PID; srun --cpu-bind=verbose",
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
        "host_measure",
        "a figure measured between the host's memory and one GPU, or inside one GPU",
        """
        gpu int index
        metric str host_to_device_gbps, device_to_host_gbps, local_gbps, latency_ns ... (with _bidirectional where both directions ran)
        value float figure in the unit that the metric names
        tool str tool
        """,
        "nvbandwidth -t host_to_device_memcpy_ce device_to_host_memcpy_ce",
    ),
    _raw(
        "link_remote",
        "the other end of one NVLink of one GPU",
        """
        gpu int index
        link int link number
        remote_bus_id str PCI bus id of the device there
        remote_gpu int GPU there, where named
        remote_kind str GPU, NVSWITCH ... as printed
        remote_link int its link number
        """,
        "nvidia-smi nvlink -R; nvidia-smi nvlink -p",
    ),
    _raw(
        "data_check",
        "a test that copies data between GPUs and compares it",
        """
        tool str tool
        ok bool the data was right
        a int index of one GPU
        b int index of the other GPU
        text str line
        """,
        "simpleP2P (from cuda-samples)",
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
        "pci_link",
        "a PCI device with its link, access control and error flags; without a bus id where the device is not named",
        """
        bus_id str device
        kind str class as printed (PCI bridge, 3D controller)
        name str device name
        speed_gts float link speed now in GT/s
        max_speed_gts float highest speed of this end of the link in GT/s
        width int lanes now
        max_width int lanes of this end of the link
        downgraded bool the tool itself calls the width downgraded
        acs str flags of ACSCtl as printed
        acs_redirect bool peer traffic is sent to the root complex (ReqRedir+ or CmpltRedir+)
        errors str error flags that are set in the status registers, separated by blanks
        driver str kernel driver in use
        numa int NUMA node
        lost bool the device does not answer (rev ff, unknown header type)
        tool str what printed it
        """,
        "sudo lspci -vvv > lspci.txt",
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
    _raw(
        "nic_port",
        "a port of an RDMA adapter; one row per listing",
        """
        device str adapter (mlx5_0)
        port int port
        model str type of the adapter (MT4129)
        state str active, down, init, armed, as all tools in lower case
        physical_state str physical state (linkup, polling, disabled)
        rate_gbps float rate in Gb/s
        width int lanes
        mtu_bytes int MTU in use
        link_layer str infiniband or ethernet
        lid int local id
        netdev str network interface of the port
        place str container or host, where the text tells
        tool str tool
        """,
        "ibstat > ibstat-HOST.txt; ibv_devinfo -v (on every host)",
    ),
    _raw(
        "nic_gid",
        "an entry of the GID table of a port",
        """
        device str adapter
        port int port
        gid_index int index
        gid str GID, eight groups of four digits
        gid_kind str link_local, ipv4, global, empty
        version int 1 for RoCE v1 and InfiniBand, 2 for RoCE v2
        netdev str network interface
        """,
        "show_gids > show_gids-HOST.txt",
    ),
    _raw(
        "nic_pkey",
        "an entry of the partition key table of a port",
        """
        device str adapter
        port int port
        pkey_index int index
        pkey int key; the bit 0x8000 means full membership
        """,
        "grep . /sys/class/infiniband/*/ports/*/pkeys/* | grep -v 0x0000",
    ),
    _raw(
        "nic_counter",
        "an error counter of a port or link",
        """
        device str adapter, GUID or LID as printed
        port int port
        counter str name, lower case, words joined by _ (link_downed)
        value int count
        """,
        "perfquery; grep . /sys/class/infiniband/*/ports/*/counters/*",
    ),
    _raw(
        "interface",
        "a network interface: one row per fact",
        """
        name str interface
        state str up, down, unknown
        address str address without prefix length
        prefix int prefix length
        mtu_bytes int MTU
        speed_mbps int speed
        tx_mbps float traffic sent
        rx_mbps float traffic received
        util_percent float use of the interface
        tool str tool
        """,
        "ip -br addr; ip link; ethtool IF",
    ),
    _raw(
        "route",
        "a route of the kernel, in the order of the listing",
        """
        destination str network with prefix length, or default
        gateway str next hop
        device str interface
        source str source address
        metric int metric
        position int place in the listing
        """,
        "ip route > ip-route-HOST.txt",
    ),
    _raw(
        "host_pair",
        "a figure measured over the network between two hosts, or two adapters of them",
        """
        host_a str host of the row
        host_b str host of the column
        device_a str adapter of a
        device_b str adapter of b
        value float figure in the unit of its table, NULL where the test failed
        unit str unit as printed
        failed bool the test failed
        text str what stands there for a failed test
        tool str tool, where named
        """,
        "ib_write_bw or all_reduce_perf for every pair of hosts",
    ),
    _raw(
        "network_test",
        "one run of ib_write_bw, ib_read_bw, ib_send_bw or an OSU test",
        """
        tool str tool
        device str adapter
        link_layer str infiniband or ethernet
        mtu_bytes int MTU
        gid_index int GID index
        pkey_index int index of the partition key
        size_bytes int message size
        value float bandwidth in Gb/s, or time in us
        unit str Gb/s or us
        failed bool the test failed
        text str what it printed
        """,
        "ib_write_bw --report_gbits -d mlx5_0 (server), ib_write_bw --report_gbits -d mlx5_0 SERVER",
    ),
    _raw(
        "system_fact",
        "what a command showed of the system around the job",
        """
        kind str device_node, rdma_driver, kernel_module, library, memlock_limit, port_range, tcp_sockets, hosts_entry, fi_provider, firewall, reachable, host_path
        name str what was looked for (libibverbs, nvidia_peermem, /dev/infiniband)
        value str text
        number int figure (bytes of a limit, ports of a range), NULL for unlimited
        present bool it is there
        place str container or host, where the text tells
        """,
        "ls /dev/infiniband; lsmod | grep peermem; ldconfig -p | grep ibverbs; ulimit -l; fi_info -p efa (inside the container)",
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
        "nccl_topo_node",
        "a node of a topology file of NCCL",
        """
        kind str cpu, pci, gpu, nic, net, nvlink, c2c
        bus_id str bus id of a PCI device, or of the other end of an NVLink
        name str adapter, or vendor of a processor or device
        parent str bus id of the PCI device above it, or NUMA node (NUMA 0)
        dev int number of the GPU or adapter
        numa int NUMA node of a processor
        speed_gts float PCIe speed in GT/s
        width int PCIe lanes
        links int NVLinks in this bundle
        rate_mbps int rate of an adapter in Mb/s
        direct bool GPUDirect RDMA
        """,
        "NCCL_TOPO_DUMP_FILE=topo.xml in the environment of the job",
    ),
    _raw(
        "nccl_graph",
        "a graph of a graph file of NCCL",
        """
        graph int number (0 ring, 1 tree, 2 collnet ...)
        pattern int pattern (4 ring, 1 balanced tree, 3 tree ...)
        nchannels int channels
        intra_gbps float bandwidth inside a host
        inter_gbps float bandwidth between hosts
        intra_path str worst path class inside a host
        inter_path str worst path class between GPU and adapter
        order str devices of each channel, channels parted by semicolons (GPU0 GPU1; GPU1 GPU0)
        """,
        "NCCL_GRAPH_DUMP_FILE=graph.xml in the environment of the job",
    ),
    _raw(
        "nccl_document",
        "a topology or graph file of NCCL as a whole",
        """
        kind str topology or graph
        shape str hash of its structure without addresses: hosts of one kind have the same
        gpus int GPUs in it
        nets int adapters in it
        cpus int NUMA nodes in it
        graphs int graphs in it
        """,
        "NCCL_TOPO_DUMP_FILE=topo.xml in the environment of the job",
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
        "nccl_nic",
        "an RDMA adapter that NCCL lists",
        """
        pid int process
        nic int NCCL's number of it
        device str adapter
        port int port
        link_layer str IB, RoCE ...
        speed_mbps int speed in Mb/s
        """,
        _NCCL_INFO,
    ),
    _raw(
        "nccl_interface",
        "network interface that NCCL says it uses",
        """
        pid int process
        what str bootstrap, socket or ib (the out-of-band interface of NET/IB)
        name str interface
        address str address without port
        """,
        _NCCL_INFO,
    ),
    _raw(
        "nccl_gdr",
        "whether NCCL uses GPUDirect RDMA with an adapter",
        """
        pid int process
        nic int NCCL's number of the adapter
        device str adapter
        gpu str GPU as NCCL names it, NULL where the line is about the adapter alone
        enabled bool it is used
        distance int path class between GPU and adapter
        limit int largest class allowed
        reason str text in brackets
        """,
        _NCCL_INFO,
    ),
    _raw(
        "nccl_qp",
        "a queue pair that NCCL made",
        """
        pid int process
        nic int NCCL's number of the adapter
        port int port
        mtu_bytes int MTU
        gid_index int GID index, RoCE
        gid str GID, eight groups of four digits
        gid_kind str link_local, ipv4, global, empty
        lid int local id, InfiniBand
        """,
        _NCCL_INFO,
    ),
    _raw(
        "network_event",
        "a fault of the network, or a step on the way to it, that NCCL, libfabric or UCX reports",
        """
        pid int process
        tid int thread
        kind str no_ib_device, open_failed, no_verbs_library, completion, qp_failed, async_event, memory_failed, connect_failed, connect_retry, bind_failed, provider_empty, no_provider, provider
        device str adapter or provider
        port int port
        status int work completion status or errno
        vendor int vendor error
        peer str address of the peer, without port
        peer_port int its port
        gid_index int local GID index
        local_gid str own GID
        remote_gid str GID of the peer
        text str error text
        """,
        "run the job with NCCL_DEBUG=INFO; libfabric: FI_LOG_LEVEL=warn",
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
    _raw(
        "ras_report",
        "what ncclras says of a communicator or of ranks in it",
        """
        comm_id str hash of the communicator
        status str MISMATCH, INCOMPLETE, ERROR, DEAD, TIMEOUT ...
        kind str group (status of a communicator), behind, ahead, missing, dead, failed
        operation str collective whose counts differ
        op_count int operation that these ranks have launched
        ranks int number of ranks of this row
        comm_rank int rank in the communicator, where one is named
        gpu int GPU that it manages
        pid int process
        text str line
        """,
        "ncclras -v (with NCCL 2.24 and later; needs NCCL_RAS_ENABLE=1, the default)",
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
        shape str length or shape that the line names
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
    _raw(
        "allocator_stat",
        "a figure of a framework's own allocator, or of the plan its compiler made",
        """
        framework str jax, tensorflow, xla, cupy, triton
        allocator str name of the allocator where printed (GPU_0_bfc)
        gpu int device index as the process sees it
        bus_id str PCI bus id where printed
        pid int process
        metric str pool (taken at start), pool_limit (may be taken), limit, in_use, max_in_use, reserved, largest_free, device_free, device_total, request_refused; of a compiled program: parameter, constant, output, temp, total, fragmentation, peak_buffer
        bytes int figure
        error_bytes int half width of the rounding
        text str operation or label that the line names
        """,
        _LOG,
    ),
    _raw(
        "engine_memory",
        "a memory figure or a stage of start-up that a serving engine prints",
        """
        engine str vllm, sglang, tgi
        gpu int device index where printed
        pid int worker process where printed
        what str load_begin, load_progress, weights, budget, total, utilization, activation, non_torch, kv_cache, kv_needed, no_cache, startup_free, startup_wanted, capture_begin, graphs, capture_failed, available, serving
        bytes int figure
        share float share of the card (utilization) or of the work done (load_progress)
        error_bytes int half width of the rounding
        """,
        "the log of the serving engine, from its start",
    ),
    _raw(
        "free_memory",
        "free memory of a card as a program printed it, with what it was doing",
        """
        gpu int device index where printed
        pid int process where printed
        kind str capture (one CUDA graph after the other), shape (a line that names a length or shape), plain
        size str batch size, length or shape that the line names
        free_bytes int free memory
        total_bytes int total where printed
        error_bytes int half width of the rounding
        """,
        "print(torch.cuda.mem_get_info()) at the places in question",
    ),
    _raw(
        "device_holder",
        "a process that has a device file of the NVIDIA driver open",
        """
        device str device file
        gpu int minor number of /dev/nvidiaN, NULL for the control devices
        pid int process
        name str program
        user str owner
        tool str fuser, lsof
        """,
        "sudo fuser -v /dev/nvidia*",
    ),
    _raw(
        "run_phase",
        "a line by which a program says what it begins or has done",
        """
        phase str resume (a checkpoint is or was loaded), save (a checkpoint is being written), evaluate, train
        text str line, cut after 200 characters
        """,
        _LOG,
    ),
    _raw(
        "model_size",
        "size of the model as a configuration or a log states it",
        """
        parameters int number of parameters
        dtype str type of the weights
        dtype_bytes float bytes of one parameter
        total_bytes int size of the weights, where stated
        shards int ranks that share the weights (tensor parallel)
        source str config, index, log, name (taken from the name of the model)
        """,
        "config.json and model.safetensors.index.json of the model",
    ),
    _raw(
        "alloc_site",
        "live memory of one place in the code, from a memory snapshot: the largest places first",
        """
        gpu int device index
        bytes int live bytes
        blocks int live blocks
        place str innermost frames of the program, ' < ' between
        """,
        "torch.cuda.memory._record_memory_history(); torch.cuda.memory._dump_snapshot('snapshot.pickle')",
    ),
    _raw(
        "code_line",
        "a line of a program that keeps what it computes: in a traceback or an excerpt of the source",
        """
        kind str loss_kept (a loss is summed up or collected with its graph), output_kept (outputs are collected)
        number int line number where printed
        text str line of code
        """,
        "the lines of the training loop (sed -n 1,200p train.py)",
    ),
    _raw(
        "input_refused",
        "an input that was not read because reading it would run code",
        """
        format str what it claims to be
        reason str what it wanted
        """,
        "",
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
        calls str functions of up to 40 frames as module.function, innermost first, separated by blanks
        code str innermost lines of source that the traceback shows, separated by ' < '
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
        "collective",
        "one entry of a flight recorder: a collective as one rank issued it",
        """
        pg str name of the process group
        pg_desc str description of the group
        seq int sequence number in its group
        p2p bool point-to-point operation
        operation str all_reduce, all_gather ...
        input_sizes str shapes of the inputs
        output_sizes str shapes of the outputs
        numel_in int elements in
        numel_out int elements out
        dtypes str types of inputs and outputs
        state str scheduled, started or completed
        timeout_ms int limit
        retired bool the watchdog has taken it off its list
        frames str innermost frames of the program, ' < ' between
        """,
        "TORCH_NCCL_TRACE_BUFFER_SIZE=2000 TORCH_NCCL_DUMP_ON_TIMEOUT=1 (one file nccl_trace_rank_N per rank)",
    ),
    _raw(
        "process_group",
        "a process group as the flight recorder of one rank describes it",
        """
        pg str name
        description str description
        ranks str its global ranks, commas between
        last_enqueued int last collective this rank enqueued
        last_started int last one that started
        last_completed int last one that completed
        """,
        "TORCH_NCCL_TRACE_BUFFER_SIZE=2000 TORCH_NCCL_DUMP_ON_TIMEOUT=1 (one file nccl_trace_rank_N per rank)",
    ),
    _raw(
        "stack",
        "where one thread of a process stood when a tool looked at it",
        """
        pid int process
        thread str name or id of the thread
        active bool thread that was running, or the main thread
        place str innermost frame of the program itself (library frames left out): file:line function
        frames str innermost frames, ' < ' between
        tool str faulthandler, py-spy, gdb
        """,
        "py-spy dump --pid PID (add --native for C++ frames)",
    ),
    _raw(
        "tensor_shape",
        "a tensor whose size a program printed",
        """
        name str name where printed
        shape str sizes, commas between
        numel int number of elements (printed or product of the sizes)
        dtype str element type where printed
        """,
        _LOG,
    ),
    _raw(
        "listener",
        "a TCP port that a process listens on",
        """
        port int port
        address str local address
        pid int process
        process str program
        """,
        "sudo ss -ltnp",
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
        "container_event",
        "a container that could not be started or given its GPUs, as docker, containerd or NVIDIA's hook says it",
        """
        kind str no_gpu_runtime, driver_timeout, driver_not_loaded, version_mismatch, nvml_error, library_missing, requirement, device_missing, cdi, cgroup, mount, permission, hook_failed, start_failed
        device str device that it names
        value str condition, library or value that it names
        text str message
        """,
        "docker run --rm --gpus all IMAGE nvidia-smi; journalctl -u docker -u containerd -u kubelet",
    ),
    _raw(
        "container_setting",
        "one setting or state of a container",
        """
        container str name or id of the container
        name str ExitCode, OOMKilled, ShmSize, Memory, IpcMode, Runtime, PidMode, NetworkMode; limit.memory, limit.gpu of a pod
        value str value as printed
        """,
        "docker inspect CONTAINER; kubectl describe pod POD",
    ),
    _raw(
        "engine_event",
        "a serving engine that did not start, lost a worker or waits for one: wrappers that name no cause",
        """
        engine str vllm, sglang, tgi, tensorrt-llm, ray
        kind str init_failed, engine_dead, rpc_timeout, broadcast_wait, worker_died, watchdog
        pid int process
        code int exit code that it names
        seconds float time that it waited
        text str message
        """,
        "the output of the server (vLLM: VLLM_LOGGING_LEVEL=DEBUG)",
    ),
    _raw(
        "sanitizer_error",
        "an error that compute-sanitizer or cuda-memcheck found, one row per kind, kernel and place",
        """
        tool str memcheck, racecheck, synccheck, initcheck
        kind str invalid_write, invalid_read, invalid_atomic, misaligned, race, barrier, uninitialized, leak, api_error, invalid_free, other
        space str global, shared, local
        bytes int size of the access
        kernel str kernel
        source str source file and line, where compiled with -lineinfo
        thread str first thread, as printed
        block str block of that thread, as printed
        address str first address
        count int errors of this kind and place
        text str first line of the report, with the word on the address
        """,
        "compute-sanitizer --tool memcheck PROGRAM (compile with -lineinfo to have lines)",
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
        link int NVLink that the text names (74, 136, 144 to 150)
        unit str unit that reports, of NVLink 5 (NETIR_LINK_EVT, RLW_CTRL ...)
        severity str Fatal or Nonfatal, of NVLink 5
        previous int Xid that the text names as the cause (caused by previous Xid)
        place str part of the chip or of its memory: GPC 1, TPC 0, SM 1; partition 9, subpartition 1
        address str physical address or row that the text names
        action str recovery action that is now wanted (154)
        text str rest of the line
        boots_ago int boots between this line and the newest of its bundle, where the bundle says so
        """,
        _KERNEL,
    ),
    _raw(
        "sxid",
        "an event line of an NVSwitch in the kernel log (its data and severity lines belong to it and are no rows)",
        """
        boot_s float seconds since boot where that is the clock
        bus_id str PCI bus id of the switch
        switch int number of the switch
        code int SXid number
        severity str Fatal, Non-fatal or NULL
        link int port (link) of the switch
        text str rest of the line
        """,
        _KERNEL,
    ),
    _raw(
        "kernel_event",
        "another line of the kernel that matters",
        """
        boot_s float seconds since boot where that is the clock
        kind str aer, link_down, dpc, pcie_limited, iommu, iommu_fault, mce, hung_task, soft_lockup, segfault, panic, boot, boot_mark, gpu_lost, driver_loaded, rm_init_failed, probe_failed, bar_invalid, api_mismatch, open_module_required, unsupported_gpu, gsp, nvrm, uvm, peermem, nic_link_down, nic_link_up, nic_fault, oom_invoked, oom_task, oom_kill, cmdline
        severity str severity as printed
        device str bus id or process name
        pid int process
        bytes int memory the line names
        text str line
        boots_ago int boots between this line and the newest of its bundle, where the bundle says so
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
    # host system
    _raw(
        "module",
        "a kernel module as lsmod, modinfo, dkms or /proc/driver/nvidia/version showed it",
        """
        name str module, with underscores
        version str version
        flavour str open or proprietary, for the NVIDIA driver
        loaded bool it was in the list of loaded modules; false where the list was asked for it and had no such line
        installed bool false where a tool said that there is no such module
        used_by str modules that use it
        tool str lsmod, modinfo, dkms, /proc/driver/nvidia/version
        listing int reference of the first line of the list that it stands in
        """,
        "lsmod | grep nvidia; modinfo nvidia; cat /proc/driver/nvidia/version",
    ),
    _raw(
        "device_node",
        "a device file of the NVIDIA driver",
        """
        path str path
        major int major number
        minor int minor number
        mode str rights as printed (crw-rw-rw-)
        present bool false where a tool said that there is no such file
        listing int reference of the first line of the list that it stands in
        """,
        "ls -l /dev/nvidia* (in the container and on the host)",
    ),
    _raw(
        "library",
        "a shared library as ldconfig, ldd, readlink, ls or /proc/PID/maps showed it",
        """
        soname str name that programs ask for (libcuda.so.1)
        path str file
        target str file behind the link, where shown
        version str version that the name of the file ends in
        place int place in its list, 1 first: the loader takes the first
        missing bool it was not found
        tool str ldconfig, ldd, maps, link
        """,
        "ldconfig -p | grep -e libcuda -e libnccl; ldd FILE",
    ),
    _raw(
        "package",
        "an installed package of the driver, CUDA or the framework",
        """
        name str package, lower case with hyphens
        version str version
        tool str pip, conda, dpkg, rpm, collect_env
        """,
        "pip list; conda list; dpkg -l; python -m torch.utils.collect_env",
    ),
    _raw(
        "package_event",
        "an installation, upgrade or removal in the log of a package manager",
        """
        action str install, upgrade, downgrade, remove
        name str package, lower case
        old str version before
        new str version after
        tool str dpkg, apt, dnf, yum
        """,
        "/var/log/dpkg.log, /var/log/apt/history.log, /var/log/dnf.rpm.log",
    ),
    _raw(
        "system_message",
        "a sentence of a loader, a tool or a framework about driver, libraries or limits",
        """
        kind str nvml_mismatch, nvml_unknown, nvml_failed, no_driver, compat_enabled, compat_unavailable, cuda_library, module_failed, daemon_reload, node_denied, undefined_symbol, library_missing, version_conflict, arch_unsupported, arch_list, paging_file, pin_memory, shm, too_many_files, driver_too_old, allocator_flush, allocator_retries, persistence_off
        subject str what it is about: library, symbol, device, file
        found str version or value that is there
        wanted str version or value that is asked for
        text str the sentence
        """,
        _LOG,
    ),
    _raw(
        "limit_value",
        "a limit of a process or shell, or what it uses of it",
        """
        name str nofile, memlock, nproc, stack, core, as ...
        soft int value in force; NULL for unlimited (bytes for memory, descriptors, processes)
        hard int highest value that may be set; NULL for unlimited or not printed
        used int how much is in use, where counted
        pid int process
        """,
        "ulimit -a (in the job); cat /proc/PID/limits; ls /proc/PID/fd | wc -l",
    ),
    _raw(
        "filesystem",
        "a mounted file system",
        """
        device str device or kind of file system
        mount str where it is mounted
        size_bytes int size
        used_bytes int used
        free_bytes int available
        options str mount options
        """,
        "df -h (in the container: df -h /dev/shm); mount",
    ),
    _raw(
        "cgroup_value",
        "one figure of a control group",
        """
        file str cpu.stat, cpu.max, memory.events, devices.list ...
        name str name of the figure (nr_throttled, quota, oom_kill, c 195:*)
        value float figure; microseconds for times
        text str value as printed
        """,
        "cat /sys/fs/cgroup/cpu.stat /sys/fs/cgroup/cpu.max /sys/fs/cgroup/memory.events",
    ),
    _raw(
        "command_time",
        "how long a command took (time)",
        """
        command str command, where its line is there
        real_s float wall-clock seconds
        user_s float seconds in the program
        sys_s float seconds in the kernel
        """,
        "time nvidia-smi",
    ),
    _raw(
        "numa_node",
        "a NUMA node of the host",
        """
        node int number
        cpus str CPUs as printed
        total_bytes int memory
        free_bytes int free memory
        """,
        "numactl -H; lscpu",
    ),
    _raw(
        "scheduler_event",
        "what a scheduler or container engine says of a job, a node or a task: one row per statement",
        """
        system str slurm, kubernetes, ray, docker
        kind str oom, time_limit, cancelled, preempted, node_fail, killed, exited, drained, state, evicted, aborted, unschedulable, device_unhealthy, probe_failed
        job str job id, pod or container
        step str step of the job, container of the pod
        node str node as printed, lists included
        task str task numbers as printed
        state str state as printed
        code int exit code
        signal int signal number
        pid int process
        bytes int memory that was used
        limit_bytes int limit that it met
        reason str reason as printed
        text str line
        """,
        "sacct -j JOB --format=JobID,State,ExitCode,MaxRSS,NodeList; kubectl describe pod POD; kubectl get events",
    ),
    # services
    _raw(
        "service_state",
        "what systemd, its journal or a tool of the service says of a service of the driver",
        """
        unit str nvidia-fabricmanager, nvidia-persistenced, nvidia-imex, nvidia-dcgm
        state str active, inactive, failed, activating, not-found, masked (now); starting, started, stopping, stopped (in the journal)
        enabled str enabled, disabled, static, masked as printed
        version str version where printed
        since float time since when it is in that state
        says str systemctl, journal or the tool
        text str line
        """,
        "systemctl status nvidia-fabricmanager nvidia-persistenced nvidia-imex; journalctl -u nvidia-fabricmanager",
    ),
    _raw(
        "fabric_message",
        "a message of the fabric manager that matters",
        """
        level str INFO, WARNING, ERROR, CRITICAL
        kind str multicast_full, multicast_allocated, multicast_freed, multicast_failed, version_mismatch, switch_fatal, switch_non_fatal, topology_mismatch, no_switch, training_failed, gpu_failed, starting, configured, stopping, aborted, other
        bus_id str NVSwitch that it names
        link int port that it names
        code int SXid that it names
        value int number of the multicast group
        wanted str version that the driver has
        found str version that the fabric manager has
        text str message
        """,
        "/var/log/fabricmanager.log",
    ),
    _raw(
        "health_check",
        "one result of a health tool for one device",
        """
        tool str dcgmi diag, dcgmi health, gpu-burn, ipmitool sel
        category str group of the test (Hardware, Stress ...), or sensor
        name str test
        gpu int GPU index, NULL for the host or for all
        bus_id str PCI bus id, where printed
        result str pass, warn, fail, skip, not run
        code int error number that it prints (DCGM error_id)
        detail str text of the finding
        """,
        "dcgmi diag -r 3; dcgmi health -c; gpu_burn 120",
    ),
    _raw(
        "power_rating",
        "what a power supply can give, or a processor takes by its data sheet",
        """
        kind str supply or cpu
        name str name or slot
        watts float rating in W
        status str status as printed
        """,
        "sudo dmidecode -t 39; ipmitool sdr type 'Power Supply'",
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
        process str the job's own process, where known
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
        decisive str part that alone covers what is missing and is largest: other_processes, contexts, preallocation, reserved_unallocated, comm_buffers, outside, process_limit, unknown; of the job's own tensors: weights, graphs, growth, save, evaluation, resume, workload
        decisive_bytes int size of that part
        runner_up_bytes int size of the next largest part
        used_share float used share of the capacity, 0..1
        phase str what the program was doing: load, capture, profile, resume, evaluate, save, train, serve or NULL
        phase_ref int line that tells the phase
        growth_bytes int rise of the allocated memory over the steps before, where it rose along a line; NULL otherwise
        weights_bytes int weights of the model on one card, as configuration or log state them
        process str the job's own process, where known
        at float time of the failure
        ref int line of the failure
        refs str references, separated by commas
        """,
    ),
    _derived(
        "nccl_shortfall",
        "one row per process in which a request of NCCL itself failed: who filled the card",
        """
        host str host
        rank int global rank
        pid int process
        gpu int GPU index
        bus_id str bus id
        requested_bytes int largest request that failed, where printed
        free_bytes int free memory of the card, where a tool shows it
        capacity_bytes int capacity of the card
        own_bytes int memory of the process
        reserved_bytes int memory of the framework's pool
        allocated_bytes int memory of the framework's tensors
        outside_bytes int own minus reserved: context, NCCL, libraries
        comm_bytes int communication buffers as computed or estimated
        comm_origin str computed, estimated or NULL
        communicators int live communicators
        other_bytes int memory of other processes
        other_pids str these processes, separated by commas
        pool_bytes int memory that a preallocating framework took at its start
        nranks int size of the communicator that failed, where it was being made
        late bool that communicator was begun long after memory was sized
        late_ref int line that shows that memory was sized before
        decisive str comm_buffers, lazy_communicator, preallocation, other_processes, no_headroom
        at float time
        ref int line of the failure
        refs str references, separated by commas
        """,
    ),
    _derived(
        "memory_failure",
        "one row per process that ran out of GPU memory, however it said so, with what it was doing",
        """
        host str host
        rank int global rank
        gpu int GPU index where known
        pid int process where known
        stream int stream that told it
        input int number of the input
        framework str framework or NULL
        requested_bytes int request that failed, where printed
        phase str load, capture, profile, resume, evaluate, save, train, serve or NULL
        phase_ref int line that tells the phase
        frames str innermost frames of its exception
        file str program file of the innermost own frame
        at float time
        ref int main reference
        refs str references, separated by commas
        """,
    ),
    _derived(
        "free_trend",
        "free memory of one process over the lines that print it: how much each new size costs",
        """
        host str host
        stream int stream
        input int number of the input
        pid int process
        gpu int GPU index
        kind str capture, shape or plain
        points int figures
        sizes int different sizes among them
        fall_bytes int median fall from one line to the next, per new size
        spread_bytes int median deviation from that fall
        total_fall_bytes int fall from the first to the last figure
        first_bytes int first figure
        last_bytes int last figure
        ref int first line
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
        connected bool the cards reach each other directly, as the tool found
        off_latency_us float mean of both directions, peer access off
        off_bandwidth_gbps float mean of both directions, peer access off
        bench_gbps float best bus bandwidth of nccl-tests on these two cards alone
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
        "peer_trouble",
        "a sign that direct traffic between GPUs, or between GPU and network adapter, does not work as it should",
        """
        host str host
        kind str latency (of a millisecond and more), slower (than without peer access), wrong (data), hang, rdma (completion errors with GPUDirect RDMA)
        link str pairs of GPUs, separated by commas
        rank str ranks, separated by commas
        what str the sign in words
        at float time
        ref int main reference
        refs str references, separated by commas
        """,
    ),
    _derived(
        "pcie_card",
        "the PCIe link of each GPU now and at its best, with the other cards of its host",
        """
        host str host
        gpu int GPU index
        bus_id str bus id
        rank int rank that uses it
        width int lanes now (the fewest seen)
        max_width int lanes that card and slot could have
        gen int PCIe generation now (the highest seen while the card worked)
        max_gen int generation that card and slot could have
        busy bool the card worked when the generation was read
        others_width int most lanes of another card of the host now
        others_gen int highest generation of another card of the host now
        port str bridge above the card, where the tree is known
        chipset bool that bridge is a port of the chipset, not of a processor
        copy_gbps float measured rate between host and card
        others_copy_gbps float median of the other cards
        ref int main reference
        refs str references, separated by commas
        """,
    ),
    _derived(
        "cpu_binding",
        "where a process may run, beside the processors next to its GPU",
        """
        host str host
        rank int rank
        gpu int GPU index
        pid int process
        cpus str processors that the process may use
        gpu_cpus str processors next to the GPU
        mems str NUMA nodes that it takes memory from
        numa str NUMA node next to the GPU
        apart bool none of its processors is next to the GPU, or its memory is on another node
        copy_gbps float rate between host and card of this process
        others_copy_gbps float median of the processes that run next to their GPU
        ref int main reference
        refs str references, separated by commas
        """,
    ),
    _derived(
        "wrong_card",
        "a process that landed on another card than the one that its index names in nvidia-smi",
        """
        host str host
        rank int rank
        process str process as its log names it
        cuda_index int index of the card in CUDA's order (for the process, or of the host)
        wanted int index that was meant, in the order of nvidia-smi
        wanted_name str product name of that card
        wanted_bytes int its memory
        got str indices in the order of nvidia-smi of the cards that it can have been, separated by commas
        got_name str product name of these cards
        capacity_bytes int memory of the card that the process got, as its error text says
        proof str capacity (in an error text) or bus_id (printed by a CUDA program)
        failed bool an error was printed there
        at float time of the error
        ref int main reference
        refs str references, separated by commas
        """,
    ),
    _derived(
        "peer_detour",
        "a pair of GPUs of one host that NCCL connects through host memory or the network, not directly",
        """
        host str host
        a int GPU index, lower
        b int GPU index, higher
        transport str NCCL transport
        path str path label of the pair
        nvlinks int NVLinks between them
        possible bool the tools say that the pair can talk directly (NULL: unknown, false: not)
        consumer bool a model without peer access over PCIe (GeForce of 2020 and later)
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
        "nic_pairing",
        "a GPU that is paired with another NIC than on the other hosts",
        """
        host str host
        gpu int GPU index
        here str pairing on this host
        there str pairing on the other hosts
        origin str topology (matrix of nvidia-smi) or channel (of NCCL)
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
        "host_collision",
        "two ranks that NCCL took for neighbours on one host although their hosts have different addresses",
        """
        host str host name that both have
        rank str the two ranks, commas between
        link str the two ranks as a link (6-10)
        address_a str address of the first rank's host
        address_b str address of the second rank's host
        transport str transport that NCCL chose (P2P, SHM), duplicate for a refused communicator
        fault str what failed, NULL where nothing is known to have
        at float time of the fault
        ref int line that shows it
        refs str references, separated by commas
        """,
    ),
    _derived(
        "run_change",
        "two runs with different NCCL releases on the same host: what the newer one does otherwise",
        """
        host str host
        what str transport or network adapters
        old_version str older release
        new_version str newer release
        old_value str transport class (P2P, SHM, NET) or number of adapters before
        new_value str the same in the newer run
        pairs int pairs of ranks that changed
        old_busbw_gbps float best bus bandwidth of the older run
        new_busbw_gbps float best bus bandwidth of the newer run
        slower bool the newer run is slower by more than a tenth, NULL where it was not measured
        forced str settings of the newer run that choose the path, commas between
        ref int version line of the newer run
        refs str references, separated by commas
        """,
    ),
    _derived(
        "rank_state",
        "one row per rank of the job: how it waited, ended, or what it was doing",
        """
        host str host
        rank int global rank
        world int number of ranks as far as known
        timed_out bool it gave up waiting
        pg str process group it waited in
        seq int collective it waited in
        operation str operation it waited in
        last_enqueued int last collective it enqueued
        wait_from float when its wait began
        exit_code int exit code, negative for a signal
        died bool it ended by a fault or a signal other than SIGTERM
        finished bool it ended well or printed that it was done
        working bool it printed progress at the end of its log
        last_text str what it printed last
        step int step or batch that its last progress line states (13 of 13/14)
        steps int how many steps or batches that line states in all
        at float time of its time-out or last line
        ref int main reference
        refs str references, separated by commas
        """,
    ),
    _derived(
        "missing_rank",
        "ranks that are not where the others are, per process group and collective, by majority over ranks",
        """
        pg str process group or communicator
        seq int sequence number
        operation str operation of the majority
        verdict str not_called, extra_call, other_call, working, silent, not_started; died for ranks that ended by a fault of their own
        rank str the ranks, commas between
        ranks int how many
        host str hosts of these ranks
        members int ranks that the group has
        waiting int ranks that wait
        form str call of the majority
        other_form str call of these ranks
        source str flight recorder, stacks, desync report, ncclras, monitored barrier, stall warning, store, watchdog
        detail str what these ranks did, in words
        confidence float how far it is proven
        at float time
        ref int main reference
        refs str references, separated by commas
        """,
    ),
    _derived(
        "asymmetry",
        "a setting, version or figure that is not the same on all hosts or ranks: one row per side that differs",
        """
        what str NCCL version, environment variable (env NCCL_PROTO), network, link count ...
        kind str version, env, network, gdr, links, remap, temperature
        host str host that differs from the rest
        rank int rank, where ranks of one host differ
        value str its value, 'not set' for none
        others str value of the rest
        same int how many have this value
        total int how many were compared
        minority bool fewer than half have this value
        ref int main reference
        refs str references, separated by commas
        """,
    ),
    _derived(
        "first_failure",
        "who failed first: events of ranks and hosts in one order, clocks of hosts brought together",
        """
        place int order, 1 is first
        at float time on the common clock
        host str host
        rank int rank
        kind str kind of event
        text str text
        weight int 0 follower, 1 raises a question, 2 can be a cause
        skew_s float seconds that the clock of this host was moved by
        skew_known bool the skew was estimated from an event that two hosts saw
        ref int reference
        """,
    ),
    _derived(
        "suspect",
        "whom the lines of the victims point at: a peer that closed, did not answer or is named as lagging",
        """
        host str accused host
        rank int accused rank
        address str accused address
        accusers int how many ranks or processes point at it
        accuses_itself bool it has error lines of its own that point at others
        why str what the lines say
        at float first time
        ref int first line
        refs str references, separated by commas
        """,
    ),
    _derived(
        "fabric_failure",
        "a failure of CUDA or NCCL that points at the NVLink fabric",
        """
        host str host
        rank int rank
        gpu int device as the process numbers it
        pid int process
        kind str not_initialized (error 802), nvls_state (401), nvls_argument (1), nvls_memory (2), nvls_permission (800), nvls_other, imex
        source str nccl, cuda, exception or distributed_error
        text str message
        at float time
        ref int line
        """,
    ),
    _derived(
        "service",
        "one service of the driver on one host: its newest state, and whether it was restarted since the boot",
        """
        host str host
        unit str nvidia-fabricmanager, nvidia-persistenced, nvidia-imex, nvidia-dcgm
        state str active, inactive, failed, activating, not-found ...
        enabled str enabled, disabled, masked ...
        version str version where printed
        since float time since when it is in that state
        restarted_at float time of the last start after a stop without a boot between
        restart_ref int line of that start
        ref int line of the newest state
        refs str lines, separated by commas
        """,
    ),
    _derived(
        "xid_meaning",
        "what the catalogue says of each Xid and SXid number that occurs in the evidence",
        """
        kind str Xid or SXid
        code int number
        mnemonic str name in the driver
        meaning str short meaning
        origin str what can be behind it: application, driver, memory hardware, nvlink ...
        severity str info, warning, error, critical, fatal
        action str first thing to do
        follower bool it is usually the echo of another event
        ref int first line with this number
        """,
    ),
    _derived(
        "xid_episode",
        "Xids of one number and GPU that belong together (a burst), and how they stand among the others of the host",
        """
        host str host
        bus_id str PCI bus id
        code int Xid
        t float time of the first line on its own clock (boot clock or wall clock), NULL without one
        at float wall time of the first line
        last_t float time of the last line
        lines int different lines
        pids str processes named, separated by commas
        links str NVLinks named, separated by commas
        units str NVLink units named, separated by commas
        places str parts of the chip or memory named, separated by semicolons
        actions str recovery actions named
        fatal bool a line calls itself fatal (NVLink 5)
        text str first text
        standing str solo (alone on the host), first, follower (an earlier or stronger event explains it)
        leader int Xid that explains it
        leader_bus_id str GPU of that one
        ref int first line
        refs str lines, separated by commas
        """,
    ),
    _derived(
        "trend",
        "memory over steps of one stream",
        """
        host str host
        stream int stream
        input int number of the input
        rank int rank
        points int figures
        slope_bytes_per_step float least-squares slope of allocated memory
        r2 float share of the variance that the line explains
        first_bytes int first figure
        last_bytes int last figure
        peak_bytes int highest figure
        failed bool the stream then ran out of memory
        evaluating bool the rise came in evaluation steps; it was flat or absent in training
        new_shape_bytes int rise at lines that name a shape for the first time
        old_shape_bytes int rise at lines that name a shape again
        ref int first line
        refs str references, separated by commas
        """,
    ),
)

TABLES: dict[str, Table] = {table.name: table for table in RAW + DERIVED}
