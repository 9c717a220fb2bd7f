"""Primitives: what oneDNN compiles for a shape, with post-ops fused to it, and how one is executed."""

from __future__ import annotations

import ctypes
import enum
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from toolkit.errors import InternalError
from toolkit.kernels.cpu.memory.addresses import Table, aligned
from toolkit.kernels.cpu.onednn.library import UNIMPLEMENTED, OneDnnError, require
from toolkit.kernels.cpu.onednn.memory import DATA_TYPES, Desc, Memory
from toolkit.kernels.types import Array


class Arg(enum.IntEnum):
    """Names of a primitive's arguments (DNNL_ARG_*)."""

    SRC = 1
    SRC_1 = 2
    SRC_2 = 3
    DST = 17
    DST_1 = 18
    DST_2 = 19
    WEIGHTS = 33
    WEIGHTS_1 = 34
    WEIGHTS_2 = 35
    BIAS = 41
    MEAN = 49
    VARIANCE = 50
    SCALE = 51
    SHIFT = 52
    WORKSPACE = 64
    SCRATCHPAD = 80
    DIFF_SRC = 129
    DIFF_DST = 145
    DIFF_WEIGHTS = 161
    DIFF_BIAS = 169
    DIFF_SCALE = 255
    DIFF_SHIFT = 256
    MULTIPLE_SRC = 1024
    SCALES_OF = 4096  # with the argument that is scaled
    ZERO_OF = 8192
    POST_OP = 32768


class DescriptorQuery(enum.IntEnum):
    """Which descriptor of a primitive (dnnl_query_*_md)."""

    SRC = 129
    DIFF_SRC = 130
    WEIGHTS = 131
    DIFF_WEIGHTS = 132
    DST = 133
    DIFF_DST = 134
    WORKSPACE = 135
    SCRATCHPAD = 136


class Eltwise(enum.IntEnum):
    """Element functions (dnnl_eltwise_*)."""

    RELU = 0x20
    TANH = 0x21
    ELU = 0x22
    SQUARE = 0x23
    ABS = 0x24
    SQRT = 0x25
    LINEAR = 0x26
    SOFT_RELU = 0x27
    HARD_SIGMOID = 0x28
    LOGISTIC = 0x29
    EXP = 0x2A
    GELU_TANH = 0x2B
    SWISH = 0x2C
    LOG = 0x2D
    CLIP = 0x2E
    CLIP_V2 = 0x2F
    POW = 0x30
    GELU_ERF = 0x31
    ROUND = 0x32
    MISH = 0x33
    HARD_SWISH = 0x34


class Binary(enum.IntEnum):
    """Functions of two tensors (dnnl_binary_*)."""

    ADD = 0x1FFF0
    MUL = 0x1FFF1
    MAX = 0x1FFF2
    MIN = 0x1FFF3
    DIV = 0x1FFF4
    SUB = 0x1FFF5


class Pooling(enum.IntEnum):
    MAX = 0x1FF
    AVG_INCLUDE_PADDING = 0x2FF
    AVG_EXCLUDE_PADDING = 0x3FF


class Reduction(enum.IntEnum):
    MAX = 0x2FFF2
    MIN = 0x2FFF3
    SUM = 0x2FFF4
    MUL = 0x2FFF5
    MEAN = 0x2FFF6


FORWARD_TRAINING = 64
FORWARD_INFERENCE = 96
BACKWARD = 128
SOFTMAX_ACCURATE = 0x30000


class EltwisePost(NamedTuple):
    """f(x) = algorithm(x; alpha, beta), after the primitive."""

    algorithm: Eltwise
    alpha: float = 0.0
    beta: float = 0.0


class BinaryPost(NamedTuple):
    """x op other, where `other` is broadcast along dimensions of size 1."""

    algorithm: Binary
    desc: Desc


class SumPost(NamedTuple):
    """x + scale * what the destination held before.

    Attributes:
        dtype: what it held, where that is not of the destination's type.
    """

    scale: float = 1.0
    dtype: Any = None


class Quantization(NamedTuple):
    """Which arguments stand for (number - zero point) * scale; both are given when the primitive runs.

    Attributes:
        scales: argument to mask: the bits of the dimensions along which the float32 scales differ, 0 for one number.
        zeros: argument to mask, of int32 zero points.
    """

    scales: Mapping[Arg, int] = {}
    zeros: Mapping[Arg, int] = {}


PLAIN = Quantization()
Post = EltwisePost | BinaryPost | SumPost


class ReferenceImplementationError(OneDnnError):
    """oneDNN would fall back to its unoptimised code, which is slower than NumPy."""

    def __init__(self, name: str):
        super().__init__(name, UNIMPLEMENTED)
        self.args = (f"oneDNN has no fast code for this {name.replace('_', ' ')}",)


class Primitive:
    """A compiled primitive.

    Attributes:
        implementation: oneDNN's name of the code it chose.
    """

    __slots__ = ("_descriptor", "_needed", "handle", "implementation")

    def __init__(
        self,
        name: str,
        *args: Any,
        posts: Sequence[Post] = (),
        allow_reference: bool = False,
        quantization: Quantization = PLAIN,
        prefer: str = "",
    ):
        """Compile `dnnl_<name>_primitive_desc_create(engine, *args, attributes)`.

        Args:
            prefer: how the name of the implementation should start, if there is such a one.

        Raises:
            OneDnnError: oneDNN cannot do this, or only with its reference code (unless allowed).
        """
        library = require()
        attributes = _Attributes(posts, quantization)
        engine = () if name == "reorder" else (library.engine,)
        wanted = (f"dnnl_{name}_primitive_desc_create", *engine, *map(_plain, args), attributes.handle)
        self.handle: Any = None
        self._needed: dict[int, int] = {}
        self._descriptor: Any = library.new(*wanted)
        if prefer and not _advance(self._descriptor, prefer):
            library.call("dnnl_primitive_desc_destroy", self._descriptor)
            self._descriptor = None
            self._descriptor = library.new(*wanted)
        self.implementation = library.implementation(self._descriptor)
        if not allow_reference and self.implementation.startswith("ref"):
            raise ReferenceImplementationError(name)
        self.handle = ctypes.c_void_p(library.new("dnnl_primitive_create", self._descriptor))

    def __del__(self) -> None:
        library = require()
        if getattr(self, "handle", None) is not None:
            library.destroy("dnnl_primitive_destroy", self.handle)
        if getattr(self, "_descriptor", None) is not None:
            library.destroy("dnnl_primitive_desc_destroy", self._descriptor)

    def desc(self, what: DescriptorQuery, index: int = 0) -> Desc:
        """The layout it chose for one of its arguments."""
        found = require().query_md(self._descriptor, what, index)
        assert found is not None
        return Desc(found, keep=self)

    def needed(self, arg: int) -> int:
        """How many bytes of an argument it may touch; 0 for one that it does not have, and for scales."""
        found = self._needed.get(arg)
        if found is None:
            desc = require().query_md(self._descriptor, _ARGUMENT_MD, arg)
            found = self._needed[arg] = require().size_of(desc) if desc is not None else 0
        return found

    @property
    def scratch(self) -> Desc | None:
        """The memory it needs while it runs, if any."""
        found = require().query_md(self._descriptor, DescriptorQuery.SCRATCHPAD, 0)
        if found is None:
            return None
        desc = Desc(found, keep=self)
        return desc if desc.size else None

    @property
    def descriptor(self) -> int:
        """The primitive descriptor, as the hint that backward primitives want."""
        return self._descriptor


_ARGUMENT_MD = 255  # dnnl_query_exec_arg_md, by the number of the argument
_MOST = 20  # implementations of one kind of primitive; the library may name one twice


def _advance(descriptor: int, prefer: str) -> bool:
    """Let a descriptor stand for the first implementation whose name starts so; False where there is none."""
    library = require()
    try:
        for _ in range(_MOST):
            if library.implementation(descriptor).startswith(prefer):
                return True
            library.call("dnnl_primitive_desc_next_impl", descriptor)
    except OneDnnError:  # that was the last
        pass
    return False


class _Attributes:
    """Primitive attributes: post-ops, scales and zero points, and scratch memory that the caller gives.

    Left to the library, scratch memory belongs to the thread that made a primitive, whoever runs it.
    """

    def __init__(self, posts: Sequence[Post], quantization: Quantization):
        library = require()
        self.handle = library.new("dnnl_primitive_attr_create")
        for arg, mask in quantization.scales.items():
            library.call("dnnl_primitive_attr_set_scales_mask", self.handle, arg, mask)
        for arg, mask in quantization.zeros.items():
            library.call("dnnl_primitive_attr_set_zero_points_mask", self.handle, arg, mask)
        library.call("dnnl_primitive_attr_set_scratchpad_mode", self.handle, 1)  # dnnl_scratchpad_mode_user
        if not posts:
            return
        chain = library.new("dnnl_post_ops_create")
        try:
            for post in posts:
                match post:
                    case EltwisePost(algorithm, alpha, beta):
                        library.call("dnnl_post_ops_append_eltwise", chain, algorithm, alpha, beta)
                    case BinaryPost(algorithm, desc):
                        library.call("dnnl_post_ops_append_binary", chain, algorithm, desc.handle)
                    case SumPost(scale, dtype):
                        held = 0 if dtype is None else DATA_TYPES[dtype]
                        library.call("dnnl_post_ops_append_sum", chain, scale, 0, held)
            library.call("dnnl_primitive_attr_set_post_ops", self.handle, chain)
        finally:
            library.call("dnnl_post_ops_destroy", chain)

    def __del__(self) -> None:
        require().destroy("dnnl_primitive_attr_destroy", self.handle)


def _plain(arg: Any) -> Any:
    return arg.handle if isinstance(arg, Desc) else arg


class _ExecArg(ctypes.Structure):
    _fields_ = (("arg", ctypes.c_int), ("memory", ctypes.c_void_p))


def argument_array(primitive: Primitive, memories: Sequence[tuple[int, Memory]]) -> Any:
    """The arguments of a primitive as `Library.execute` takes them; the memories must be kept.

    Raises:
        InternalError: the primitive would touch more bytes than a memory has.
    """
    for arg, memory in memories:
        if memory.size < primitive.needed(int(arg)):
            raise InternalError(
                f"argument {int(arg)} of a primitive ({primitive.implementation}) has {primitive.needed(int(arg))} "
                f"bytes, its memory {memory.size}"
            )
    return (_ExecArg * len(memories))(*[_ExecArg(arg, memory.handle) for arg, memory in memories])


class PrimitiveCall:
    """A primitive with its memories, ready to be executed as often as wanted: `execute(*call.prepared)`.

    Args:
        scratch: a buffer for the primitive's scratch memory, which nobody else uses at the same time.

    Attributes:
        prepared: the arguments of `Library.execute`.
    """

    __slots__ = ("keep", "prepared")

    def __init__(
        self, primitive: Primitive, stream: Any, memories: Sequence[tuple[int, Memory]], scratch: Array | None = None
    ):
        desc = primitive.scratch
        if desc is not None:
            if scratch is None:
                scratch = aligned(desc.size, "scratch memory of a primitive")
            memories = [*memories, (int(Arg.SCRATCHPAD), Memory(desc, scratch))]
        arguments = argument_array(primitive, memories)
        self.prepared = (primitive.handle, stream, ctypes.c_int(len(memories)), arguments)
        self.keep = (primitive, memories)

    def numbers(self) -> tuple[int, int, int, int, int]:
        """The same for compiled code: the function, handle, stream, how many arguments there are, and where."""
        handle, stream, count, arguments = self.prepared
        return (require().execute_address, handle.value, stream.value, count.value, ctypes.addressof(arguments))


def table_of(call: PrimitiveCall, numbers: Sequence[int]) -> Table:
    """A call as machine code makes it, with numbers behind it."""
    cells = (*call.numbers(), *numbers)
    table = Table(len(cells))
    for index, number in enumerate(cells):
        table.number(index, number)
    table.keep(call)
    return table


def new_stream() -> Any:
    """A stream for calls, one after the other."""
    return ctypes.c_void_p(require().new_stream())


def execute(primitive: Primitive, memories: Sequence[tuple[int, Memory]]) -> None:
    """Execute once, outside any plan (packing weights, for instance).

    Raises:
        OneDnnError: it failed.
    """
    library = require()
    stream = new_stream()
    try:
        call = PrimitiveCall(primitive, stream, memories)  # held on to: its scratch memory goes with it
        status = library.execute(*call.prepared)
        if status:
            raise OneDnnError("dnnl_primitive_execute", status)
    finally:
        library.call("dnnl_stream_destroy", stream)


def reorder(source: Desc, target: Desc, quantization: Quantization = PLAIN) -> Primitive:
    """A copy that changes layout or type; with a quantization it is scaled, and never by reference code.

    Raises:
        OneDnnError: it would be.
    """
    library = require()
    return Primitive("reorder", source, library.engine, target, library.engine,
                     allow_reference=quantization is PLAIN, quantization=quantization)  # fmt: skip
