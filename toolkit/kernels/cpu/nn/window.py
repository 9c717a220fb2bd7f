"""Sliding windows: paddings, layouts and patch views shared by convolutions and pools.

Every kernel of this family works channels-last (N, spatial..., C) with any number of spatial axes; channels-first
tensors are transposed on the way in and out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from toolkit.errors import InvalidArgumentError, UnimplementedError
from toolkit.kernels.registry import KernelNode
from toolkit.kernels.types import Array

_CHANNELS_FIRST = frozenset({"NCHW", "NCDHW", "CHANNELS_FIRST"})


def is_narrow(dtype: Any) -> bool:
    """True for float16 and bfloat16, which are computed in float32 and rounded once at the end."""
    return dtype.itemsize == 2 and dtype.kind not in "iu"


def widen(x: Array) -> Array:
    """float16 and bfloat16 as float32, everything else as it is."""
    return x.astype(np.float32) if is_narrow(x.dtype) else x


@dataclass(frozen=True, slots=True)
class Layout:
    """Where the channels are."""

    channels_first: bool

    @staticmethod
    def of(op: KernelNode, default: str = "NHWC") -> Layout:
        """The layout that the node's data_format names."""
        name = op.text("data_format", default)
        if name == "NCHW_VECT_C":
            raise UnimplementedError(f"{op.op} in NCHW_VECT_C runs on GPUs only", node=op.name)
        return Layout(name in _CHANNELS_FIRST)

    def last(self, x: Array) -> Array:
        """A channels-last view.

        Raises:
            InvalidArgumentError: a scalar or vector has no channels.
        """
        if x.ndim < 2 and self.channels_first:
            raise InvalidArgumentError(f"a tensor of shape {list(x.shape)} has no channels")
        return np.moveaxis(x, 1, -1) if self.channels_first else x

    def restore(self, x: Array) -> Array:
        """Back from channels-last to this layout, contiguous."""
        return np.ascontiguousarray(np.moveaxis(x, -1, 1)) if self.channels_first else x

    def spatial(self, values: Sequence[int]) -> tuple[int, ...]:
        """The spatial entries of a per-dimension attribute such as strides."""
        return tuple(values[2:]) if self.channels_first else tuple(values[1:-1])

    def batch_and_channel(self, values: Sequence[int]) -> tuple[int, int]:
        return values[0], values[1] if self.channels_first else values[-1]

    def shape_last(self, sizes: Sequence[int]) -> tuple[int, ...]:
        """A shape in this layout as channels-last."""
        return (sizes[0], *sizes[2:], sizes[1]) if self.channels_first else tuple(sizes)


@dataclass(frozen=True, slots=True)
class Windows:
    """Windows over the spatial axes, for one input size.

    Attributes:
        sizes: the input's spatial sizes.
        kernel, strides, dilations: per spatial axis.
        pads: (before, after) per spatial axis; negative ones never occur.
        out: the output's spatial sizes.
    """

    sizes: tuple[int, ...]
    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    pads: tuple[tuple[int, int], ...]
    out: tuple[int, ...]

    @property
    def is_padded(self) -> bool:
        return any(before or after for before, after in self.pads)

    def pad(self, x: Array, value: Any = 0) -> Array:
        """x with the padding added, or x itself when there is none."""
        if not self.is_padded:
            return x
        shape = (x.shape[0], *(n + b + a for n, (b, a) in zip(self.sizes, self.pads, strict=True)), x.shape[-1])
        out = np.full(shape, value, x.dtype) if value else np.zeros(shape, x.dtype)
        out[self.interior] = x
        return out

    @property
    def interior(self) -> tuple[slice, ...]:
        """The part of a padded array that is the input."""
        return (slice(None), *(slice(b, b + n) for n, (b, _) in zip(self.sizes, self.pads, strict=True)))

    def padded_shape(self, batch: int, channels: int) -> tuple[int, ...]:
        return (batch, *(n + b + a for n, (b, a) in zip(self.sizes, self.pads, strict=True)), channels)

    def taps(self) -> Iterator[tuple[tuple[int, ...], tuple[slice, ...]]]:
        """Each position in the window with the slice of the padded input it sees, output by output."""
        for tap in product(*map(range, self.kernel)):
            yield (
                tap,
                (
                    slice(None),
                    *(
                        slice(t * d, t * d + (o - 1) * s + 1 if o else t * d, s)
                        for t, d, s, o in zip(tap, self.dilations, self.strides, self.out, strict=True)
                    ),
                ),
            )

    def view(self, padded: Array) -> Array:
        """(N, out..., kernel..., C): all windows as a strided view of the padded input, read-only."""
        strides = padded.strides
        spatial = strides[1:-1]
        return as_strided(
            padded,
            (padded.shape[0], *self.out, *self.kernel, padded.shape[-1]),
            (
                strides[0],
                *(step * s for step, s in zip(spatial, self.strides, strict=True)),
                *(step * d for step, d in zip(spatial, self.dilations, strict=True)),
                strides[-1],
            ),
            writeable=False,
        )

    @property
    def is_pointwise(self) -> bool:
        """True when each output sees exactly the input at its own place."""
        return all(k == 1 for k in self.kernel) and all(s == 1 for s in self.strides) and not self.is_padded


@dataclass(frozen=True, slots=True)
class WindowSpec:
    """The attributes of a window op, ready to be laid over inputs."""

    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    padding: str
    explicit: tuple[tuple[int, int], ...]
    node: str

    def over(self, sizes: Sequence[int], kernel: Sequence[int]) -> Windows:
        """The windows over an input with these spatial sizes.

        SAME puts the odd element of padding behind; output sizes are ceil(n / s) for SAME and
        ceil((n + pads - span + 1) / s) otherwise, with span = (k - 1) d + 1.

        Raises:
            InvalidArgumentError: the window is larger than the padded input.
        """
        pads: list[tuple[int, int]] = []
        out: list[int] = []
        for axis, (n, k, s, d) in enumerate(zip(sizes, kernel, self.strides, self.dilations, strict=True)):
            span = (k - 1) * d + 1
            if self.padding == "SAME":
                count = -(-n // s)
                total = max((count - 1) * s + span - n, 0)
                pads.append((total // 2, total - total // 2))
            else:
                before, after = self.explicit[axis] if self.padding == "EXPLICIT" else (0, 0)
                count = -(-(n + before + after - span + 1) // s)
                pads.append((before, after))
                if count < 0:
                    raise InvalidArgumentError(
                        f"Computed output size would be negative: {count} [input_size: {n}, effective_filter_size: "
                        f"{span}, stride: {s}]",
                        node=self.node,
                    )
            out.append(count)
        return Windows(tuple(sizes), tuple(kernel), self.strides, self.dilations, tuple(pads), tuple(out))


def window_spec(op: KernelNode, layout: Layout, strides: Sequence[int] | None = None, rank: int = 4) -> WindowSpec:
    """Read strides, dilations and padding of a node, all per dimension of its rank-`rank` input.

    Raises:
        InvalidArgumentError: an attribute has the wrong length, or moves over batch or channels.
    """
    all_strides: list[int] = list(op.attr("strides") if strides is None else strides)
    if len(all_strides) != rank:
        raise InvalidArgumentError(f"strides must have {rank} entries, not {len(all_strides)}", node=op.name)
    dilations = _dilations(op, layout, rank)
    if layout.batch_and_channel(all_strides) != (1, 1):
        raise UnimplementedError("strides over the batch and depth dimensions are not supported", node=op.name)
    spatial = layout.spatial(all_strides)
    if min(spatial) <= 0:
        raise InvalidArgumentError(f"strides must be positive, not {list(spatial)}", node=op.name)
    padding = op.text("padding")
    explicit: tuple[tuple[int, int], ...] = ()
    if padding == "EXPLICIT":
        flat: list[int] = list(op.attr("explicit_paddings"))
        if len(flat) != 2 * rank:
            raise InvalidArgumentError(
                f"explicit_paddings must have {2 * rank} entries (two for each dimension), not {len(flat)}",
                node=op.name,
            )
        pairs = [(flat[i], flat[i + 1]) for i in range(0, 2 * rank, 2)]
        if min(flat) < 0:
            raise InvalidArgumentError(f"explicit_paddings must not be negative: {flat}", node=op.name)
        channel = 1 if layout.channels_first else rank - 1
        if pairs[0] != (0, 0) or pairs[channel] != (0, 0):
            raise InvalidArgumentError("explicit padding of batch or depth is not supported", node=op.name)
        explicit = tuple(pairs[2:] if layout.channels_first else pairs[1:-1])
    elif op.has("explicit_paddings") and op.attr("explicit_paddings"):
        raise InvalidArgumentError(
            f"explicit_paddings may only be given when padding is EXPLICIT, not {padding}", node=op.name
        )
    return WindowSpec(spatial, dilations, padding, explicit, op.name)


def _dilations(op: KernelNode, layout: Layout, rank: int) -> tuple[int, ...]:
    if "dilations" not in op.node.op_def.attrs:
        return (1,) * (rank - 2)
    dilations: list[int] = list(op.attr("dilations")) or [1] * rank
    if len(dilations) != rank:
        raise InvalidArgumentError(f"dilations must have {rank} entries, not {len(dilations)}", node=op.name)
    if layout.batch_and_channel(dilations) != (1, 1):
        raise UnimplementedError("dilations over the batch and depth dimensions are not supported", node=op.name)
    spatial = layout.spatial(dilations)
    if min(spatial) <= 0:
        raise InvalidArgumentError(f"dilations must be positive, not {list(spatial)}", node=op.name)
    return spatial
