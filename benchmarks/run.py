"""Measures speed and memory, as ratios within one run.

usage: python benchmarks/run.py [--mb 1000] [--memory-mb 4000] [--repeat 3] [--generator PATH]

    scan      whole `crashcart analyze` over a multi-rank log, against `rg -c -F -f` with the gate's own literals
    memory    peak resident memory of the same process at --mb and at --memory-mb
    start     `crashcart --help` against `python -c pass`

Figures are minima over --repeat runs. The logs come from the generator of multi-rank logs and are kept in build/bench.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
WORK = ROOT / "build" / "bench"
LIMITS = {"10": 5.0, "01": 2.5}


def make_log(generator: Path, mb: int, share: str) -> Path:
    """A log of 64 interleaved ranks in which ``share`` per cent of the lines matter."""
    path = WORK / f"ranks64-{mb}mb-{share}.log"
    if not path.exists():
        WORK.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, str(generator), str(path), "--mb", str(mb), "--ranks", "64", "--interleaved"]
        subprocess.run([*command, "--share", f"0.{share}"], check=True)
    return path


def patterns() -> Path:
    """The gate's literals, one a line."""
    from analyzer.parsers import FORMATS

    path = WORK / "patterns.txt"
    path.parent.mkdir(parents=True, exist_ok=True)
    literals = dict.fromkeys(text for fmt in FORMATS for text in fmt.literals)
    path.write_text("\n".join(literals) + "\n", encoding="utf-8")
    return path


def timed(command: Sequence[str], repeat: int, accepted: Sequence[int] = (0,)) -> tuple[float, int]:
    """Least wall time in seconds and highest peak memory in KiB over the runs."""
    best, peak = float("inf"), 0
    for _ in range(repeat):
        start = time.perf_counter()
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
        best = min(best, time.perf_counter() - start)
        peak = max(peak, usage.ru_maxrss)
        code = os.waitstatus_to_exitcode(status)
        if code not in accepted:
            raise SystemExit(f"{' '.join(command)}: exit code {code}")
    return best, peak


def crashcart(*arguments: str) -> list[str]:
    """The installed command, else the module."""
    found = Path(sys.executable).with_name("crashcart")
    return [
        str(found) if found.exists() else sys.executable,
        *([] if found.exists() else ["-m", "analyzer"]),
        *arguments,
    ]


def bench_scan(generator: Path, mb: int, repeat: int) -> None:
    """Whole process against ripgrep over the same file."""
    rg = shutil.which("rg")
    if rg is None:
        print("scan: ripgrep is not installed; install it to measure the ratio")
        return
    for share, limit in LIMITS.items():
        log = str(make_log(generator, mb, share))
        fast, _ = timed([rg, "-c", "-F", "-f", str(patterns()), log], repeat)
        whole, peak = timed(crashcart("analyze", "--format", "json", log), repeat, (0, 1))
        what = f"scan {mb} MB, {int(share)} % matching"
        ratio = f"ratio {whole / fast:.2f} (at most {limit})"
        print(f"{what}: rg {fast:.2f} s, crashcart {whole:.2f} s, {ratio}, {peak >> 10} MiB")


def bench_memory(generator: Path, mb: int) -> None:
    """Peak memory at a larger size."""
    log = str(make_log(generator, mb, "10"))
    whole, peak = timed(crashcart("analyze", "--format", "json", log), 1, (0, 1))
    print(f"memory {mb} MB, 10 % matching: {whole:.1f} s, peak {peak / 1024:.0f} MiB of the largest process")


def bench_start(repeat: int) -> None:
    """Start of the command against start of Python."""
    bare, _ = timed([sys.executable, "-c", "pass"], 5 * repeat)
    helped, _ = timed(crashcart("--help"), 5 * repeat)
    ratio = f"ratio {helped / bare:.1f} (at most 8)"
    print(f"start: python -c pass {bare * 1000:.0f} ms, crashcart --help {helped * 1000:.0f} ms, {ratio}")


def main() -> None:
    """Reads the arguments and prints the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mb", type=int, default=1000)
    parser.add_argument("--memory-mb", type=int, default=0, help="also measure memory at this size")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--generator", type=Path, default=ROOT.parent / "shared" / "tools" / "gen_logs.py")
    arguments = parser.parse_args()
    if not arguments.generator.exists():
        raise SystemExit(f"{arguments.generator}: no such generator of logs; name one with --generator")
    bench_start(arguments.repeat)
    bench_scan(arguments.generator, arguments.mb, arguments.repeat)
    if arguments.memory_mb:
        bench_memory(arguments.generator, arguments.memory_mb)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(f"processor time of all runs: {used.ru_utime + used.ru_stime:.0f} s")


if __name__ == "__main__":
    main()
