"""What these kernels share: types, places in tensors, windows, sizes of grids."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from toolkit.kernels.cpu.native.code import Lanes
from toolkit.kernels.cuda.simt.builder import KernelBuilder
from toolkit.kernels.cuda.simt.ir import TYPES

BLOCK = 256
#: beyond, places in a tensor are numbered in 64 bits
_MOST_IN_32_BITS = 2**31 - 2**20  # with room for the last block's threads
#: windows have so many axes here; those with fewer get axes of one element in front
AXES = 3


def llvm_type(dtype: Any) -> str:
    """Of a NumPy type in memory."""
    return TYPES[dtype.name]


def sum_type(type: str) -> str:
    """What numbers of a type are computed in: 16-bit floats in float."""
    return "float" if type in ("half", "bfloat") else type


def index_type(*arrays: Any) -> str:
    """The type that numbers the places of tensors."""
    largest = max((array.nbytes // array.dtype.itemsize for array in arrays), default=0)
    return "i64" if largest > _MOST_IN_32_BITS else "i32"


def blocks_of(count: int, block: int = BLOCK) -> int:
    """How many blocks have so many threads."""
    return max(1, -(-count // block))


def split(k: KernelBuilder, number: Lanes, *sizes: Lanes) -> list[Lanes]:
    """A number as places along axes of which the last changes fastest; `sizes` are those of all axes but the first."""
    found: list[Lanes] = []
    for size in reversed(sizes):
        rest = k.div(number, size)
        found.append(k.sub(number, k.mul(rest, size)))
        number = rest
    return [number, *reversed(found)]


def place(k: KernelBuilder, places: Sequence[Lanes], strides: Sequence[Lanes]) -> Lanes:
    """Where an element is: the sum of places times strides."""
    total: Lanes | None = None
    for where, stride in zip(places, strides, strict=True):
        part = k.mul(where, stride)
        total = part if total is None else k.add(total, part)
    assert total is not None
    return total


def is_inside(k: KernelBuilder, where: Sequence[Lanes], sizes: Sequence[Lanes]) -> Lanes:
    """Whether places are not negative and below their sizes."""
    holds: Lanes | None = None
    for one, size in zip(where, sizes, strict=True):
        fits = k.both(k.compare("sge", one, k.number(0, one.type)), k.compare("slt", one, size))
        holds = fits if holds is None else k.both(holds, fits)
    assert holds is not None
    return holds


class Geometry(NamedTuple):
    """Windows over an input, as host code describes them: three axes, sizes in front filled with 1.

    Attributes:
        x, y: strides of the input's and the output's batch, axes and channel, in elements.
    """

    batch: int
    channels: int
    sizes: tuple[int, ...]
    kernel: tuple[int, ...]
    out: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    pads: tuple[int, ...]
    x: tuple[int, ...]
    y: tuple[int, ...]

    @property
    def numbers(self) -> list[int]:
        """As a kernel takes them: what `WindowScalars` declares, in its order."""
        return [
            self.batch, self.channels, *self.sizes, *self.kernel, *self.out, *self.strides, *self.dilations,
            *self.pads, *self.x, *self.y,
        ]  # fmt: skip

    @property
    def inputs(self) -> int:
        """Positions of the input, without channels."""
        return self.batch * _count(self.sizes)

    @property
    def outputs(self) -> int:
        return self.batch * _count(self.out)

    @property
    def taps(self) -> int:
        return _count(self.kernel)


def _count(sizes: Sequence[int]) -> int:
    total = 1
    for size in sizes:
        total *= size
    return total


def geometry(
    windows: Any,
    batch: int,
    channels: int,
    out_channels: int,
    *,
    channels_first: bool,
    y_channels_first: bool | None = None,
) -> Geometry:
    """Of windows as the CPU's kernels lay them out (`nn_window.Windows`), over dense tensors."""

    def full(values: Sequence[int], filling: int) -> tuple[int, ...]:
        return (*[filling] * (AXES - len(values)), *values)

    sizes, out = full(windows.sizes, 1), full(windows.out, 1)
    y_first = channels_first if y_channels_first is None else y_channels_first
    return Geometry(
        batch, channels, sizes, full(windows.kernel, 1), out, full(windows.strides, 1), full(windows.dilations, 1),
        full([before for before, _ in windows.pads], 0), dense(sizes, channels, channels_first),
        dense(out, out_channels, y_first),
    )  # fmt: skip


def dense(sizes: Sequence[int], channels: int, channels_first: bool) -> tuple[int, ...]:
    """Strides of the batch, the axes and the channel of a dense tensor."""
    step = 1 if channels_first else channels
    axes: list[int] = []
    for size in reversed(sizes):
        axes.append(step)
        step *= size
    batch = step * channels if channels_first else step
    return (batch, *reversed(axes), step if channels_first else 1)


class WindowScalars:
    """A `Geometry`'s numbers as a kernel's arguments.

    Attributes:
        x, y: strides of batch, axes and channel.
    """

    def __init__(self, k: KernelBuilder, index: str):
        def scalars(name: str, count: int) -> list[Lanes]:
            return [k.scalar(f"{name}{number}", index) for number in range(count)]

        self.k = k
        self.batch, self.channels = k.scalar("batch", index), k.scalar("channels", index)
        self.sizes, self.kernel, self.out = scalars("size", AXES), scalars("kernel", AXES), scalars("out", AXES)
        self.strides, self.dilations = scalars("stride", AXES), scalars("dilation", AXES)
        self.pads = scalars("pad", AXES)
        self.x, self.y = scalars("x_stride", AXES + 2), scalars("y_stride", AXES + 2)

    def seen(self, output: Sequence[Lanes], tap: Sequence[Lanes]) -> tuple[list[Lanes], Lanes]:
        """Where in the input an output's window has a tap, and whether that is inside."""
        k = self.k
        where: list[Lanes] = []
        for p, t, s, d, pad in zip(output, tap, self.strides, self.dilations, self.pads, strict=True):
            where.append(k.sub(k.add(k.mul(p, s), k.mul(t, d)), pad))
        return where, is_inside(k, where, self.sizes)

    def seeing(self, position: Sequence[Lanes], tap: Sequence[Lanes]) -> tuple[list[Lanes], Lanes]:
        """The output whose window has an input's position as a tap, and whether there is one."""
        k = self.k
        where: list[Lanes] = []
        holds: Lanes | None = None
        for h, t, s, d, pad in zip(position, tap, self.strides, self.dilations, self.pads, strict=True):
            number = k.sub(k.add(h, pad), k.mul(t, d))
            p = k.div(number, s)
            # of negative numbers the quotient is rounded towards 0, and only those above -s give 0
            exact = k.both(k.compare("eq", k.mul(p, s), number), k.compare("sge", number, k.number(0, number.type)))
            holds = exact if holds is None else k.both(holds, exact)
            where.append(p)
        assert holds is not None
        return where, k.both(holds, is_inside(k, where, self.out))
