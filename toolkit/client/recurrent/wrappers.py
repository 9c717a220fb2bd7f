"""Cells around cells: dropout, residual connections, devices. Variables stay where the inner cell has them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any, cast

from toolkit.client import ops
from toolkit.client.arrays import array_ops
from toolkit.client.construction.convert import DTypeLike, convert_to_tensor
from toolkit.client.construction.scopes import device as placed_on
from toolkit.client.construction.scopes import name_scope
from toolkit.client.construction.tensor import Tensor, TensorLike
from toolkit.client.flow.tensor_array import TensorArray
from toolkit.client.gradients.common import known_value
from toolkit.client.math import math_ops
from toolkit.client.nn import nn_ops
from toolkit.client.random import random_ops
from toolkit.client.recurrent.rnn_cell import LSTMStateTuple, RNNCell
from toolkit.client.structures import nest
from toolkit.client.variables.base import BaseVariable
from toolkit.errors import GraphError, UsageError
from toolkit.graph.shape import Shape


class _Wrapper(RNNCell):
    """What wrappers share: sizes, variables and states are the inner cell's."""

    def __init__(self, cell: Any):
        super().__init__()
        if not callable(cell) or not hasattr(cell, "state_size") or not hasattr(cell, "output_size"):
            raise UsageError(f"{type(self).__name__} takes a cell, not {cell!r}")
        self._cell: Any = cell

    @property
    def wrapped_cell(self) -> Any:
        return self._cell

    @property
    def state_size(self) -> Any:
        return self._cell.state_size

    @property
    def output_size(self) -> Any:
        return self._cell.output_size

    @property
    def variables(self) -> list[BaseVariable]:
        return self._cell.variables

    def zero_state(self, batch_size: Any, dtype: DTypeLike) -> Any:
        with name_scope(None, type(self).__name__ + "ZeroState", [batch_size]):
            return self._cell.zero_state(batch_size, dtype)

    def __call__(self, inputs: Any, state: Any, scope: Any = None) -> tuple[Any, Any]:
        raise NotImplementedError


def _filter(state: Any) -> Any:
    """Which parts of a state dropout goes to: not to what an LSTM keeps, and not to arrays."""
    if isinstance(state, LSTMStateTuple):
        return LSTMStateTuple(c=False, h=True)
    return not isinstance(state, TensorArray)


class DropoutWrapper(_Wrapper):
    """Dropout of a cell's inputs, outputs and state.

    Args:
        input_keep_prob, output_keep_prob, state_keep_prob: numbers in (0, 1], or tensors.
        variational_recurrent: the same elements are dropped in all steps (Gal and Ghahramani, arXiv 1512.05287);
            needs `dtype`, and `input_size` when inputs are dropped.
        seed: of the random numbers.
        dropout_state_filter_visitor: says of a state, or of a structure's part, whether dropout goes there.

    Raises:
        UsageError: a number outside of (0, 1], or what variational dropout needs is missing.
    """

    def __init__(
        self,
        cell: Any,
        input_keep_prob: TensorLike = 1.0,
        output_keep_prob: TensorLike = 1.0,
        state_keep_prob: TensorLike = 1.0,
        variational_recurrent: bool = False,
        input_size: Any = None,
        dtype: DTypeLike = None,
        seed: int | None = None,
        dropout_state_filter_visitor: Callable[[Any], Any] | None = None,
    ):
        super().__init__(cell)
        if dropout_state_filter_visitor is not None and not callable(dropout_state_filter_visitor):
            raise UsageError("dropout_state_filter_visitor must be a function")
        self._visitor = dropout_state_filter_visitor or _filter
        self._seed = seed
        given = {"input": input_keep_prob, "state": state_keep_prob, "output": output_keep_prob}
        for what, value in given.items():
            setattr(self, f"_{what}_keep_prob", _probability(what, value))
        self._variational_recurrent, self._input_size = variational_recurrent, input_size
        self._noise: dict[str, Any] = {}
        if not variational_recurrent:
            return
        if dtype is None:
            raise UsageError("variational dropout needs dtype")
        sizes = {"input": input_size, "state": cell.state_size, "output": cell.output_size}
        if self._drops("input") and input_size is None:
            raise UsageError("variational dropout of inputs needs input_size")
        for what in ("input", "state", "output"):
            if what == "input" and not self._drops("input"):
                continue
            self._noise[what] = self._noises(what, sizes[what], dtype)

    def _noises(self, what: str, sizes: Any, dtype: DTypeLike) -> Any:
        def noise(number: int, size: Any) -> Tensor:
            shape = array_ops.concat(([1], _as_shape(size).as_list()), 0)
            return random_ops.random_uniform(shape, seed=self._salted(what, number), dtype=dtype)

        return [noise(i, size) for i, size in enumerate(nest.flatten(sizes))]

    def _drops(self, what: str) -> bool:
        keep = getattr(self, f"_{what}_keep_prob")
        return not isinstance(keep, float) or keep < 1

    def _salted(self, what: str, number: int) -> int | None:
        """The seed of one of the dropouts, which must differ."""
        if self._seed is None:
            return None
        text = f"{self._seed}{what}_{number}".encode()
        return int(hashlib.md5(text, usedforsecurity=False).hexdigest()[:8], 16) & 0x7FFFFFFF

    def __call__(self, inputs: Any, state: Any, scope: Any = None) -> tuple[Any, Any]:
        if self._drops("input"):
            inputs = self._dropped("input", inputs, inputs)
        output, following = self._cell(inputs, state, scope) if scope is not None else self._cell(inputs, state)
        if self._drops("state"):
            chosen = nest.get_traverse_shallow_structure(self._visitor, following)
            following = self._dropped("state", following, chosen)
        if self._drops("output"):
            output = self._dropped("output", output, output)
        return output, following

    def _dropped(self, what: str, values: Any, chosen: Any) -> Any:
        keep = getattr(self, f"_{what}_keep_prob")
        flat = nest.flatten_up_to(chosen, values)
        wanted = nest.flatten(chosen)
        out: list[Any] = []
        for number, (value, go) in enumerate(zip(flat, wanted, strict=True)):
            if isinstance(go, bool) and not go:
                out.append(value)
            elif self._noise:
                kept = ops.floor(keep + self._noise[what][number])
                dropped = math_ops.divide(value, keep) * kept
                dropped.set_shape(value.static_shape)
                out.append(dropped)
            else:
                out.append(nn_ops.dropout(value, rate=1.0 - keep, seed=self._salted(what, number)))
        return nest.pack_sequence_as(chosen, out)


def _as_shape(size: Any) -> Shape:
    return Shape(cast("Any", size) if isinstance(size, list | tuple) else [size])


def _probability(what: str, value: TensorLike) -> Any:
    tensor = convert_to_tensor(value)
    known = known_value(tensor)
    if known is None:
        return tensor
    if not 0 < known <= 1:
        raise UsageError(f"{what}_keep_prob must be in (0, 1], not {known}")
    return float(known)


class ResidualWrapper(_Wrapper):
    """The inputs added to the outputs, or what `residual_fn(inputs, outputs)` makes of them."""

    def __init__(self, cell: Any, residual_fn: Callable[[Any, Any], Any] | None = None):
        super().__init__(cell)
        self._residual_fn = residual_fn

    def __call__(self, inputs: Any, state: Any, scope: Any = None) -> tuple[Any, Any]:
        output, following = self._cell(inputs, state, scope) if scope is not None else self._cell(inputs, state)
        return (self._residual_fn or _sum)(inputs, output), following


def _sum(inputs: Any, outputs: Any) -> Any:
    nest.assert_same_structure(inputs, outputs)
    for a, b in zip(nest.flatten(inputs), nest.flatten(outputs), strict=True):
        if not a.static_shape.is_compatible_with(b.static_shape):
            raise GraphError(f"a residual cell puts out {b.static_shape} for inputs of shape {a.static_shape}")
    return nest.map_structure(lambda a, b: a + b, inputs, outputs)


class DeviceWrapper(_Wrapper):
    """A cell on a device."""

    def __init__(self, cell: Any, device: Any):
        super().__init__(cell)
        self._device = device

    def zero_state(self, batch_size: Any, dtype: DTypeLike) -> Any:
        with name_scope(None, type(self).__name__ + "ZeroState", [batch_size]), self._here():
            return self._cell.zero_state(batch_size, dtype)

    def _here(self) -> Any:
        return nullcontext() if self._device is None else placed_on(self._device)

    def __call__(self, inputs: Any, state: Any, scope: Any = None) -> tuple[Any, Any]:
        with self._here():
            return self._cell(inputs, state, scope) if scope is not None else self._cell(inputs, state)
