"""Flight-recorder dumps of ProcessGroupNCCL, PyTorch 2.2 to 2.11: ``nccl_trace_rank_N`` (pickle) and their JSON form.

    {"version": "2.4", "pg_config": {"0": {"name": "0", "desc": "default_pg", "ranks": "[0, 1]"}},
     "pg_status": {"0": {"last_enqueued_collective": "7", ...}},
     "entries": [{"process_group": ["0", "default_pg"], "collective_seq_id": 7, "profiling_name": "nccl:all_reduce",
                  "input_sizes": [[4]], "state": "scheduled", ...}]}

One file holds one rank, which its name states, or its key ``rank``; files that gather several dumps (a list, or a
mapping of rank to dump) are read too. The recorder is a ring: of each group the last entries are kept.
"""

from __future__ import annotations

import json
from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from math import prod

from analyzer.parsers.base import Document, DocumentError, Values
from analyzer.parsers.plain_pickle import PickleRefused, load_plain

Send = Callable[[str, Values], None]
Dump = Mapping[object, object]

_KEYS = (b"pg_config", b"pg_status", b"collective_seq_id", b"profiling_name", b"nccl_comm_state", b"comm_lib_version")
_PICKLES = (b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05")
_KEPT_PER_GROUP = 256
_MOST_ENTRIES = 1_000_000
_MOST_DUMPS = 100_000
_FRAMES = 3
_SIZES = 64
_LIBRARY = ("/site-packages/torch/", "/dist-packages/torch/", "torch/distributed/", "torch/nn/", "torch/autograd/")


def accepts(head: bytes) -> bool:
    """A pickle or JSON whose first bytes hold a key of the recorder."""
    if not head.startswith(_PICKLES) and head.lstrip()[:1] not in (b"{", b"["):
        return False
    return any(key in head for key in _KEYS)


def read(data: bytes, emit: Send) -> None:
    """Emits rows of ``process_group``, ``collective`` and ``version``."""
    value = _load(data)
    dumps = list(islice(_dumps(value, None), _MOST_DUMPS))
    if not dumps:
        raise DocumentError("no entries of a flight recorder in it")
    for dump, rank in dumps:
        _dump(dump, rank, emit)


def _load(data: bytes) -> object:
    if data.startswith(_PICKLES):
        try:
            return load_plain(data)
        except PickleRefused as error:
            raise DocumentError(str(error)) from error
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        raise DocumentError(f"broken JSON ({type(error).__name__})") from error


def _dumps(value: object, rank: int | None, depth: int = 0) -> Iterator[tuple[Dump, int | None]]:
    """The dumps in a document, with the rank that a key around them states."""
    if isinstance(value, Mapping):
        if any(key in value for key in ("entries", "pg_config", "pg_status")):
            own = _integer(value.get("rank"))
            yield value, rank if own is None else own
        elif depth < 2:
            for key, inner in value.items():
                yield from _dumps(inner, _rank_of(key), depth + 1)
    elif isinstance(value, (list, tuple)) and value:
        if isinstance(value[0], Mapping) and "profiling_name" in value[0]:  # PyTorch 2.2: the entries alone
            yield {"entries": value}, rank
        elif depth < 2:
            for inner in value:
                yield from _dumps(inner, None, depth + 1)


def _rank_of(key: object) -> int | None:
    return _integer(key if isinstance(key, int) else str(key).lower().removeprefix("rank").strip("_- "))


def _dump(dump: Dump, rank: int | None, emit: Send) -> None:
    who: dict[str, object] = {} if rank is None else {"rank": rank}
    if isinstance(dump.get("host_name"), str):
        who["host"] = dump["host_name"]
    version = dump.get("nccl_version") or dump.get("comm_lib_version")
    if isinstance(version, str) and version:
        emit("version", who | {"component": "NCCL", "value": version})
    for values in _groups(dump):
        emit("process_group", who | values)
    entries = dump.get("entries")
    kept: dict[object, deque[Dump]] = defaultdict(lambda: deque(maxlen=_KEPT_PER_GROUP))
    if isinstance(entries, (list, tuple)):
        for entry in islice(entries, _MOST_ENTRIES):
            if isinstance(entry, Mapping):
                kept[_group(entry)[0]].append(entry)
    for group in kept.values():
        for entry in group:
            emit("collective", who | _entry(entry))


def _groups(dump: Dump) -> Iterator[dict[str, object]]:
    """Groups with their members, and how far this rank came in each."""
    config, status = _mapping(dump.get("pg_config")), _mapping(dump.get("pg_status"))
    for key in [*config, *(key for key in status if key not in config)]:
        group, state = _mapping(config.get(key)), _mapping(status.get(key))
        if not state and len(config) == 1 and len(status) == 1:
            state = _mapping(next(iter(status.values())))
        yield {
            "pg": _text(group.get("name")) or str(key),
            "description": _text(group.get("desc")),
            "ranks": _ranks(group.get("ranks")),
            "last_enqueued": _integer(state.get("last_enqueued_collective")),
            "last_started": _integer(state.get("last_started_collective")),
            "last_completed": _integer(state.get("last_completed_collective")),
        }


def _ranks(value: object) -> str | None:
    parts = value.strip("[]() ").split(",") if isinstance(value, str) else value
    if not isinstance(parts, (list, tuple)):
        return None
    numbers = [_integer(part) for part in parts]
    return ",".join(str(number) for number in numbers if number is not None) or None


def _group(entry: Dump) -> tuple[str | None, str | None]:
    group = entry.get("process_group")
    if isinstance(group, (list, tuple)) and group:
        return _text(group[0]), _text(group[1]) if len(group) > 1 else None
    return _text(group) or _text(entry.get("pg_name")) or _text(entry.get("pg_id")), None


def _entry(entry: Dump) -> dict[str, object]:
    pg, description = _group(entry)
    name = _text(entry.get("profiling_name")) or ""
    p2p = bool(entry.get("is_p2p")) or name.startswith(("nccl:send", "nccl:recv"))
    collective, pair = _integer(entry.get("collective_seq_id")), _integer(entry.get("p2p_seq_id"))
    created = _integer(entry.get("time_created_ns"))
    types = [_text(entry.get(key)) or _joined(entry.get(key)) for key in ("input_dtypes", "output_dtypes")]
    return {
        "pg": pg,
        "pg_desc": description,
        "seq": pair
        if p2p and pair is not None
        else collective
        if collective is not None
        else _integer(entry.get("seq_id")),
        "p2p": p2p,
        "operation": name.partition(":")[2] or name or None,
        "input_sizes": _shapes(entry.get("input_sizes")),
        "output_sizes": _shapes(entry.get("output_sizes")),
        "numel_in": _numel(entry.get("input_sizes")),
        "numel_out": _numel(entry.get("output_sizes")),
        "dtypes": " -> ".join(kind for kind in types if kind) or None,
        "state": _text(entry.get("state")),
        "timeout_ms": _integer(entry.get("timeout_ms")),
        "retired": entry["retired"] if isinstance(entry.get("retired"), bool) else None,
        "frames": _frames(entry.get("frames")),
        "at": created / 1e9 if created else None,
    }


def _frames(value: object) -> str | None:
    """The innermost frames outside PyTorch (all of them, where none is outside)."""
    if not isinstance(value, (list, tuple)):
        return None
    texts = []
    for frame in islice(value, _SIZES):
        if isinstance(frame, Mapping):
            path = (_text(frame.get("filename")) or "?").replace("\\", "/")
            place = f"{'/'.join(path.rsplit('/', 2)[-2:])}:{frame.get('line', '?')} {_text(frame.get('name')) or ''}"
            texts.append((any(part in path for part in _LIBRARY), place.rstrip()))
    own = [text for library, text in texts if not library] or [text for _, text in texts]
    return " < ".join(own[:_FRAMES]) or None


def _shapes(value: object) -> str | None:
    if not isinstance(value, (list, tuple)):
        return None
    shapes = [f"[{','.join(str(size) for size in shape)}]" for shape in _sizes(value)]
    return " ".join(shapes) or None


def _numel(value: object) -> int | None:
    return sum(prod(shape) for shape in _sizes(value)) if isinstance(value, (list, tuple)) and value else None


def _sizes(value: Sequence[object]) -> Iterator[list[int]]:
    for shape in islice(value, _SIZES):
        if isinstance(shape, (list, tuple)):
            yield [size for size in map(_integer, shape[:_SIZES]) if size is not None]


def _mapping(value: object) -> Mapping[object, object]:
    return value if isinstance(value, Mapping) else {}


def _joined(value: object) -> str | None:
    return ",".join(str(part) for part in value[:_SIZES]) if isinstance(value, (list, tuple)) else None


def _text(value: object) -> str | None:
    if isinstance(value, str):
        return value or None
    return str(value) if isinstance(value, int) else None


def _integer(value: object) -> int | None:
    try:
        return int(value) if isinstance(value, (int, float, str)) else None
    except (ValueError, OverflowError):
        return None


DOCUMENT = Document(
    name="flight-recorder",
    accepts=accepts,
    read=read,
    title="flight recorder of ProcessGroupNCCL",
    command="TORCH_NCCL_TRACE_BUFFER_SIZE=2000 TORCH_NCCL_DUMP_ON_TIMEOUT=1",
    versions="PyTorch 2.2 to 2.11",
)
