"""A driver that computes nothing and keeps a list of what it was asked: launches as they are compiled, without a GPU.

Memory has addresses and no content; what is copied out is zeros, but for constants, which compilers look at: what was
copied in and has not been used since, and what kernels make of a few such numbers, of which compilers compute shapes.
So steps whose course does not depend on numbers in the device's memory can be run at their full size at once, and every
kernel, library call and copy is known with its arguments.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from toolkit.kernels.cuda.driver.base import DeviceProperties, OutOfDeviceMemory
from toolkit.kernels.cuda.libraries.attention import AttentionGradient, library_takes
from toolkit.kernels.cuda.simt import machine
from toolkit.kernels.cuda.simt.arithmetic import DTYPES
from toolkit.kernels.cuda.simt.ir import SIZES, If, KernelBuffer, Operation, SimtKernel, While

#: as `Card.flops` names them
_NARROW = {"bfloat16": "bf16", "float16": "fp16", "float8_e4m3fn": "fp8"}


#: bytes of a constant that are kept
_MOST_HELD = 1 << 23
#: bytes of constants that kernels compute with: shapes and axes
_FEW = 256


@dataclass(frozen=True)
class Launch:
    """Something that the card does.

    Attributes:
        name: of the kernel, of the library's call, or "copy", "fill".
        blocks: of a kernel; 0 of others.
        bytes: of memory, read and written, each argument once.
        flops: operations: of a library's call by its geometry; of a kernel as many for each element that it reads as
            its instructions have for a load.
        kind: "product" where tensor cores can do it, "kernel", "copy".
        captured: it is part of a graph that is replayed.
        precision: of a product: what its factors are multiplied in, a key of `Card.flops`.
    """

    name: str
    blocks: int
    bytes: int
    flops: float
    kind: str
    captured: bool = False
    precision: str = ""


@dataclass
class _Graph:
    launches: list[Launch]

    @property
    def operations(self) -> int:
        return len(self.launches)


class _Handle:
    """A stream or an event."""

    handle = 0

    def __init__(self) -> None:
        self.captured: list[Launch] | None = None


@dataclass(frozen=True)
class _Function:
    kernel: SimtKernel
    registers: int = 0
    spills: int = 0

    @property
    def name(self) -> str:
        return self.kernel.name

    @property
    def shared(self) -> int:
        return self.kernel.shared_bytes

    @property
    def ptx(self) -> str:
        return ""


@dataclass(eq=False)
class _Libraries:
    """Takes whatever it is asked."""

    context: PaperContext
    version: str = "on paper"
    seen: set[Any] = field(default_factory=set[Any])

    def supports(self, *_: Any) -> bool:
        return True

    def matmul(self, product: Any, *spans: Any, **more: Any) -> None:
        p = product
        *spans, stream = spans
        more["factors"], *factors = None, *(more.get("factors") or ())
        each, made = (np.dtype(_numpy(name)).itemsize for name in (p.dtype, p.result))
        sizes = (p.m * p.k * each, p.k * p.n * each, p.m * p.n * made)
        strides = (p.stride_a, p.stride_b, p.stride_out)
        moved = sum(size * (p.batch if stride else 1) for size, stride in zip(sizes, strides, strict=True))
        moved += sum(span.nbytes for span in (*more.values(), *factors) if span is not None)
        name = f"matmul {_types(p)} {p.m} x {p.n} x {p.k}" + (f", {p.batch} times" if p.batch > 1 else "")
        name += f" {p.epilogue}" if p.epilogue else ""
        self.context.note(
            Launch(name, 0, moved, 2.0 * p.m * p.n * p.k * p.batch, "product", precision=_precision(p)), stream
        )

    def convolve(self, convolution: Any, *spans: Any, **more: Any) -> None:
        c = convolution
        *_, stream = spans
        each, made = (np.dtype(_numpy(name)).itemsize for name in (c.dtype, c.result))
        window = int(np.prod(c.kernel)) * c.channels // c.groups
        flops = 2.0 * c.batch * c.filters * int(np.prod(c.out)) * window
        shapes = {"x": c.x_shape, "w": c.w_shape, "y": c.y_shape}
        result = {"forward": "y", "input": "x", "filter": "w"}[c.kind]
        moved = sum(int(np.prod(shape)) * (made if part == result else each) for part, shape in shapes.items())
        moved += sum(span.nbytes for span in more.values() if span is not None)
        kernel, sizes = "x".join(map(str, c.kernel)), "x".join(map(str, c.sizes))
        name = f"convolution {c.kind} {_types(c)} {kernel} {c.channels} to {c.filters} of {sizes}"
        name += f" {' '.join(c.epilogue)}" if c.epilogue else ""
        self.context.note(Launch(name, 0, moved, flops, "product", precision=_precision(c)), stream)

    def attends(self, of: Any) -> bool:
        return library_takes(of.forward if isinstance(of, AttentionGradient) else of)

    def attend(self, attention: Any, *spans: Any, mask: Any = None, statistics: Any = None) -> None:
        """Two products; the scores are nowhere in memory."""
        *_, stream = spans
        sizes, shape = attention.sizes, attention.sizes.shape
        moved = 2 * sum(math.prod(shape(part)) for part in ("q", "k", "v", "out"))
        moved += sum(span.nbytes for span in (mask, statistics) if span is not None)
        scores = sizes.batch * sizes.heads * _pairs(sizes.rows, sizes.keys, causal=attention.causal)
        flops = 2.0 * scores * (sizes.size + sizes.value_size)
        name = (
            f"attention {attention.dtype} {sizes.batch} x {sizes.heads} of {sizes.rows} x {sizes.keys} x {sizes.size}"
        )
        self.context.note(Launch(name, 0, moved, flops, "product", precision=_NARROW[attention.dtype]), stream)

    def attend_back(self, gradient: Any, *spans: Any, mask: Any = None) -> None:
        """Five products: the scores again, and the gradients by the softmax, the values, the queries and the keys."""
        *_, statistics, _made, stream = spans
        attention = gradient.forward
        sizes, shape = attention.sizes, attention.sizes.shape
        moved = 2 * sum(math.prod(shape(part)) for part in ("q", "k", "v", "out", "out", "q", "k", "v"))
        moved += statistics.nbytes + (0 if mask is None else mask.nbytes)
        scores = sizes.batch * sizes.heads * _pairs(sizes.rows, sizes.keys, causal=attention.causal)
        flops = 2.0 * scores * (3 * sizes.size + 2 * sizes.value_size)
        name = f"attention gradient {attention.dtype} {sizes.batch} x {sizes.heads} of {sizes.rows} x {sizes.keys}"
        name += f" x {sizes.size}"
        self.context.note(Launch(name, 0, moved, flops, "product", precision=_NARROW[attention.dtype]), stream)

    def __getattr__(self, name: str) -> Any:
        """Any other call of a library: what its arguments hold is moved."""
        if name.startswith("_"):
            raise AttributeError(name)

        def call(*arguments: Any, **more: Any) -> None:
            given = [*arguments, *more.values()]
            stream = next((each for each in given if isinstance(each, _Handle)), None)
            moved = sum(each.nbytes for each in given if hasattr(each, "nbytes") and hasattr(each, "address"))
            self.context.note(Launch(name, 0, moved, moved / 4, "kernel"), stream)

        return call


#: by the name of a kind of `mma`
_MULTIPLIED = {"tf32": "tf32", "bfloat": "bf16", "half": "fp16"}


def _attention(kernel: SimtKernel, blocks: int, arguments: Sequence[Any]) -> Launch:
    """Of our own kernels (`nn.flash_attention`, `nn.flash_gradient`): products; the scores are nowhere in memory."""
    given = dict(zip((each.name.removeprefix("%") for each in kernel.parameters), arguments, strict=True))
    _, *results, kind, sizes, tile = kernel.name.removesuffix("_causal").split("_")
    depth, width = map(int, sizes.split("x"))
    moved = sum(given[one.name].nbytes for one in kernel.parameters if isinstance(one, KernelBuffer))
    count = given["keys"] if "dk" in results or "dv" in results else given["rows"]
    images = blocks // -(-count // int(tile.split("x")[0]))
    numbers = {"dq": 2 * depth + width, "dk": 2 * depth + width, "dv": depth + width}
    each = numbers[results[-1]] if results else depth + width
    if results[-2:] == ["dk", "dv"]:
        each = 2 * (depth + width)  # of one kernel, which computes scores once
    pairs = _pairs(given["rows"], given["keys"], causal=kernel.name.endswith("_causal"))
    return Launch(kernel.name, blocks, moved, 2.0 * images * pairs * each, "product", precision=_MULTIPLIED[kind])


def _pairs(rows: int, keys: int, *, causal: bool) -> int:
    """How many scores there are of one head."""
    return sum(min(row + 1, keys) for row in range(rows)) if causal else rows * keys


def _types(of: Any) -> str:
    """The factors' type, and the result's where it is another."""
    return f"{of.dtype} to {of.result}" if of.made else of.dtype


def _precision(of: Any) -> str:
    """What tensor cores multiply in, as `Card.flops` names it."""
    return _NARROW.get(of.dtype, "tf32" if of.tf32 else "f32")


def _numpy(name: str) -> Any:
    import ml_dtypes

    return getattr(ml_dtypes, name) if name in ("bfloat16", "float8_e4m3fn") else name


class PaperContext:
    """A card on paper; see `toolkit.kernels.cuda.driver.base.Context`.

    Attributes:
        launches: what was done, in the order in which it was asked.
    """

    poisons = False
    measures = False
    index = 0

    def __init__(self, properties: DeviceProperties):
        self.properties = properties
        self.launches: list[Launch] = []
        self._lock = threading.Lock()
        self._next, self._sizes = 1 << 40, dict[int, int]()
        self._functions: dict[str, _Function] = {}
        self._captures: dict[int, list[Launch]] = {}
        self._held: dict[int, Any] = {}
        self.blas = self.dnn = _Libraries(self)

    def note(self, launch: Launch, stream: Any) -> None:
        captured = None if stream is None else stream.captured
        (self.launches if captured is None else captured).append(launch)

    @property
    def kernels(self) -> list[SimtKernel]:
        """All that were asked for so far."""
        return [each.kernel for each in self._functions.values()]

    def poison(self, *_: Any) -> None: ...

    def allocate(self, nbytes: int) -> int:
        with self._lock:
            if sum(self._sizes.values()) + nbytes > self.properties.memory:
                raise OutOfDeviceMemory("cuMemAlloc", "CUDA_ERROR_OUT_OF_MEMORY", f"{nbytes} bytes")
            address, self._next = self._next, self._next + -(-nbytes // 256) * 256 + 256
            self._sizes[address] = nbytes
            return address

    def free(self, address: int) -> None:
        with self._lock:
            del self._sizes[address]

    def memory_info(self) -> tuple[int, int]:
        return self.properties.memory - sum(self._sizes.values()), self.properties.memory

    def pinned(self, nbytes: int) -> Any:
        return np.zeros(nbytes, np.uint8)

    def stream(self) -> _Handle:
        return _Handle()

    def event(self, *, timing: bool = False) -> _Handle:
        return _Handle()

    def record(self, event: _Handle, stream: _Handle) -> None:
        event.captured = stream.captured

    def wait(self, stream: _Handle, event: _Handle) -> None:
        if event.captured is not None:  # what waits for recorded work is recorded
            stream.captured = event.captured

    def done(self, event: Any) -> bool:
        return True

    def synchronize(self, what: Any = None) -> None: ...

    def elapsed(self, start: Any, end: Any) -> float:
        return 0.0

    def copy_in(self, address: int, host: Any, stream: Any) -> None:
        self._held[address] = bytes(host.reshape(-1).view(np.uint8)) if host.nbytes <= _MOST_HELD else b""
        self.note(Launch("copy in", 0, host.nbytes, 0.0, "copy"), stream)

    copy_in_bytes = copy_in

    def copy_out(self, host: Any, address: int, stream: Any) -> None:
        held = self._held.get(address, b"")
        host[:] = np.frombuffer(held, host.dtype).reshape(host.shape) if len(held) == host.nbytes else 0
        self.note(Launch("copy out", 0, host.nbytes, 0.0, "copy"), stream)

    def copy(self, to: int, source: int, nbytes: int, stream: Any) -> None:
        self.note(Launch("copy", 0, 2 * nbytes, 0.0, "kernel"), stream)

    def copy_peer(self, to: int, to_context: Any, source: int, nbytes: int, stream: Any) -> None:
        self.note(Launch("copy between cards", 0, 2 * nbytes, 0.0, "copy"), stream)

    def fill(self, address: int, byte: int, nbytes: int, stream: Any) -> None:
        self.note(Launch("fill", 0, nbytes, 0.0, "kernel"), stream)

    def function(self, kernel: SimtKernel) -> _Function:
        return self._functions.setdefault(kernel.text, _Function(kernel))

    def launch(self, function: Any, blocks: int, arguments: Sequence[Any], stream: Any) -> None:
        kernel = function.kernel
        if not self._computed(kernel, blocks, arguments):
            for given in arguments:
                self._held.pop(getattr(given, "address", 0), None)
        if kernel.name.startswith("attention_"):
            self.note(_attention(kernel, blocks, arguments), stream)
            return
        pairs = [
            (one, given.nbytes)
            for one, given in zip(kernel.parameters, arguments, strict=True)
            if isinstance(one, KernelBuffer)
        ]
        loads = sum(nbytes / SIZES[one.type] for one, nbytes in pairs if not one.written) or sum(
            nbytes / SIZES[one.type] for one, nbytes in pairs
        )
        flops = loads * operations_of_a_load(kernel)
        self.note(Launch(kernel.name, blocks, sum(nbytes for _, nbytes in pairs), flops, "kernel"), stream)

    def _computed(self, kernel: SimtKernel, blocks: int, arguments: Sequence[Any]) -> bool:
        """Run a kernel that takes and gives few numbers, if all that it takes are known."""
        given: list[Any] = []
        made: list[tuple[int, Any]] = []
        for one, value in zip(kernel.parameters, arguments, strict=True):
            if not isinstance(one, KernelBuffer):
                given.append(value)
                continue
            held = self._held.get(value.address, b"")
            if value.nbytes > _FEW or (not one.written and len(held) != value.nbytes):
                return False
            numbers = np.zeros(value.nbytes, np.uint8) if len(held) != value.nbytes else np.frombuffer(held, np.uint8)
            given.append(numbers.copy().view(DTYPES[one.type]))
            if one.written:
                made.append((value.address, given[-1]))
        machine.run(kernel, blocks, given, races=False)
        self._held.update((address, numbers.tobytes()) for address, numbers in made)
        return True

    def begin_capture(self, stream: _Handle) -> None:
        stream.captured = []

    def end_capture(self, stream: _Handle) -> _Graph:
        launches, stream.captured = stream.captured or [], None
        return _Graph([replace(each, captured=True) for each in launches])

    no_conditions = "what is on paper has no numbers that decide"

    def is_recorded(self, stream: _Handle) -> bool:
        return stream.captured is not None

    def replay(self, graph: _Graph, stream: _Handle) -> None:
        for launch in graph.launches:
            self.note(launch, stream)

    def free_graph(self, graph: Any) -> None: ...


class PaperDriver:
    """One card on paper."""

    def __init__(self, name: str = "H100 on paper", memory: int = 80 << 30):
        self._context = PaperContext(
            DeviceProperties(
                name=name, memory=memory, capability=(9, 0), multiprocessors=132, shared_per_block=48 << 10,
                l2=50 << 20, clock=1_980_000, driver=13000, runtime="on paper",
            )
        )  # fmt: skip

    def count(self) -> int:
        return 1

    def properties(self, index: int) -> DeviceProperties:
        return self._context.properties

    def open(self, index: int) -> PaperContext:
        return self._context


#: instructions that compute floating-point numbers; a function counts as one
_ARITHMETIC = ("fadd", "fsub", "fmul", "fdiv", "frem", "fneg", "sqrt", "intrinsic", "fcmp")


def operations_of_a_load(kernel: SimtKernel) -> float:
    """Arithmetic instructions for each load from global memory, as they stand in the text; those without loads: all."""
    counts = {"arithmetic": 0, "loads": 0}

    def count(body: Sequence[Any]) -> None:
        for one in body:
            if isinstance(one, If):
                count(one.then)
                count(one.otherwise)
            elif isinstance(one, While):
                count(one.head)
                count(one.body)
            elif isinstance(one, Operation):
                counts["arithmetic"] += one.opcode.startswith(_ARITHMETIC)
                counts["loads"] += one.opcode == "load" and getattr(one.place, "space", "") == "global"

    count(kernel.body)
    return counts["arithmetic"] / max(counts["loads"], 1)
