"""Which kernels make the gradients of an attention, and with what numbers they are launched."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from toolkit.kernels.cuda.nn.attention_memory import TileFormat
from toolkit.kernels.cuda.nn.common import index_type_of, llvm_type
from toolkit.kernels.cuda.nn.flash_gradient import GradientShape, gradient_kernel
from toolkit.kernels.cuda.nn.flash_launch import (
    WHOLE_SIZE,
    FlashMasks,
    Strides,
    chunks_of,
    extent_of,
    is_aligned,
    lies_in_pairs,
)
from toolkit.kernels.tensors import F32

_WARPS = 4
#: by the type of numbers, up to which size of queries and values one kernel makes dk and dv; beyond that two do, which
#: compute scores once more: sums of both would not fit into registers
_TOGETHER = {"float": 64, "half": 96, "bfloat": 96}
#: how many are walked along at once where queries and values have at most `_SMALL` numbers, and where they
#: have more, or are loaded one by one, for places take registers
_SMALL, _TILES = 64, (32, 16)
_RESULTS = ("dq", "dk", "dv")
_NOTHING = FlashMasks()


def gradient_shapes(
    arrays: Sequence[Any], made: Sequence[Any], sizes: Sequence[int], strides: Sequence[Strides],
    made_strides: Sequence[Strides], *, beside: FlashMasks = _NOTHING, causal: bool = False, keeps: int = 1,
) -> list[GradientShape]:  # fmt: skip
    """The kernels that make these, in order; see `launch_gradient`."""
    batch, heads, rows, keys, size, width = sizes
    number = llvm_type(arrays[0].dtype)
    groups = heads // beside.group
    places = {
        "q": (batch, heads, rows, size), "k": (batch, groups, keys, size), "v": (batch, groups, keys, width),
        "out": (batch, heads, rows, width),
    }  # fmt: skip
    read = [places[part] for part in ("q", "k", "v", "out", "out")]
    joined = is_aligned(arrays, strides, read, TileFormat(number, joined=True).vector)
    format = TileFormat(number, joined)
    extents = [extent_of(shape, own) for shape, own in zip(read, strides, strict=True)]
    extents += [extent_of(places[part], own) for part, own in zip(("q", "k", "v"), made_strides, strict=True)]
    extents += [extent_of((batch, heads, rows, keys), own) for own in beside.strides]
    index = index_type_of(max(extents))
    together, long = max(size, width) <= _TOGETHER[number], max(size, width) > WHOLE_SIZE
    kernels = [("dq",), ("dk", "dv")] if together else [("dq",), ("dk",), ("dv",)]
    found: list[GradientShape] = []
    for results in kernels:
        own = [_RESULTS.index(name) for name in results]
        pairs = all(lies_in_pairs(made[at], made_strides[at], places["qkv"[at]]) for at in own)
        found.append(
            GradientShape(
                results,
                format,
                tuple(llvm_type(made[at].dtype) for at in own),
                size,
                width,
                _TILES[0] if joined and max(size, width) <= _SMALL else _TILES[1],
                _WARPS,
                pairs,
                beside.shape,
                causal,
                keeps,
                index,
                chunks_of(width if results == ("dv",) else size) if long else 1,
                not long or number != "float",
            )
        )
    return found


def launch_gradient(
    device: Any, arrays: Sequence[Any], made: Sequence[Any], statistics: Any, sizes: Sequence[int],
    strides: Sequence[Strides], made_strides: Sequence[Strides], scale: float, *, beside: FlashMasks = _NOTHING,
    causal: bool = False, keeps: int = 1,
) -> None:  # fmt: skip
    """The gradients of an attention (`flash_launch.launch_flash`), on the device's compute stream.

    Args:
        arrays: q, k, v, out and the gradient by out, of one type.
        made: the gradients by q, k and v, to be written; float32 or of that type.
        statistics: what the attention kept of each row, `keeps` numbers.
        sizes, scale, beside, causal: those of the attention.
        strides, made_strides: of `arrays` and of `made`, in elements.
    """
    shapes = gradient_shapes(arrays, made, sizes, strides, made_strides, beside=beside, causal=causal, keeps=keeps)
    batch, heads, rows, keys = sizes[:4]
    dots = device.empty((batch, heads, rows), F32)
    by_name: dict[str, Any] = dict(zip(("q", "k", "v", "out", "d_out", *_RESULTS), (*arrays, *made), strict=True))
    at: dict[str, Strides] = dict(zip(by_name, (*strides, *made_strides), strict=True))
    for shape in shapes:
        steps = [(at[name], shape.format.vector) for name in shape.reads]
        steps += [(at[name], 2 if shape.pairs else 1) for name in shape.results]
        given = [number for own, step in steps for number in (*(each // step for each in own[:3]), own[3])]
        buffers = [by_name[name] for name in shape.reads] + beside.arrays
        count, blocks = (rows, heads) if shape.by_queries else (keys, heads // beside.group)
        device.launch(
            gradient_kernel(shape), batch * blocks * shape.chunks * -(-count // shape.own), *buffers, statistics, dots,
            *(by_name[name] for name in shape.results), heads, rows, keys, scale, *given, *beside.numbers,
        )  # fmt: skip
