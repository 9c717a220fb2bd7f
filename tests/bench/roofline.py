"""What the machine can do at most, and how much a workload needs: the distance of a figure from the roofline.

Both are found in processes of their own (`python -m tests.bench.roofline peaks THREADS` and `... work WORKLOAD`, which
print JSON): the benchmark's own process stays small, since children's peak memory counts from their parent's size.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import cache
from itertools import pairwise
from typing import Any

from tests.bench.workloads.base import Workload
from tests.models import ROOT, Built

SIDES = (512, 1024)
COPY_BYTES = 256 << 20
REPEATS = 60


@dataclass(frozen=True)
class Peaks:
    """The machine's best with a number of threads.

    Attributes:
        f32, bf16: floating-point operations a second of a matrix product; None where it was not measured.
        copy: bytes a second, read and written, of a copy that no cache holds.
        source: what ran the matrix product.
    """

    f32: float
    bf16: float | None
    copy: float
    source: str

    def flops(self, precision: str) -> float | None:
        return self.f32 if precision == "f32" else self.bf16

    def text(self) -> str:
        bf16 = f", {self.bf16 / 1e9:.0f} in bf16" if self.bf16 else ""
        return f"{self.f32 / 1e9:.0f} GFLOP/s{bf16} ({self.source}), copies {self.copy / 1e9:.1f} GB/s"


@dataclass(frozen=True)
class Work:
    """What one step needs: operations, and the bytes that must move at least (weights, feeds and fetches once)."""

    flops: float
    bytes: float

    def least_seconds(self, peaks: Peaks, precision: str) -> float | None:
        """The least time the machine could take; None where its peak in this precision is not known.

        An engine can be quicker: weights that stay in a cache are read faster than memory, and operations are those of
        the definition, of which Winograd's algorithm needs a part.
        """
        peak = peaks.flops(precision)
        return None if peak is None else max(self.flops / peak, self.bytes / peaks.copy)


def work(workload: Workload) -> Work:
    """Counted on the graph from the shapes of the feeds, unless the workload says it."""
    return Work(*workload.work) if workload.work is not None else Work(**_ask("work", workload.name, threads=1))


@cache
def peaks(threads: int) -> Peaks:
    """Measured once a run."""
    return Peaks(**_ask("peaks", str(threads), threads=threads))


def _ask(*arguments: str, threads: int) -> dict[str, Any]:
    from tests.bench.turns import environment

    command = [sys.executable, "-m", "tests.bench.roofline", *arguments]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, cwd=ROOT, env=environment(threads))
    return json.loads(done.stdout)


def count(workload: Workload, built: Built) -> Work:
    """The operations and bytes of one step of a model, from static shapes."""
    import numpy as np

    from toolkit import read_model
    from toolkit.passes.measuring.measure import measure
    from toolkit.passes.pruning.prune import need

    graph = read_model(str(built.path)).graph
    info = built.info
    feeds = list(workload.feeds(np.random.default_rng(0)).values())
    train = [info["train"]] if "train" in info else []
    needed = need(graph, info["inputs"].values(), info["outputs"].values(), train)
    batch = next((feed.shape[0] for feed in feeds if feed.ndim), 1)
    nodes = [node for node in graph if node.id in needed.ids]
    # measured with the placeholders, whose shapes the others have theirs from
    measured = measure(graph, batch=batch, within=[*nodes, *(output.node for output in needed.feeds.values())])
    moved = sum(feed.nbytes for feed in feeds) + measured.weight_bytes * (2 if train else 1)
    return Work(measured.total.flops, moved)


def _measure(threads: int) -> Peaks:
    import ml_dtypes
    import numpy as np

    from toolkit.kernels.cpu.onednn.library import library

    copy, found = copy_rate(threads), library()
    if found is None:
        return Peaks(max(map(numpy_rate, SIDES)), None, copy, "NumPy's matrix product")
    kinds = (np.float32, ml_dtypes.bfloat16)  # of the second there may be no products on lesser processors
    f32, bf16 = (
        max(onednn_rate(np.dtype(kind), side) for side in SIDES)
        if kind is np.float32 or found.multiplies_bfloat16
        else None
        for kind in kinds
    )
    assert f32 is not None
    return Peaks(f32, bf16, copy, f"matrix product of oneDNN {found.version}")


def numpy_rate(side: int) -> float:
    import numpy as np

    a, b = (np.random.default_rng(seed).random((side, side), np.float32) for seed in (0, 1))
    c = np.empty_like(a)
    return _rate(lambda: np.matmul(a, b, out=c), side)


def onednn_rate(dtype: Any, side: int, weights: Any = None) -> float:
    """Of a square product with packed weights.

    Args:
        dtype: float32, bfloat16, or uint8 with int8 weights.
        weights: their type, if it is another.
    """
    import ctypes

    from toolkit.kernels.cpu.memory.addresses import aligned
    from toolkit.kernels.cpu.onednn.library import require
    from toolkit.kernels.cpu.onednn.memory import Memory, any_layout, dense
    from toolkit.kernels.cpu.onednn.primitive import Arg, DescriptorQuery, Primitive, PrimitiveCall

    plain = dense((side, side), dtype)
    primitive = Primitive("matmul", plain, any_layout((side, side), weights or dtype), None, plain)
    memories: list[tuple[int, Memory]] = []
    for arg, desc in ((Arg.SRC, plain), (Arg.WEIGHTS, primitive.desc(DescriptorQuery.WEIGHTS)), (Arg.DST, plain)):
        buffer = aligned(desc.size)
        buffer[:] = 0  # zeros are multiplied as fast as anything else
        memories.append((arg, Memory(desc, buffer)))
    library = require()
    stream = ctypes.c_void_p(library.new_stream())
    call = PrimitiveCall(primitive, stream, memories)
    return _rate(lambda: library.execute(*call.prepared), side)


def _rate(product: Callable[[], Any], side: int) -> float:
    """Operations a second of the quickest of some runs."""
    return 2.0 * side**3 / min(seconds(product) for _ in range(REPEATS))


def copy_rate(threads: int) -> float:
    """Bytes a second that `threads` threads read and write together."""
    import numpy as np

    source = np.ones(COPY_BYTES, np.uint8)
    target = np.zeros(COPY_BYTES, np.uint8)
    cuts = np.linspace(0, COPY_BYTES, threads + 1).astype(int)
    parts = [slice(start, stop) for start, stop in pairwise(cuts)]

    def copy() -> None:
        jobs = [threading.Thread(target=np.copyto, args=(target[part], source[part])) for part in parts]
        for job in jobs:
            job.start()
        for job in jobs:
            job.join()

    return 2 * COPY_BYTES / min(seconds(copy) for _ in range(5))


def seconds(job: Callable[[], Any]) -> float:
    start = time.perf_counter()
    job()
    return time.perf_counter() - start


def _main(what: str, of: str) -> None:
    if what == "peaks":
        found: Peaks | Work = _measure(int(of))
    else:
        from tests.bench.workloads import WORKLOADS

        found = count(WORKLOADS[of], WORKLOADS[of].model())
    print(json.dumps(asdict(found)))


if __name__ == "__main__":
    _main(*sys.argv[1:])
