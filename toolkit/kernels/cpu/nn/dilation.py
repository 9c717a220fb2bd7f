"""Grey-scale dilation: y[n, p, c] = max over taps t of x[n, p stride + t rate - pad, c] + filter[t, c]."""

from __future__ import annotations

from typing import Any

from toolkit.kernels.cpu.common import np, require, require_rank, shape_text
from toolkit.kernels.cpu.nn.pool import lowest
from toolkit.kernels.cpu.nn.window import Windows, WindowSpec
from toolkit.kernels.registry import REAL, Compute, KernelNode, kernel
from toolkit.kernels.types import Array

_TYPES = {"T": REAL}


def dilation_spec(op: KernelNode) -> WindowSpec:
    """The windows of a node.

    Raises:
        InvalidArgumentError: its attributes are none.
    """
    both: list[tuple[int, ...]] = []
    for name in ("strides", "rates"):
        values: list[int] = list(op.attr(name))
        require(len(values) == 4, f"{name} must have 4 entries, not {len(values)}")
        require(values[0] == 1 and values[3] == 1, f"{name} must be 1 in batch and depth, not {values}")
        require(min(values) > 0, f"{name} must be positive, not {values}")
        both.append(tuple(values[1:3]))
    return WindowSpec(both[0], both[1], op.text("padding"), (), op.name)


def dilation_windows(spec: WindowSpec, x: Any, w: Any) -> Windows:
    """The windows over an input.

    Raises:
        InvalidArgumentError: input and filter do not fit.
    """
    require_rank(x, 4, "input")
    require_rank(w, 3, "filter")
    require(x.shape[3] == w.shape[2], f"input and filter must have the same depth: {x.shape[3]} vs {w.shape[2]}")
    return spec.over(x.shape[1:3], w.shape[:2])


def _best(x: Array, w: Array, windows: Windows) -> tuple[Array, Array]:
    """The maxima and which tap (row-major) has each first; taps in the padding do not count."""
    shape = (x.shape[0], *windows.out, x.shape[3])
    best, tap_of = np.full(shape, lowest(x.dtype), x.dtype), np.full(shape, -1, np.int64)
    padded = windows.pad(x)
    inside = np.zeros((1, *windows.padded_shape(1, 1)[1:-1], 1), bool)
    inside[windows.interior] = True
    for number, (tap, where) in enumerate(windows.taps()):
        value = padded[where] + w[tap]
        better = ((value > best) | (tap_of < 0)) & inside[where]
        np.copyto(best, value, where=better)
        np.copyto(tap_of, number, where=better)
    return best, tap_of


@kernel("Dilation2D", types=_TYPES)
def dilation(op: KernelNode) -> Compute:
    spec = dilation_spec(op)

    def compute(x: Array, w: Array) -> Array:
        return _best(x, w, dilation_windows(spec, x, w))[0]

    return compute


def check_backprop(windows: Windows, x: Any, dy: Any) -> None:
    """Refuse gradients that are none of the outputs.

    Raises:
        InvalidArgumentError: they have another shape.
    """
    expected = (x.shape[0], *windows.out, x.shape[3])
    require(dy.shape == expected, f"out_backprop must have shape {shape_text(expected)}, got {shape_text(dy)}")


def _gradient_setup(spec: WindowSpec, x: Array, w: Array, dy: Array) -> tuple[Windows, Array]:
    windows = dilation_windows(spec, x, w)
    check_backprop(windows, x, dy)
    return windows, _best(x, w, windows)[1]


@kernel("Dilation2DBackpropInput", types=_TYPES)
def dilation_backprop_input(op: KernelNode) -> Compute:
    """Each output's gradient goes to the input that gave the maximum."""
    spec = dilation_spec(op)

    def compute(x: Array, w: Array, dy: Array) -> Array:
        windows, tap_of = _gradient_setup(spec, x, w, dy)
        dx = np.zeros(windows.padded_shape(x.shape[0], x.shape[3]), dy.dtype)
        for number, (_, where) in enumerate(windows.taps()):
            dx[where] += np.where(tap_of == number, dy, dy.dtype.type(0))
        return np.ascontiguousarray(dx[windows.interior])

    return compute


@kernel("Dilation2DBackpropFilter", types=_TYPES)
def dilation_backprop_filter(op: KernelNode) -> Compute:
    """Each output's gradient goes to the filter's tap that gave the maximum."""
    spec = dilation_spec(op)

    def compute(x: Array, w: Array, dy: Array) -> Array:
        windows, tap_of = _gradient_setup(spec, x, w, dy)
        dw = np.zeros(w.shape, dy.dtype)
        for number, (tap, _) in enumerate(windows.taps()):
            dw[tap] = np.where(tap_of == number, dy, dy.dtype.type(0)).sum(axis=(0, 1, 2), dtype=dy.dtype)
        return dw

    return compute
