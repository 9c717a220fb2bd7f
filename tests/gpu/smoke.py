"""Calls of a CUDA driver, one after the other, and what each gave: `python -m tests.gpu.smoke [NAME...]`.

The first thing to run on a new machine, and the only one that is of use where nothing works: a check that fails is one
line, and the others go on, but for what follows an error that loses the context, which comes last, in a process of its
own. Nothing but NumPy and the driver's modules is needed. With `GRAPHMILL_CUDA=fake` the fake driver answers.
"""

from __future__ import annotations

import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Sequence

import numpy as np

from toolkit.errors import GraphmillError
from toolkit.kernels.cuda.device import CudaDevice, device
from toolkit.kernels.cuda.driver import choose
from toolkit.kernels.cuda.driver.base import DriverError, GpuSpan, OutOfDeviceMemory
from toolkit.kernels.cuda.simt.builder import KernelBuilder
from toolkit.kernels.cuda.simt.ir import SimtKernel

_SIZE = 1 << 16


def scale() -> SimtKernel:
    """y[i] = 2 x[i] + i."""
    k = KernelBuilder("smoke_scale", block=256)
    x, y, n = k.buffer("x", "float"), k.buffer("y", "float", written=True), k.scalar("n", "i32")
    i = k.global_thread()
    with k.when(k.compare("slt", i, n)):
        k.store(y, i, k.add(k.mul(k.load(x, i), k.number(2.0, "float")), k.convert(i, "float")))
    return k.finish()


def block_sums() -> SimtKernel:
    """The sum of 256 numbers in each block: by shuffles in a warp, then by shared memory, atomically at last."""
    k = KernelBuilder("smoke_sums", block=256)
    x, y = k.buffer("x", "float"), k.buffer("y", "float", written=True)
    parts = k.shared("parts", "float", 8)
    total = k.variable(k.load(x, k.global_thread()))
    for distance in (16, 8, 4, 2, 1):
        total.set(k.add(total.get(), k.shuffle("xor", total.get(), distance)))
    warp, lane = k.div(k.thread, k.number(32, "i32")), k.rem(k.thread, k.number(32, "i32"))
    with k.when(k.compare("eq", lane, k.number(0, "i32"))):
        k.store(parts, warp, total.get())
    k.barrier()
    with k.when(k.compare("slt", k.thread, k.number(8, "i32"))):
        k.atomic("fadd", y, k.block_index, k.load(parts, k.thread))
    return k.finish()


def out_of_bounds() -> SimtKernel:
    """Writes far behind the memory that it is given."""
    k = KernelBuilder("smoke_out_of_bounds", block=32)
    y, far = k.buffer("y", "float", written=True), k.scalar("far", "i64")
    k.store(y, k.add(k.global_thread("i64"), far), k.number(1.0, "float"))
    return k.finish()


def _properties(gpu: CudaDevice) -> str:
    p = gpu.properties
    free, total = gpu.context.memory_info()
    return (
        f"{choose.driver().count()} GPU(s); {p.name}, sm_{p.capability[0]}{p.capability[1]}, {p.multiprocessors} "
        f"multiprocessors, {p.clock // 1000} MHz, CUDA {p.driver}, runtime {p.runtime}, {free >> 20} of "
        f"{total >> 20} MiB free"
    )


def _copies(gpu: CudaDevice) -> str:
    host = np.arange(_SIZE, dtype=np.float32)
    np.testing.assert_array_equal(gpu.to_host(gpu.to_device(host)), host)
    context, stream = gpu.context, gpu.context.stream()
    address, pinned = context.allocate(4 * _SIZE), context.pinned(4 * _SIZE)
    try:
        context.fill(address, 0x3F, 4 * _SIZE, stream)
        context.copy_out(pinned, address, stream)
        context.synchronize(stream)
        assert (pinned == 0x3F).all(), "what was filled came back otherwise"
    finally:
        context.free(address)
    return f"{4 * _SIZE} bytes in, out, and filled"


def _scaled(gpu: CudaDevice) -> str:
    x = np.linspace(-1, 1, _SIZE, dtype=np.float32)
    y = gpu.empty((_SIZE,), np.float32)
    start = time.perf_counter()
    gpu.launch(scale(), _SIZE // 256, gpu.to_device(x), y, _SIZE)
    np.testing.assert_array_equal(gpu.to_host(y), 2 * x + np.arange(_SIZE, dtype=np.float32))
    function = gpu.context.function(scale())
    return f"{function.registers} registers, {1e3 * (time.perf_counter() - start):.1f} ms with compiling"


def _sums(gpu: CudaDevice) -> str:
    x = np.random.default_rng(0).integers(-8, 8, (16, 256)).astype(np.float32)  # whose sums are exact
    y = gpu.zeros((16,), np.float32)
    gpu.launch(block_sums(), 16, gpu.to_device(x), y)
    np.testing.assert_array_equal(gpu.to_host(y), x.sum(1))
    return "shuffles, shared memory, a barrier and atomics"


def _events(gpu: CudaDevice) -> str:
    context, first, second = gpu.context, gpu.context.stream(), gpu.context.stream()
    start, end = context.event(timing=True), context.event(timing=True)
    a, b = context.allocate(_SIZE), context.allocate(_SIZE)
    try:
        context.record(start, first)
        context.fill(a, 7, _SIZE, first)
        context.record(end, first)
        context.wait(second, end)
        context.copy(b, a, _SIZE, second)
        host = context.pinned(_SIZE)
        context.copy_out(host, b, second)
        context.synchronize(second)
        assert (host == 7).all() and context.done(end), "a stream did not wait for an event of another"
        return f"{context.elapsed(start, end):.3f} ms"
    finally:
        context.free(a)
        context.free(b)


def _recorded(gpu: CudaDevice) -> str:
    x, kernel = gpu.to_device(np.ones(_SIZE, np.float32)), scale()
    gpu.context.function(kernel)  # loading it is nothing that is recorded
    with gpu.recording() as recording:
        y = gpu.empty((_SIZE,), np.float32)
        for _ in range(10):
            gpu.launch(kernel, _SIZE // 256, x, y, _SIZE)
    assert recording.graph is not None
    recording.replay()
    gpu.synchronize()
    start = time.perf_counter()
    count = 3 if _is_fake() else 100
    for _ in range(count):
        recording.replay()
    gpu.synchronize()
    taken = (time.perf_counter() - start) / count
    np.testing.assert_array_equal(gpu.to_host(y), 2 + np.arange(_SIZE, dtype=np.float32))
    operations = recording.graph.operations
    del y
    recording.close()
    return f"{operations} launches replayed in {1e6 * taken:.1f} us"


def countdown() -> SimtKernel:
    """Takes one from a number, and sets a condition to whether any is left."""
    k = KernelBuilder("smoke_countdown", block=32)
    x, handle = k.buffer("x", "i32", written=True), k.scalar("handle", "i64")
    zero = k.number(0, "i32")
    with k.when(k.compare("eq", k.thread, zero)):
        left = k.sub(k.load(x, zero), k.number(1, "i32"))
        k.store(x, zero, left)
        k.set_condition(handle, k.convert(k.compare("sgt", left, zero), "i32"))
    return k.finish()


def _conditions(gpu: CudaDevice) -> str:
    """A loop of a graph, and what an iteration takes."""
    if gpu.context.no_conditions:
        return gpu.context.no_conditions
    gpu.context.function(countdown())
    start = gpu.zeros((1,), np.int32)
    with gpu.recording() as recording:
        x = gpu.copied(start)
        condition = gpu.context.condition(gpu.compute)
        gpu.launch(countdown(), 1, x, condition)
        with gpu.body(condition, repeats=True):
            gpu.launch(countdown(), 1, x, condition)
    taken: list[float] = []
    for count in (1, 10 if _is_fake() else 1001):
        gpu.refill(start, np.array([count], np.int32))
        recording.replay()
        gpu.synchronize()
        begun = time.perf_counter()
        recording.replay()
        gpu.synchronize()
        taken.append((time.perf_counter() - begun) / count)
        assert gpu.to_host(x)[0] == 0, f"{gpu.to_host(x)[0]} are left of {count}"
    del x
    recording.close()
    return f"{1e6 * taken[0]:.1f} us without an iteration, {1e6 * taken[1]:.1f} us for each of many"


def _launches(gpu: CudaDevice) -> str:
    x, y, kernel = gpu.to_device(np.ones(256, np.float32)), gpu.empty((256,), np.float32), scale()
    gpu.launch(kernel, 1, x, y, 256)
    gpu.synchronize()
    count, start = 10 if _is_fake() else 200, time.perf_counter()
    for _ in range(count):
        gpu.launch(kernel, 1, x, y, 256)
    asked = time.perf_counter() - start
    gpu.synchronize()
    return f"{1e6 * asked / count:.1f} us to ask for one, {1e6 * (time.perf_counter() - start) / count:.1f} us each"


def _bandwidth(gpu: CudaDevice) -> str:
    context, stream, size = gpu.context, gpu.context.stream(), 1 << (22 if _is_fake() else 28)
    a, b = context.allocate(size), context.allocate(size)
    try:
        context.fill(a, 1, size, stream)
        best = 0.0
        for _ in range(5):
            start, end = context.event(timing=True), context.event(timing=True)
            context.record(start, stream)
            context.copy(b, a, size, stream)
            context.record(end, stream)
            context.synchronize(stream)
            best = max(best, 2 * size / max(context.elapsed(start, end), 1e-6) / 1e6)
        return f"copies on the card read and write {best:.0f} GB/s"
    finally:
        context.free(a)
        context.free(b)


def _product(gpu: CudaDevice) -> str:
    from toolkit.kernels.cuda.libraries.base import Product

    random = np.random.default_rng(1)
    a, b = (random.integers(-4, 4, shape).astype(np.float32) for shape in ((64, 48), (48, 32)))
    out = gpu.empty((64, 32), np.float32)
    blas = gpu.context.blas
    there = [gpu.to_device(each) for each in (a, b)]
    blas.matmul(Product(64, 32, 48, "float32"), *there, out, gpu.compute)
    np.testing.assert_array_equal(gpu.to_host(out), a @ b)  # whole numbers: exact in any order
    return f"{blas.version}"


def _convolution(gpu: CudaDevice) -> str:
    from toolkit.kernels.cuda.libraries.base import Convolution

    random = np.random.default_rng(2)
    x = random.integers(-4, 4, (2, 8, 8, 16)).astype(np.float32)
    w = random.integers(-4, 4, (32, 1, 1, 16)).astype(np.float32)
    size, ones = (8, 8), (1, 1)
    asked = Convolution("forward", "float32", 2, 16, 32, 1, size, ones, size, ones, ones, ((0, 0), (0, 0)))
    out = gpu.empty((2, 8, 8, 32), np.float32)
    dnn = gpu.context.dnn
    there = [gpu.to_device(each) for each in (x, w)]
    dnn.convolve(asked, *there, out, gpu.compute)
    np.testing.assert_array_equal(gpu.to_host(out), x @ w[:, 0, 0].T)
    return f"{dnn.version}"


def _no_room(gpu: CudaDevice) -> str:
    _, total = gpu.context.memory_info()
    try:
        gpu.context.allocate(2 * total)
    except OutOfDeviceMemory as error:
        assert gpu.to_host(gpu.to_device(np.ones(3, np.float32))).sum() == 3, "nothing works behind it"
        return " ".join(str(error).split())
    raise AssertionError(f"{2 * total} bytes were to be had")


def _refused(gpu: CudaDevice) -> str:
    """A launch without blocks is refused, and the context stays."""
    x, y = gpu.empty((4,), np.float32), gpu.empty((4,), np.float32)
    try:
        gpu.context.launch(gpu.context.function(scale()), 0, [x, y, 4], gpu.compute)
    except DriverError as error:
        gpu.synchronize()
        return " ".join(str(error).split())
    raise AssertionError("a launch of 0 blocks was taken")


def _lost(gpu: CudaDevice) -> str:
    """A kernel that writes where nothing is; its context is lost, and every later call says so."""
    y = gpu.empty((32,), np.float32)
    function = gpu.context.function(out_of_bounds())
    try:
        gpu.context.launch(function, 1, [GpuSpan(y.address, y.nbytes), 1 << 44], gpu.compute)
        gpu.synchronize()
    except DriverError as error:
        assert error.is_sticky, f"the context is not lost: {error}"
        try:
            gpu.context.memory_info()
            gpu.context.synchronize(None)
        except DriverError:
            return " ".join(str(error).split())
        raise AssertionError("a lost context went on") from None
    raise AssertionError("nobody noticed")


CHECKS: dict[str, Callable[[CudaDevice], str]] = {
    "properties": _properties, "copies": _copies, "kernel": _scaled, "block": _sums, "events": _events,
    "graph": _recorded, "conditions": _conditions, "launches": _launches, "bandwidth": _bandwidth, "blas": _product,
    "dnn": _convolution, "no room": _no_room, "refused": _refused,
}  # fmt: skip
#: what loses its context: each in a process of its own
LOSING: dict[str, Callable[[CudaDevice], str]] = {"lost": _lost}


def _is_fake() -> bool:
    return type(choose.driver()).__name__.startswith("Fake")


def run(name: str, gpu: CudaDevice) -> tuple[bool, str]:
    """Whether a check passed, and what it says in one line."""
    try:
        return True, {**CHECKS, **LOSING}[name](gpu)
    except Exception as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        lines = " | ".join(line.strip() for line in str(error).splitlines() if line.strip())
        return False, f"{type(error).__name__}: {lines[:400]} ({where.filename.rpartition('/')[2]}:{where.lineno})"


def main(names: Sequence[str]) -> int:
    """Run the checks, all or some; returns how many failed."""
    failed = 0
    for name in names or (*CHECKS, *LOSING):
        if name in LOSING and len(names) != 1:
            done = subprocess.run([sys.executable, "-m", "tests.gpu.smoke", name], capture_output=True, text=True)
            said = (done.stdout.strip() or done.stderr.strip()).rpartition("\n")[2]
            print(said, flush=True)
            failed += done.returncode != 0
            continue
        try:
            passed, said = run(name, device(0))
        except GraphmillError as error:  # there is none
            passed, said = False, str(error)
        failed += not passed
        print(f"{'ok' if passed else 'FAILED':6} {name}: {said}", flush=True)
    if len(names) != 1:
        print(f"{len(names or (*CHECKS, *LOSING)) - failed} passed, {failed} failed")
    return failed


if __name__ == "__main__":
    sys.exit(min(main(sys.argv[1:]), 100))
