"""ExtractImagePatches and ExtractVolumePatches: every window laid out along the depth."""

from __future__ import annotations

from collections.abc import Callable

from toolkit.errors import OutOfRangeError, UnimplementedError
from toolkit.graph import dtypes
from toolkit.kernels.cpu.common import np, require, require_rank
from toolkit.kernels.cpu.nn.window import Windows, WindowSpec
from toolkit.kernels.registry import COMPLEX, REAL, Compute, KernelNode, kernel
from toolkit.kernels.types import Array


def _spatial(op: KernelNode, name: str, rank: int) -> tuple[int, ...]:
    values: list[int] = list(op.attr(name))
    require(len(values) == rank, f"{name} must have {rank} entries, not {len(values)}")
    if values[0] != 1 or values[-1] != 1:
        raise UnimplementedError(f"{name} must be 1 in batch and depth, not {values}", node=op.name)
    if min(values) <= 0:
        raise OutOfRangeError(f"{name} must be positive, not {values}", node=op.name)
    return tuple(values[1:-1])


def _covered(sizes: tuple[int, ...], window: tuple[int, ...], strides: tuple[int, ...]) -> tuple[slice, ...]:
    """The part that windows in the middle of a volume cover.

    Strides over the window's size can leave part of a volume uncovered; TensorFlow takes half of it in front.
    """
    parts = [slice(None)]
    for n, k, s in zip(sizes, window, strides, strict=True):
        length = (-(-n // s) - 1) * s + k
        start = max(n - length, 0) // 2
        parts.append(slice(start, start + length) if length < n else slice(None))
    return tuple(parts)


def patch_windows(
    op: KernelNode,
) -> tuple[int, tuple[int, ...], Callable[[tuple[int, ...]], tuple[tuple[slice, ...], Windows]]]:
    """The rank of images, the window, and a function of spatial sizes: which part of an input counts, and the windows
    over that.

    Raises:
        InvalidArgumentError, OutOfRangeError, UnimplementedError: the attributes are no windows.
    """
    rank = 4 if op.op == "ExtractImagePatches" else 5
    window, strides = _spatial(op, "ksizes", rank), _spatial(op, "strides", rank)
    rates = _spatial(op, "rates", rank) if rank == 4 else (1,) * 3
    spec = WindowSpec(strides, rates, op.text("padding"), (), op.name)

    def find(sizes: tuple[int, ...]) -> tuple[tuple[slice, ...], Windows]:
        covered = (slice(None),) * (rank - 1)
        if rank == 5 and spec.padding == "SAME":
            covered = _covered(sizes, window, strides)
            sizes = tuple(len(range(n)[part]) for n, part in zip(sizes, covered[1:], strict=True))
        return covered, spec.over(sizes, window)

    return rank, window, find


@kernel("ExtractImagePatches", types={"T": REAL | COMPLEX | {dtypes.bool_}})
@kernel("ExtractVolumePatches", types={"T": REAL})
def extract_patches(op: KernelNode) -> Compute:
    """(N, spatial..., C) to (N, out..., window x C): windows in row-major order, channels innermost."""
    rank, window, find = patch_windows(op)

    def compute(x: Array) -> Array:
        require_rank(x, rank, "input")
        covered, windows = find(x.shape[1:-1])
        x = x[covered]
        if 0 in windows.out or x.size == 0:
            return np.zeros((x.shape[0], *windows.out, int(np.prod(window)) * x.shape[-1]), x.dtype)
        padded = np.ascontiguousarray(windows.pad(x))
        return windows.view(padded).reshape(x.shape[0], *windows.out, -1)

    return compute
