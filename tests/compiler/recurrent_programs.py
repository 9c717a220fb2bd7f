"""Recurrent programs made of a number: cells, wrappers, loops, lengths, with or without gradients."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tests.compiler.layers import normal
from toolkit import client as gm
from toolkit.client.gradients import gradients
from toolkit.client.recurrent import rnn, rnn_cell, wrappers
from toolkit.client.recurrent.cells import fused, gated, lstm

CELLS: dict[str, Callable[[int], Any]] = {
    "basic rnn": rnn_cell.BasicRNNCell,
    "basic lstm": rnn_cell.BasicLSTMCell,
    "lstm": lambda units: rnn_cell.LSTMCell(units, use_peepholes=True, num_proj=max(units // 2, 1)),
    "gru": rnn_cell.GRUCell,
    "lstm block": lambda units: fused.LSTMBlockCell(units, use_peephole=True),
    "gru block": fused.GRUBlockCellV2,
    "cudnn gru": fused.CudnnCompatibleGRUCell,
    "layer norm": lambda units: lstm.LayerNormBasicLSTMCell(units, norm_gain=0.9),
    "coupled": lstm.CoupledInputForgetGateLSTMCell,
    "nas": gated.NASCell,
    "ugrnn": gated.UGRNNCell,
    "sru": gated.SRUCell,
    "ind rnn": gated.IndRNNCell,
    "indy lstm": gated.IndyLSTMCell,
    "indy gru": gated.IndyGRUCell,
}
LOOPS = ("dynamic", "batch first", "static", "both ways", "raw", "decided")


@dataclass(frozen=True)
class Program:
    """What a number stands for.

    Attributes:
        cells: of the layers, the first one below.
        loop: what repeats them.
        wrapped: around each cell.
        lengths: "none", "known" or "fed".
        learns: gradients are asked for.
        sizes: steps, batch, inputs and units.
    """

    cells: tuple[str, ...]
    loop: str
    wrapped: str
    lengths: str
    learns: bool
    sizes: tuple[int, int, int, int]

    @staticmethod
    def of(seed: int) -> Program:
        """Drawn by a number."""
        rng = np.random.default_rng(seed)

        def one(names: Any) -> str:
            return str(names[int(rng.integers(len(names)))])

        cells = tuple(one(sorted(CELLS)) for _ in range(int(rng.choice([1, 1, 1, 2]))))
        sizes = tuple(int(rng.integers(low, high)) for low, high in ((1, 7), (1, 4), (1, 6), (1, 7)))
        return Program(
            cells, one(LOOPS), one(("none", "none", "dropout", "residual")), one(("none", "known", "fed")),
            bool(rng.integers(2)), (sizes[0], sizes[1], sizes[2], sizes[3]),
        )  # fmt: skip

    def _is_square(self, number: int) -> bool:
        """Whether a layer gives as many numbers as it is given: one above another, neither of which projects."""
        return number > 0 and "lstm" not in self.cells[number - 1 : number + 1]

    def cell(self) -> Any:
        """A cell of all layers."""
        units = self.sizes[3]
        made = [CELLS[name](units) for name in self.cells]
        if self.wrapped == "dropout":
            made = [wrappers.DropoutWrapper(each, output_keep_prob=0.75, seed=7) for each in made]
        made = [
            wrappers.ResidualWrapper(each) if self.wrapped == "residual" and self._is_square(number) else each
            for number, each in enumerate(made)
        ]
        return made[0] if len(made) == 1 else rnn_cell.MultiRNNCell(made)

    def build(self) -> tuple[list[Any], list[Any], Callable[[int], list[Any]]]:
        """Nodes of the default graph.

        Returns:
            the placeholders, what is fetched, and what is fed in a step of some number.
        """
        steps, batch, inputs, _ = self.sizes
        rng = np.random.default_rng(steps * 100 + batch)
        known = rng.integers(0, steps + 1, (4, batch)).astype(np.int32)
        gm.set_random_seed(3)  # some cells have initial values of their own
        x = gm.placeholder(gm.float32, [steps, batch, inputs])
        placeholders, lengths = [x], None
        if self.loop not in ("raw", "decided"):
            if self.lengths == "known":
                lengths = gm.constant(known[0])
            elif self.lengths == "fed":
                lengths = gm.placeholder(gm.int32, [batch])
                placeholders.append(lengths)
        with gm.variable_scope("program", initializer=_numbers):
            made = [each for each in gm.nest.flatten(self._looped(x, lengths)) if each.dtype.is_floating]
        if self.learns:
            loss = gm.add_n([gm.reduce_sum(gm.square(each)) for each in made])
            wanted = gradients([loss], [x, *gm.trainable_variables()])
            made += [each for each in wanted if each is not None]

        def fed(step: int) -> list[Any]:
            numbers = normal(steps, batch, inputs, seed=step)
            return [numbers] if len(placeholders) == 1 else [numbers, known[step % len(known)]]

        return placeholders, made, fed

    def _looped(self, x: Any, lengths: Any) -> Any:
        steps, batch, *_ = self.sizes
        if self.loop == "static":
            return rnn.static_rnn(self.cell(), gm.unstack(x), dtype=gm.float32, sequence_length=lengths)
        if self.loop == "both ways":
            return rnn.bidirectional_dynamic_rnn(
                self.cell(), self.cell(), x, lengths, dtype=gm.float32, time_major=True
            )
        if self.loop == "batch first":
            return rnn.dynamic_rnn(self.cell(), gm.transpose(x, [1, 0, 2]), lengths, dtype=gm.float32)
        if self.loop == "dynamic":
            return rnn.dynamic_rnn(self.cell(), x, lengths, dtype=gm.float32, time_major=True)
        cell, rows = self.cell(), gm.TensorArray(gm.float32, steps).unstack(x)
        start = cell.zero_state(batch, gm.float32)
        flat = gm.nest.flatten(start)

        def goes_on(time: Any, *states: Any) -> Any:
            left = time < steps
            if self.loop == "raw":
                return left
            return gm.ops.logical_and(left, gm.reduce_sum(gm.square(states[0])) < 1.0)

        def body(time: Any, *states: Any) -> Any:
            _, after = cell(rows.read(time), gm.nest.pack_sequence_as(start, list(states)))
            return [time + 1, *gm.nest.flatten(after)]

        return gm.while_loop(goes_on, body, [gm.constant(0), *flat])[1:]


def _numbers(shape: Any, dtype: Any = None, partition_info: Any = None, **_: Any) -> Any:
    """Initial values that are the same in every session."""
    sizes = tuple(int(size) for size in shape)
    return gm.constant(normal(*sizes, seed=len(sizes)) / np.float32(max(sizes[0], 1) ** 0.5))
