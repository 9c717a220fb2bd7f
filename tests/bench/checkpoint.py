"""Checkpoints beside TensorFlow: 1 GB in 200 tensors. `python -m tests.bench.checkpoint [ROUNDS]`."""

from __future__ import annotations

import gc
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from tests.bench.measure import Row, alternate, compare, machine, run_process, tool
from toolkit.formats.bundle import BundleReader, save
from toolkit.formats.bundle.folder import remove_checkpoint

TENSORS = 200
ELEMENTS = 1_250_000
SMALL = "zz_small"


def timed(job: Callable[[], Any], before: Callable[[], Any] | None = None) -> float:
    """Seconds that a job takes; what comes before it is not counted."""
    gc.collect()
    if before is not None:
        before()
    start = time.perf_counter()
    job()
    return time.perf_counter() - start


def run(rounds: int = 5) -> list[Row]:
    """The rows of this suite."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    import tensorflow as tf

    rng = np.random.default_rng(0)
    arrays: dict[str, Any] = {
        f"layer{i:03d}/kernel": rng.standard_normal(ELEMENTS, dtype=np.float32) for i in range(TENSORS)
    }
    arrays[SMALL] = np.arange(10.0)
    names = sorted(arrays)
    with tempfile.TemporaryDirectory() as folder:
        rows = _saving(tf, folder, names, arrays, rounds)
        prefix = str(Path(folder, "model"))
        save(prefix, [(name, arrays[name]) for name in names])
        arrays.clear()
        rows += _loading(tf, prefix, names, rounds)
        rows.append(_sharded(folder, prefix, rounds))
        rows += _processes(folder, prefix, rounds)
    return rows


def _saving(tf: Any, folder: str, names: list[str], arrays: dict[str, Any], rounds: int) -> list[Row]:
    tensors = [tf.constant(arrays[name]) for name in names]
    pairs = [(name, arrays[name]) for name in names]
    mine, theirs = str(Path(folder, "ours")), str(Path(folder, "theirs"))

    def fresh() -> None:
        """No old file, and no dirty pages of the last round."""
        remove_checkpoint(mine)
        remove_checkpoint(theirs)
        os.sync()

    def tf_save() -> None:
        tf.raw_ops.SaveV2(prefix=theirs, tensor_names=names, shape_and_slices=[""] * len(names), tensors=tensors)

    def tf_save_durable() -> None:
        tf_save()
        for path in Path(folder).glob("theirs.*"):
            fd = os.open(path, os.O_RDONLY)
            os.fsync(fd)
            os.close(fd)

    from toolkit.formats.bundle import storage

    def ours_not_durable() -> None:
        real = storage.sys_fsync, storage.start_writeback
        storage.sys_fsync, storage.start_writeback = lambda fd: None, lambda fd, offset, size: None
        try:
            save(mine, pairs)
        finally:
            storage.sys_fsync, storage.start_writeback = real

    rows: list[Row] = []
    figures = alternate(lambda: timed(ours_not_durable, fresh), lambda: timed(tf_save, fresh), rounds)
    rows.append(compare("save 1 GB, neither forced to disk", "SaveV2", "s", figures, 1 / 1.5))
    figures = alternate(lambda: timed(lambda: save(mine, pairs), fresh), lambda: timed(tf_save_durable, fresh), rounds)
    rows.append(compare("save 1 GB, both forced to disk", "SaveV2 + fsync", "s", figures, 1 / 1.5))
    fresh()
    return rows


def _loading(tf: Any, prefix: str, names: list[str], rounds: int) -> list[Row]:
    def ours() -> None:
        with BundleReader(prefix) as reader:
            for name in names:
                reader.read(name)

    def theirs() -> None:
        reader = tf.train.load_checkpoint(prefix)
        for name in names:
            reader.get_tensor(name)

    def ours_one() -> None:
        with BundleReader(prefix) as reader:
            reader.read(SMALL)

    def theirs_one() -> None:
        tf.train.load_checkpoint(prefix).get_tensor(SMALL)

    rows = [
        compare(
            "load and verify 1 GB", "load_checkpoint, get_tensor", "s",
            alternate(lambda: timed(ours), lambda: timed(theirs), rounds), 1 / 1.5,
        )
    ]  # fmt: skip
    small = alternate(lambda: 1e3 * timed(ours_one), lambda: 1e3 * timed(theirs_one), 3 * rounds)
    rows.append(compare("open, read one small tensor", "load_checkpoint", "ms", small, None, "wanted: below 20 ms"))
    return rows


def _processes(folder: str, prefix: str, rounds: int) -> list[Row]:
    ours = tool("graphmill")
    peer = [sys.executable, "-m", "tensorflow.python.tools.inspect_checkpoint", f"--file_name={prefix}"]
    quiet = {"TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": ""}
    inspect = [ours, "checkpoint", "inspect", prefix]
    figures = alternate(lambda: run_process(inspect).wall_s, lambda: run_process(peer, quiet).wall_s, rounds)
    rows = [compare("checkpoint inspect, whole process", "inspect_checkpoint", "s", figures, 1 / 15)]
    return rows + _peaks(folder, prefix)


def _sharded(folder: str, prefix: str, rounds: int) -> Row:
    """Four data files written side by side, and one after another."""
    from toolkit.formats.bundle import transfer
    from toolkit.formats.bundle.surgery.reshard import reshard

    target = str(Path(folder, "sharded"))

    def write(threads: int) -> float:
        transfer.MAX_WRITERS = threads
        with BundleReader(prefix) as reader:
            return timed(lambda: reshard([reader], target, 4), os.sync)

    figures = alternate(lambda: write(4), lambda: write(1), rounds)
    remove_checkpoint(target)
    return compare("copy 1 GB into 4 data files at once", "one after another", "s", figures)


#: every command that moves tensors; OUT is a name to write, IN the checkpoint of 1 GB
_COMMANDS = (
    "inspect IN --stats", "verify IN", "diff IN IN", "convert IN OUT.npz", "convert IN OUT.safetensors",
    "convert IN OUT --shards 4", "prune IN -o OUT --drop layer00*", "rename IN layer*=net/* -o OUT",
    "cast IN --to bfloat16 -o OUT", "average IN IN -o OUT", "slice IN --partition layer000/kernel --parts 7 -o OUT",
    "slice IN layer000/kernel=5,99 -o OUT", "merge IN --shards 4 -o OUT", "import IN zz_small=IN:zz_small -o OUT",
)  # fmt: skip


def _peaks(folder: str, prefix: str) -> list[Row]:
    """The most memory that each command has at a time; wanted: 256 MB."""
    # Started by a small process: the peak of a child counts from its parent's size.
    script = (
        "import os, sys, subprocess\n"
        "p = subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL)\n"
        "_, status, usage = os.wait4(p.pid, 0)\n"
        "assert status == 0\nprint(usage.ru_maxrss / 1024)"
    )
    import subprocess

    rows: list[Row] = []
    for line in _COMMANDS:
        out = Path(folder, "out")
        words = [word.replace("IN", prefix).replace("OUT", str(out)) for word in line.split()]
        start = time.perf_counter()
        done = subprocess.run(
            [sys.executable, "-c", script, tool("graphmill"), "checkpoint", *words],
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        wall = time.perf_counter() - start
        peak = float(done.stdout)
        rows.append(Row(f"peak of {line}", "limit", "MB", peak, 256.0, peak / 256.0, 1.0, f"{wall:.2f} s"))
        for path in out.parent.glob("out*"):
            path.unlink()
    return rows


if __name__ == "__main__":
    from tests.bench.__main__ import line

    print(machine())
    for row in run(int(sys.argv[1]) if len(sys.argv) > 1 else 5):
        print(line(row, {}), flush=True)
