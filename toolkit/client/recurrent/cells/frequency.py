"""LSTMs along time and frequency (Li et al., 2015; Sainath, Li, 2016): a row of features is cut into windows."""

from __future__ import annotations

import collections
from collections.abc import Sequence
from typing import Any

from toolkit.client.arrays import array_ops
from toolkit.client.construction.tensor import Tensor
from toolkit.client.math import clip_ops, math_ops
from toolkit.client.nn import nn_ops
from toolkit.client.recurrent.cells.linear import last_size, sharded
from toolkit.client.recurrent.rnn_cell import RNNCell, size_of
from toolkit.client.variables.initializers import Zeros
from toolkit.client.variables.store import variable_scope
from toolkit.errors import UsageError


class TimeFreqLSTMCell(RNNCell):
    """One LSTM that goes over windows of the features, and over time.

    Args:
        feature_size, frequency_skip: the size of a window, and how far the next one is.
        use_peepholes, cell_clip, forget_bias: as in LSTMCell.
        num_unit_shards: in how many variables the weights are.
    """

    def __init__(
        self, num_units: int, use_peepholes: bool = False, cell_clip: float | None = None, initializer: Any = None,
        num_unit_shards: int = 1, forget_bias: float = 1.0, feature_size: Any = None, frequency_skip: int = 1,
        reuse: bool | None = None,
    ):  # fmt: skip
        super().__init__(_reuse=reuse)
        self._num_units, self._peepholes, self._clip = num_units, use_peepholes, cell_clip
        self._shards, self._forget_bias = num_unit_shards, forget_bias
        self._window, self._skip = feature_size, frequency_skip

    @property
    def output_size(self) -> int:
        return self._num_units

    @property
    def state_size(self) -> int:
        return 2 * self._num_units

    def call(self, inputs: Any, state: Any) -> tuple[Any, Any]:
        units, kind, sigmoid, tanh = self._num_units, inputs.dtype.base, math_ops.sigmoid, math_ops.tanh
        count = int((last_size(inputs) - self._window) / self._skip) + 1
        windows = [array_ops.slice(inputs, [0, i * self._skip], [-1, self._window]) for i in range(count)]
        weights = sharded(self, "W", [self._window + 2 * units, 4 * units], kind, self._shards)
        bias = self.add_variable("B", [4 * units], kind, Zeros())
        diagonals: list[Any] = []
        if self._peepholes:
            diagonals = [self.add_variable(f"W_{gate}_diag", [units], kind) for gate in "FIO"]
        below = array_ops.zeros(array_ops.stack([size_of(inputs, 0), units]), kind)
        outputs: list[Tensor] = []
        states: list[Tensor] = []
        for number, window in enumerate(windows):
            c = array_ops.slice(state, [0, 2 * number * units], [-1, units])
            m = array_ops.slice(state, [0, (2 * number + 1) * units], [-1, units])
            joined = array_ops.concat([window, m, below], 1)
            i, j, f, o = array_ops.split(nn_ops.bias_add(math_ops.matmul(joined, weights), bias), 4, 1)
            if diagonals:
                forget, enter, leave = diagonals
                new_c = sigmoid(f + self._forget_bias + forget * c) * c + sigmoid(i + enter * c) * tanh(j)
            else:
                leave, new_c = None, sigmoid(f + self._forget_bias) * c + sigmoid(i) * tanh(j)
            if self._clip is not None:
                new_c = clip_ops.clip_by_value(new_c, -self._clip, self._clip)
            below = sigmoid(o if leave is None else o + leave * new_c) * tanh(new_c)
            outputs.append(below)
            states += [new_c, below]
        return (outputs[0] if count == 1 else array_ops.concat(outputs, 1)), array_ops.concat(states, 1)


class GridLSTMCell(RNNCell):
    """Two LSTMs at once, one along frequency and one along time (Kalchbrenner et al., arXiv 1507.01526).

    Args:
        share_time_frequency_weights: both have the same weights.
        feature_size, frequency_skip: the size of a window of the features, and how far the next one is.
        num_frequency_blocks: how many windows there are, a list with a number for each block.
        start_freqindex_list, end_freqindex_list: where blocks begin and end.
        couple_input_forget_gates: an LSTM takes in as much as it forgets.
        state_is_tuple: the state is a named tuple, else one tensor.

    Raises:
        UsageError: the blocks are not given, or are not those of the inputs.
    """

    def __init__(
        self, num_units: int, use_peepholes: bool = False, share_time_frequency_weights: bool = False,
        cell_clip: float | None = None, initializer: Any = None, num_unit_shards: int = 1, forget_bias: float = 1.0,
        feature_size: Any = None, frequency_skip: Any = None, num_frequency_blocks: Sequence[int] | None = None,
        start_freqindex_list: Sequence[int] | None = None, end_freqindex_list: Sequence[int] | None = None,
        couple_input_forget_gates: bool = False, state_is_tuple: bool = True, reuse: bool | None = None,
    ):  # fmt: skip
        super().__init__(_reuse=reuse)
        if num_frequency_blocks is None:
            raise UsageError("a grid LSTM needs num_frequency_blocks, a list of how many windows each block has")
        self._num_units, self._peepholes, self._shared = num_units, use_peepholes, share_time_frequency_weights
        self._clip, self._shards, self._forget_bias = cell_clip, num_unit_shards, forget_bias
        self._window, self._skip = feature_size, frequency_skip
        self._blocks = [int(count) for count in num_frequency_blocks]
        self._starts, self._ends = start_freqindex_list, end_freqindex_list
        self._coupled, self._state_is_tuple = couple_input_forget_gates, state_is_tuple
        self._tuple: Any = self._named("GridLSTMStateTuple", ["state"]) if state_is_tuple else None

    def _named(self, name: str, prefixes: Sequence[str]) -> Any:
        fields = [
            f"{prefix}_f{window:02d}_b{block:02d}_{part}"
            for prefix in prefixes for block, count in enumerate(self._blocks) for window in range(count)
            for part in "cm"
        ]  # fmt: skip
        return collections.namedtuple(name, fields)  # pyright: ignore[reportUntypedNamedTuple] (known only now)

    @property
    def output_size(self) -> int:
        return self._num_units * sum(self._blocks) * 2

    @property
    def state_size(self) -> Any:
        if not self._state_is_tuple:
            return self.output_size
        return self._tuple(*[self._num_units] * (2 * sum(self._blocks)))

    @property
    def state_tuple_type(self) -> Any:
        return self._tuple

    def call(self, inputs: Any, state: Any) -> tuple[Any, Any]:
        outputs: list[Tensor] = []
        states: list[Tensor] = []
        for block, windows in enumerate(self._windows(inputs)):
            self._along(windows, block, state, size_of(inputs, 0), "state", outputs, states)
        following = self._tuple(*states) if self._state_is_tuple else array_ops.concat(states, 1)
        return array_ops.concat(outputs, 1), following

    def _windows(self, inputs: Tensor, offset: int = 0) -> list[list[Tensor]]:
        """The windows of each block, shifted by an offset, beyond which there are zeros."""
        size = last_size(inputs)
        if offset:
            beside = [0, offset] if offset > 0 else [-offset, 0]
            inputs, offset = array_ops.pad(inputs, [[0, 0], beside]), max(offset, 0)
        starts, ends = (self._starts, self._ends) if self._starts else ([0], [size])
        ends = ends or []
        if not len(starts) == len(ends) == len(self._blocks):
            raise UsageError(
                f"num_frequency_blocks has {len(self._blocks)} blocks, the lists of where they start and end have "
                f"{len(starts)} and {len(ends)}"
            )
        found: list[list[Tensor]] = []
        for start, end, count in zip(starts, ends, self._blocks, strict=True):
            there = int((end - start - self._window) / self._skip) + 1
            if there != count:
                raise UsageError(f"num_frequency_blocks says {count} windows of a block that has {there}")
            places = [start + offset + i * self._skip for i in range(count)]
            found.append([array_ops.slice(inputs, [0, place], [-1, self._window]) for place in places])
        return found

    def _diagonals(self, block: int, kind: Any) -> dict[str, Any]:
        if not self._peepholes:
            return {}
        gates = "IO" if self._coupled else "FIO"
        names = [f"{gate}_diag_freq{of}" for gate in gates for of in "ft"]
        if not self._shared:
            names += [f"{gate}_diag_time{of}" for gate in gates for of in "ft"]
        return {name: self.add_variable(f"W_{name}_{block}", [self._num_units], kind) for name in names}

    def _along(
        self, windows: list[Tensor], block: int, state: Any, batch: Any, prefix: str, outputs: list[Tensor],
        states: list[Tensor],
    ) -> None:  # fmt: skip
        """One step of all windows of a block; adds to outputs and states."""
        units, kind, tanh = self._num_units, windows[0].dtype.base, math_ops.tanh
        gates = 3 if self._coupled else 4
        rows = last_size(windows[0]) + 2 * units
        weights: dict[str, Any] = {}
        for direction in "f" if self._shared else "ft":
            kernel = sharded(self, f"W_{direction}_{block}", [rows, gates * units], kind, self._shards)
            weights[direction] = kernel, self.add_variable(f"B_{direction}_{block}", [gates * units], kind, Zeros())
        diagonals = self._diagonals(block, kind)

        def opened(x: Tensor, gate: str, direction: str, along: Tensor, past: Tensor) -> Tensor:
            which = "freq" if self._shared else direction
            name = f"{gate}_diag_{which}"
            if diagonals:
                x = x + diagonals[name + "f"] * along + diagonals[name + "t"] * past
            return math_ops.sigmoid(x)

        m_freq = array_ops.zeros(array_ops.stack([batch, units]), kind)
        c_freq = array_ops.zeros(array_ops.stack([batch, units]), kind)
        for number, window in enumerate(windows):
            if self._state_is_tuple:
                name = f"{prefix}_f{number:02d}_b{block:02d}"
                c_time, m_time = getattr(state, name + "_c"), getattr(state, name + "_m")
            else:
                c_time = array_ops.slice(state, [0, 2 * number * units], [-1, units])
                m_time = array_ops.slice(state, [0, (2 * number + 1) * units], [-1, units])
            joined = array_ops.concat([window, m_time, m_freq], 1)
            parts: dict[str, Any] = {}
            for direction, (kernel, bias) in weights.items():
                made = array_ops.split(nn_ops.bias_add(math_ops.matmul(joined, kernel), bias), gates, 1)
                parts[direction] = [made[0], made[1], None, made[2]] if self._coupled else made
            new: dict[str, tuple[Tensor, Tensor]] = {}
            for direction, before in (("freq", c_freq), ("time", c_time)):
                i, j, f, o = parts["f" if self._shared else direction[0]]
                enter = opened(i, "I", direction, c_freq, c_time)
                keep = (
                    1.0 - enter if f is None else opened(f + self._forget_bias, "F", direction, c_freq, c_time)
                )  # fmt: skip
                c = keep * before + enter * tanh(j)
                if self._clip is not None:
                    c = clip_ops.clip_by_value(c, -self._clip, self._clip)
                new[direction] = c, o
            (c_freq, o_freq), (c_time, o_time) = new["freq"], new["time"]
            m_freq = opened(o_freq, "O", "freq", c_freq, c_time) * tanh(c_freq)
            m_time = opened(o_time, "O", "time", c_freq, c_time) * tanh(c_time)
            states += [c_time, m_time]
            outputs += [m_time, m_freq]


class BidirectionalGridLSTMCell(GridLSTMCell):
    """A grid LSTM in both directions of frequency; `backward_slice_offset` shifts the windows of the second."""

    def __init__(
        self, num_units: int, use_peepholes: bool = False, share_time_frequency_weights: bool = False,
        cell_clip: float | None = None, initializer: Any = None, num_unit_shards: int = 1, forget_bias: float = 1.0,
        feature_size: Any = None, frequency_skip: Any = None, num_frequency_blocks: Sequence[int] | None = None,
        start_freqindex_list: Sequence[int] | None = None, end_freqindex_list: Sequence[int] | None = None,
        couple_input_forget_gates: bool = False, backward_slice_offset: int = 0, reuse: bool | None = None,
    ):  # fmt: skip
        super().__init__(
            num_units, use_peepholes, share_time_frequency_weights, cell_clip, initializer, num_unit_shards,
            forget_bias, feature_size, frequency_skip, num_frequency_blocks, start_freqindex_list, end_freqindex_list,
            couple_input_forget_gates, True, reuse,
        )  # fmt: skip
        self._offset = int(backward_slice_offset)
        self._tuple = self._named("BidirectionalGridLSTMStateTuple", ["fwd_state", "bwd_state"])

    @property
    def output_size(self) -> int:
        return 2 * super().output_size

    @property
    def state_size(self) -> Any:
        return self._tuple(*[self._num_units] * (4 * sum(self._blocks)))

    def call(self, inputs: Any, state: Any) -> tuple[Any, Any]:
        batch = size_of(inputs, 0)
        forwards = self._windows(inputs)
        backwards = self._windows(inputs, self._offset) if self._offset else forwards
        outputs: list[Tensor] = []
        states: list[Tensor] = []
        for scope, blocks, order in (("fwd", forwards, 1), ("bwd", backwards, -1)):
            with variable_scope(scope):
                for block, windows in enumerate(blocks):
                    self._along(windows[::order], block, state, batch, f"{scope}_state", outputs, states)
        return array_ops.concat(outputs, 1), self._tuple(*states)
