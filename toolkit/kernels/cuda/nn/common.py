"""What these kernels share: types, places in tensors, windows, sizes of grids."""

from __future__ import annotations

from collections.abc import Callable, Sequence
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
    return index_type_of(max((array.nbytes // array.dtype.itemsize for array in arrays), default=0))


def index_type_of(elements: int) -> str:
    """The type that numbers so many places."""
    return "i64" if elements > _MOST_IN_32_BITS else "i32"


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


def channel_of(k: KernelBuilder, number: Lanes, channels: Lanes, inner: Lanes | None) -> Lanes:
    """The channel of an element of (outer, channels, inner); None: channels are last."""
    if inner is None:
        return k.rem(number, channels)
    return split(k, number, channels, inner)[1]


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
    def axes(self) -> int:
        """Two where the first axis is none: kernels for those are smaller."""
        first = (self.sizes[0], self.kernel[0], self.out[0], self.pads[0])
        return AXES - 1 if first == (1, 1, 1, 0) else AXES

    @property
    def numbers(self) -> list[int]:
        """As a kernel takes them: what `WindowScalars` declares, in its order."""
        skip = AXES - self.axes
        groups = (self.sizes, self.kernel, self.out, self.strides, self.dilations, self.pads)
        strides = ([each[0], *each[1 + skip :]] for each in (self.x, self.y))
        return [self.batch, self.channels, *(n for group in (*(g[skip:] for g in groups), *strides) for n in group)]

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
    """Of windows as the CPU's kernels lay them out (`window.Windows`), over dense tensors."""

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

    def __init__(self, k: KernelBuilder, index: str, axes: int):
        self._skip = skip = AXES - axes

        def scalars(name: str, instead: int) -> list[Lanes]:
            """Along the axes; those in front that are none have constants."""
            none: list[Lanes] = [k.number(instead, index)] * skip
            return [*none, *(k.scalar(f"{name}{number}", index) for number in range(axes))]

        def steps(name: str) -> list[Lanes]:
            batch = k.scalar(f"{name}_batch", index)
            return [batch, *scalars(name, 0), k.scalar(f"{name}_channel", index)]

        self.k = k
        self.batch, self.channels = k.scalar("batch", index), k.scalar("channels", index)
        self.sizes, self.kernel, self.out = scalars("size", 1), scalars("kernel", 1), scalars("out", 1)
        self.strides, self.dilations, self.pads = scalars("stride", 1), scalars("dilation", 1), scalars("pad", 0)
        self.x, self.y = steps("x_stride"), steps("y_stride")

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

    def over_seen(self, output: Sequence[Lanes], visit: Callable[[list[Lanes], list[Lanes]], None]) -> None:
        """Write loops over an output's window: `visit` is given tap and place of each element that is inside."""

        def along(axis: int, taps: list[Lanes], places: list[Lanes]) -> None:
            k = self.k
            if axis == AXES:
                visit(taps, places)
                return
            if axis < self._skip:
                along(axis + 1, [*taps, k.number(0, output[axis].type)], [*places, output[axis]])
                return
            start = k.sub(k.mul(output[axis], self.strides[axis]), self.pads[axis])
            with k.loop(k.number(0, start.type), self.kernel[axis]) as tap:
                where = k.add(start, k.mul(tap, self.dilations[axis]))
                with k.when(is_inside(k, [where], [self.sizes[axis]])):
                    along(axis + 1, [*taps, tap], [*places, where])

        along(0, [], [])

    def over_seeing(self, position: Sequence[Lanes], visit: Callable[[list[Lanes], list[Lanes]], None]) -> None:
        """Write loops over the taps as which an input's position is seen: `visit` is given tap and output."""

        def along(axis: int, taps: list[Lanes], outputs: list[Lanes]) -> None:
            k = self.k
            if axis == AXES:
                visit(taps, outputs)
                return
            if axis < self._skip:
                along(axis + 1, [*taps, k.number(0, position[axis].type)], [*outputs, position[axis]])
                return
            start = k.add(position[axis], self.pads[axis])
            stride = self.strides[axis]
            with k.loop(k.number(0, start.type), self.kernel[axis]) as tap:
                number = k.sub(start, k.mul(tap, self.dilations[axis]))
                output = k.div(number, stride)
                exact = k.compare("eq", k.mul(output, stride), number)
                inside = k.both(
                    k.compare("sge", number, k.number(0, number.type)), k.compare("slt", output, self.out[axis])
                )
                with k.when(k.both(exact, inside)):
                    along(axis + 1, [*taps, tap], [*outputs, output])

        along(0, [], [])

    def tap_number(self, taps: Sequence[Lanes]) -> Lanes:
        """A tap as one number, the last axis changing fastest."""
        k = self.k
        number = taps[0]
        for tap, size in zip(taps[1:], self.kernel[1:], strict=True):
            number = k.add(k.mul(number, size), tap)
        return number
