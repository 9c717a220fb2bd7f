"""Recurrent cells in one op: LSTMBlockCell, BlockLSTM, GRUBlockCell, and their gradients.

LSTM with peepholes: Gers and Schmidhuber 2000; GRU: Cho et al. 2014. float16 is computed in float32.
Shapes: x (batch, inputs), states (batch, cell), w (inputs + cell, 4 cell), peepholes (cell), b (4 cell).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from toolkit.graph import dtypes
from toolkit.kernels.cpu.common import np, require, require_rank, require_scalar, shape_text, wide
from toolkit.kernels.registry import Compute, KernelNode, kernel
from toolkit.kernels.types import Array

_TYPES = {"T": [dtypes.float16, dtypes.float32]}


def sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


@dataclass(frozen=True, slots=True)
class Lstm:
    """One cell: the settings of a node and its weights, in float32 or wider.

    Attributes:
        order: which quarter of the gates is the input gate, the new cell, the forget gate, the output gate.
    """

    w: Array
    b: Array
    peepholes: tuple[Array, Array, Array] | None
    order: str
    forget_bias: float
    clip: float

    def split(self, gates: Array) -> tuple[Array, ...]:
        """i, c, f, o from the gates side by side."""
        parts = dict(zip(self.order, np.split(gates, 4, axis=-1), strict=True))
        return parts["i"], parts["c"], parts["f"], parts["o"]

    def join(self, i: Array, c: Array, f: Array, o: Array) -> Array:
        parts = {"i": i, "c": c, "f": f, "o": o}
        return np.concatenate([parts[name] for name in self.order], axis=-1)

    def step(self, x: Array, cs_prev: Array, h_prev: Array) -> tuple[Array, ...]:
        """i, cs, f, o, ci, co, h."""
        i, c, f, o = self.split(np.concatenate([x, h_prev], axis=-1) @ self.w + self.b)
        if self.peepholes is not None:
            i = i + cs_prev * self.peepholes[0]
            f = f + cs_prev * self.peepholes[1]
        i, ci, f = sigmoid(i), np.tanh(c), sigmoid(f + np.float32(self.forget_bias))
        cs = ci * i + cs_prev * f
        if self.clip > 0:
            cs = np.clip(cs, -self.clip, self.clip).astype(cs.dtype)
        if self.peepholes is not None:
            o = o + cs * self.peepholes[2]
        o, co = sigmoid(o), np.tanh(cs)
        return i, cs, f, o, ci, co, co * o

    def back(self, cs_prev: Array, saved: tuple[Array, ...], cs_grad: Array, h_grad: Array) -> tuple[Array, ...]:
        """The gradients by the cell before, by the gates, and by the peepholes, from i, cs, f, o, ci, co."""
        i, cs, f, o, ci, co = saved
        do = o * (1 - o) * h_grad * co
        dcs = (1 - co * co) * h_grad * o + cs_grad
        if self.peepholes is not None:
            dcs = dcs + do * self.peepholes[2]
        dci, df, di = (1 - ci * ci) * dcs * i, f * (1 - f) * dcs * cs_prev, i * (1 - i) * dcs * ci
        before = dcs * f
        peeps = tuple(np.zeros(cs.shape[-1], cs.dtype) for _ in range(3))
        if self.peepholes is not None:
            before = before + di * self.peepholes[0] + df * self.peepholes[1]
            peeps = ((di * cs_prev).sum(axis=0), (df * cs_prev).sum(axis=0), (do * cs).sum(axis=0))
        return before, self.join(di, dci, df, do), *peeps


def check_lstm(x: Any, cs_prev: Any, h_prev: Any, w: Any, peepholes: Sequence[Any], b: Any,
                uses_peepholes: bool) -> None:  # fmt: skip
    """Refuse shapes that do not fit; x is one step's."""
    require_rank(cs_prev, 2, "cs_prev")
    batch, cell = cs_prev.shape
    for value, name, expected in (
        (x, "x", (batch, x.shape[-1])),
        (h_prev, "h_prev", (batch, cell)),
        (w, "w", (x.shape[-1] + cell, 4 * cell)),
        (b, "b", (4 * cell,)),
    ):
        require(value.shape == expected, f"{name} must have shape {shape_text(expected)}, got {shape_text(value)}")
    for value, name in zip(peepholes, ("wci", "wcf", "wco"), strict=True):
        require_rank(value, 1, name)
        require(not uses_peepholes or value.shape == (cell,), f"{name} must have {cell} elements, got {value.size}")


def _lstm(op: KernelNode, w: Array, peepholes: tuple[Array, Array, Array], b: Array) -> Lstm:
    wci, wcf, wco = peepholes
    is_second = "V2" in op.op
    forward = "Grad" not in op.op
    return Lstm(
        wide(w),
        wide(b),
        (wide(wci), wide(wcf), wide(wco)) if op.attr("use_peephole") else None,
        "ifco" if is_second else "icfo",
        op.attr("forget_bias") if forward and not is_second else 0.0,
        op.attr("cell_clip") if forward else 0.0,
    )


def _narrowed(values: tuple[Array, ...], dtype: Array) -> tuple[Array, ...]:
    return tuple(value.astype(dtype, copy=False) for value in values)


@kernel("LSTMBlockCell", types=_TYPES)
def lstm_block_cell(op: KernelNode) -> Compute:
    def compute(
        x: Array, cs_prev: Array, h_prev: Array, w: Array, wci: Array, wcf: Array, wco: Array, b: Array
    ) -> tuple[Array, ...]:
        require_rank(x, 2, "x")
        check_lstm(x, cs_prev, h_prev, w, (wci, wcf, wco), b, op.attr("use_peephole"))
        cell = _lstm(op, w, (wci, wcf, wco), b)
        return _narrowed(cell.step(wide(x), wide(cs_prev), wide(h_prev)), x.dtype)

    return compute


@kernel("LSTMBlockCellGrad", types=_TYPES)
def lstm_block_cell_gradient(op: KernelNode) -> Compute:
    def compute(
        x: Array, cs_prev: Array, h_prev: Array, w: Array, wci: Array, wcf: Array, wco: Array, b: Array, *rest: Array
    ) -> tuple[Array, ...]:
        require_rank(x, 2, "x")
        check_lstm(x, cs_prev, h_prev, w, (wci, wcf, wco), b, op.attr("use_peephole"))
        for value, name in zip(rest, ("i", "cs", "f", "o", "ci", "co", "cs_grad", "h_grad"), strict=True):
            require(
                value.shape == cs_prev.shape,
                f"{name} must have shape {shape_text(cs_prev)}, got {shape_text(value)}",
            )
        *saved, cs_grad, h_grad = (wide(value) for value in rest)
        cell = _lstm(op, w, (wci, wcf, wco), b)
        return _narrowed(cell.back(wide(cs_prev), tuple(saved), cs_grad, h_grad), x.dtype)

    return compute


def steps_of(seq_len_max: Array, x: Any) -> int:
    """How many steps of x (time, batch, inputs) are computed."""
    require_rank(x, 3, "x")
    require_scalar(seq_len_max, "seq_len_max")
    steps = int(seq_len_max)
    require(0 <= steps <= x.shape[0], f"seq_len_max must be in [0, {x.shape[0]}], got {steps}")
    return steps


@kernel("BlockLSTM", "BlockLSTMV2", types=_TYPES)
def block_lstm(op: KernelNode) -> Compute:
    """All steps of x (time, batch, inputs); outputs (time, batch, cell), zero from `seq_len_max` on."""

    def compute(
        seq_len_max: Array, x: Array, cs_prev: Array, h_prev: Array, w: Array, wci: Array, wcf: Array, wco: Array,
        b: Array,
    ) -> tuple[Array, ...]:  # fmt: skip
        steps = steps_of(seq_len_max, x)
        check_lstm(x[0] if len(x) else np.zeros(x.shape[1:]), cs_prev, h_prev, w, (wci, wcf, wco), b,
                    op.attr("use_peephole"))  # fmt: skip
        cell = _lstm(op, w, (wci, wcf, wco), b)
        outputs = tuple(np.zeros((x.shape[0], *cs_prev.shape), x.dtype) for _ in range(7))
        cs, h = wide(cs_prev), wide(h_prev)
        for t in range(steps):
            values = cell.step(wide(x[t]), cs, h)
            for output, value in zip(outputs, values, strict=True):
                output[t] = value
            cs, h = values[1], values[6]
        return outputs

    return compute


@kernel("BlockLSTMGrad", "BlockLSTMGradV2", types=_TYPES)
def block_lstm_gradient(op: KernelNode) -> Compute:
    def compute(
        seq_len_max: Array, x: Array, cs_prev: Array, h_prev: Array, w: Array, wci: Array, wcf: Array, wco: Array,
        b: Array, *rest: Array,
    ) -> tuple[Array, ...]:  # fmt: skip
        steps = steps_of(seq_len_max, x)
        check_lstm(x[0] if len(x) else np.zeros(x.shape[1:]), cs_prev, h_prev, w, (wci, wcf, wco), b,
                    op.attr("use_peephole"))  # fmt: skip
        expected = (x.shape[0], *cs_prev.shape)
        for value, name in zip(rest, ("i", "cs", "f", "o", "ci", "co", "h", "cs_grad", "h_grad"), strict=True):
            require(value.shape == expected, f"{name} must have shape {shape_text(expected)}, got {shape_text(value)}")
        i, cs, f, o, ci, co, h, cs_grad, h_grad = (wide(value) for value in rest)
        cell = _lstm(op, w, (wci, wcf, wco), b)
        first_cs, first_h, inputs = wide(cs_prev), wide(h_prev), wide(x)
        dx, dw, db = np.zeros_like(inputs), np.zeros_like(cell.w), np.zeros_like(cell.b)
        dcs, dh = np.zeros_like(first_cs), np.zeros_like(first_h)
        peeps = [np.zeros(cs_prev.shape[1], dcs.dtype) for _ in range(3)]
        for t in reversed(range(steps)):
            before_cs, before_h = (cs[t - 1], h[t - 1]) if t else (first_cs, first_h)
            saved = (i[t], cs[t], f[t], o[t], ci[t], co[t])
            dcs, gates, *parts = cell.back(before_cs, saved, cs_grad[t] + dcs, h_grad[t] + dh)
            both = gates @ cell.w.T
            dx[t], dh = both[:, : x.shape[2]], both[:, x.shape[2] :]
            dw += np.concatenate([inputs[t], before_h], axis=-1).T @ gates
            db += gates.sum(axis=0)
            peeps = [total + part for total, part in zip(peeps, parts, strict=True)]
        return _narrowed((dx, dcs, dh, dw, *peeps, db), x.dtype)

    return compute


def check_gru(x: Any, h_prev: Any, w_ru: Any, w_c: Any, b_ru: Any, b_c: Any) -> int:
    """Refuse shapes that do not fit; the number of inputs."""
    require_rank(x, 2, "x")
    require_rank(h_prev, 2, "h_prev")
    inputs, cell = x.shape[1], h_prev.shape[1]
    for value, name, expected in (
        (h_prev, "h_prev", (x.shape[0], cell)),
        (w_ru, "w_ru", (inputs + cell, 2 * cell)),
        (w_c, "w_c", (inputs + cell, cell)),
        (b_ru, "b_ru", (2 * cell,)),
        (b_c, "b_c", (cell,)),
    ):
        require(value.shape == expected, f"{name} must have shape {shape_text(expected)}, got {shape_text(value)}")
    return inputs


@kernel("GRUBlockCell", types={"T": [dtypes.float32]})
def gru_block_cell(op: KernelNode) -> Compute:
    """Outputs r, u, c, h."""

    def compute(x: Array, h_prev: Array, w_ru: Array, w_c: Array, b_ru: Array, b_c: Array) -> tuple[Array, ...]:
        check_gru(x, h_prev, w_ru, w_c, b_ru, b_c)
        r, u = np.split(sigmoid(np.concatenate([x, h_prev], axis=1) @ w_ru + b_ru), 2, axis=1)
        c = np.tanh(np.concatenate([x, h_prev * r], axis=1) @ w_c + b_c)
        return np.ascontiguousarray(r), np.ascontiguousarray(u), c, u * h_prev + (1 - u) * c

    return compute


@kernel("GRUBlockCellGrad", types={"T": [dtypes.float32]})
def gru_block_cell_gradient(op: KernelNode) -> Compute:
    """Outputs the gradients by x, h_prev, and what goes into c and into r and u side by side."""

    def compute(
        x: Array,
        h_prev: Array,
        w_ru: Array,
        w_c: Array,
        b_ru: Array,
        b_c: Array,
        r: Array,
        u: Array,
        c: Array,
        dh: Array,
    ) -> tuple[Array, ...]:
        inputs = check_gru(x, h_prev, w_ru, w_c, b_ru, b_c)
        for value, name in ((r, "r"), (u, "u"), (c, "c"), (dh, "d_h")):
            require(
                value.shape == h_prev.shape,
                f"{name} must have shape {shape_text(h_prev)}, got {shape_text(value)}",
            )
        d_c = dh * (1 - u) * (1 - c * c)
        by_c = d_c @ w_c.T
        d_hr = by_c[:, inputs:]
        d_ru = np.concatenate([d_hr * h_prev * r * (1 - r), dh * (h_prev - c) * u * (1 - u)], axis=1)
        by_ru = d_ru @ w_ru.T
        return by_ru[:, :inputs] + by_c[:, :inputs], by_ru[:, inputs:] + d_hr * r + dh * u, d_c, d_ru

    return compute
