"""Sections of a benchmark, each in a process that starts with the flags of one engine and precision."""

import dataclasses
import json
import os
import subprocess
import sys
import tempfile
import time
from argparse import Namespace
from collections.abc import Iterable
from pathlib import Path

from benchmarks._timing import FULL, QUICK, Effort, Row

ROOT = Path(__file__).parents[1]
ONE_THREAD = "--xla_cpu_multi_thread_eigen=false"
# What serves the peers best: MJX the older code generator, by up to three orders of magnitude, and frax the
# scheduler that it asks for when it is imported. jaxdyn runs with XLA's defaults.
KINDER = {
    "mjx": "--xla_cpu_use_fusion_emitters=false",
    "frax": "--xla_cpu_scheduler_type=CPU_SCHEDULER_TYPE_MEMORY_OPTIMIZED",
}
# Results of 47 MB and more are fresh pages at every call unless the C library keeps what was freed.
KEEP_MEMORY = {"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": str(1 << 40), "MALLOC_TOP_PAD_": str(1 << 27)}


def run_section(
    script: str, engine: str, dtype: str, batches: list[int], args: Namespace, memory: dict[str, str]
) -> list[Row]:
    """Runs `script --section ENGINE DTYPE` in a new process; the rows that it wrote, also before a failure."""
    env = dict(os.environ, JAX_ENABLE_X64=str(int(dtype == "float64")), JAX_PLATFORMS="cpu")
    env["XLA_FLAGS"] = f"{ONE_THREAD} {KINDER.get(engine, '')}".strip()
    env |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"} | memory
    env.pop("JAX_COMPILATION_CACHE_DIR", None)  # compilation is measured
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "rows.json"
        command = [sys.executable, script, "--section", engine, dtype, "--json", str(file)]
        command += ["--robots", *args.robots, "--batches", *map(str, batches)]
        command += ["--quick"] * args.quick + ["--cpu-time"] * args.cpu_time
        result = subprocess.run(command, env=env, cwd=ROOT, capture_output=True, text=True, check=False)
        if result.returncode:
            lines = result.stderr.strip().splitlines() or ["no message"]
            print(f"\n{engine} {dtype} was left out: {lines[-1]}", file=sys.stderr)
        return [Row(**x) for x in json.loads(file.read_text())] if file.exists() else []


def choose_effort(args: Namespace) -> Effort:
    """The effort of a section by its options."""
    effort = QUICK if args.quick else FULL
    return dataclasses.replace(effort, clock=time.process_time) if args.cpu_time else effort


def write_rows(rows: Iterable[Row], file: str) -> None:
    """Writes rows as they come, so that a failure keeps the earlier ones."""
    written = []
    for row in rows:
        written.append(dataclasses.asdict(row))
        Path(file).write_text(json.dumps(written), encoding="utf-8")
