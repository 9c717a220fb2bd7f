"""Cells of recurrent networks: one step of a layer, with the variables that all steps share.

Names of variables and nodes are those of `tf.nn.rnn_cell` of TensorFlow 1: `rnn/basic_lstm_cell/kernel`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any, NamedTuple, cast

from toolkit.client.arrays import array_ops
from toolkit.client.construction.context import get_default_graph
from toolkit.client.construction.convert import DTypeLike, as_dtype, constant, convert_to_tensor
from toolkit.client.construction.scopes import name_scope
from toolkit.client.construction.tensor import Tensor
from toolkit.client.gradients.common import known_value
from toolkit.client.math import clip_ops, math_ops
from toolkit.client.nn import nn_ops
from toolkit.client.structures import nest
from toolkit.client.variables import initializers
from toolkit.client.variables.base import BaseVariable
from toolkit.client.variables.store import VariableScope, get_variable, get_variable_scope, variable_scope
from toolkit.errors import GraphError, UsageError
from toolkit.graph import dtypes
from toolkit.graph.shape import Shape


class LSTMStateTuple(NamedTuple):
    """The state of an LSTM: what the cell keeps, and what it puts out."""

    c: Any
    h: Any

    @property
    def dtype(self) -> Any:
        """The type of both.

        Raises:
            GraphError: they differ.
        """
        if self.c.dtype is not self.h.dtype:
            raise GraphError(f"the parts of an LSTM's state have types {self.c.dtype} and {self.h.dtype}")
        return self.c.dtype


Activation = Callable[[Tensor], Tensor]


def joined_shape(prefix: Any, suffix: Any) -> Tensor:
    """The shape [*prefix, *suffix] as a tensor; both are numbers, lists of sizes, or int32 tensors."""
    return array_ops.concat((_sizes(prefix), _sizes(suffix)), 0)


def joined_static_shape(prefix: Any, suffix: Any) -> Shape:
    """What is known of `joined_shape`. TensorFlow makes the nodes of both parts as well, so they are made here."""
    for part in (prefix, suffix):
        if isinstance(part, Tensor) or _static_sizes(part).is_fully_defined:
            _sizes(part)
    return plain_joined_shape(prefix, suffix)


def plain_joined_shape(prefix: Any, suffix: Any) -> Shape:
    """What is known of `joined_shape`, without any node."""
    return _static_sizes(prefix).concatenate(_static_sizes(suffix))


def _sizes(part: Any) -> Tensor:
    if isinstance(part, Tensor):
        return array_ops.expand_dims(part, 0) if part.static_shape.rank == 0 else part
    known = _static_sizes(part)
    if not known.is_fully_defined:
        raise UsageError(f"a shape with unknown sizes, {known}, cannot be put together; give a tensor")
    return constant(known.as_list(), dtypes.int32)


def _static_sizes(part: Any) -> Shape:
    if isinstance(part, Tensor):
        value = known_value(part)
        if value is None:
            return Shape([None]) if part.static_shape.rank == 0 else Shape(None)
        return Shape(cast("Any", value) if isinstance(value, list) else [value])
    if isinstance(part, Shape):
        return part
    return Shape(cast("Any", part) if isinstance(part, list | tuple) else [part])


def size_of(tensor: Tensor, axis: int) -> Any:
    """The size along an axis: a number where it is known, else an int32 scalar."""
    shape = tensor.static_shape
    known = shape[axis] if shape.rank is not None else None
    return known or array_ops.shape(tensor)[axis]


def zeros_of(size: Any, batch_size: Any, dtype: DTypeLike) -> Any:
    """Zeros [batch, *size] for each size of a structure."""

    def made(one: Any) -> Tensor:
        zeros = array_ops.zeros(joined_shape(batch_size, one), dtype)
        zeros.set_shape(joined_static_shape(batch_size, one))
        return zeros

    return nest.map_structure(made, size)


class RNNCell:
    """One step: `output, new_state = cell(inputs, state)`.

    A subclass has `state_size` and `output_size` (numbers, shapes or structures of them) and `call(inputs, state)`,
    which makes its variables by `get_variable`, or overrides `build(inputs_shape)`, called once before, and makes
    them by `add_variable`.
    """

    def __init__(
        self,
        trainable: bool = True,
        name: str | None = None,
        dtype: DTypeLike = None,
        _reuse: bool | None = None,
        **kwargs: Any,
    ):
        self.trainable = trainable
        self.built = False
        self._dtype = None if dtype is None else as_dtype(dtype)
        self._label = name or _snake_case(type(self).__name__)
        self._scope: VariableScope | None = None
        self._reuse = _reuse
        self._variables: list[BaseVariable] = []
        if kwargs:
            raise UsageError(f"{type(self).__name__} has no option {', '.join(sorted(kwargs))}")

    # -- what a subclass says --------------------------------------------------------------------------------------

    @property
    def state_size(self) -> Any:
        """The size of the state without its batch axis."""
        raise NotImplementedError("a cell needs state_size")

    @property
    def output_size(self) -> Any:
        """The size of the output without its batch axis."""
        raise NotImplementedError("a cell needs output_size")

    def call(self, inputs: Any, state: Any) -> tuple[Any, Any]:
        """The output and the new state of one step."""
        raise NotImplementedError("a cell needs call(inputs, state)")

    def build(self, inputs_shape: Shape) -> None:
        """Make the variables."""
        self.built = True

    # -- what it is ------------------------------------------------------------------------------------------------

    @property
    def name(self) -> str:
        return self._label

    @property
    def dtype(self) -> Any:
        return self._dtype

    @property
    def scope_name(self) -> str:
        """The variable scope; empty before the first call."""
        return "" if self._scope is None else self._scope.name

    @property
    def variables(self) -> list[BaseVariable]:
        return list(self._variables)

    weights = variables

    @property
    def trainable_variables(self) -> list[BaseVariable]:
        return [v for v in self._variables if v.trainable] if self.trainable else []

    trainable_weights = trainable_variables

    # -- using it --------------------------------------------------------------------------------------------------

    def __call__(self, inputs: Any, state: Any, scope: Any = None) -> tuple[Any, Any]:
        """One step.

        Args:
            inputs: [batch, size], or a structure.
            state: of `state_size`, with a batch axis before.
            scope: the variable scope, for the first call; default: the class's name.
        """
        with variable_scope(get_variable_scope() if scope is None else scope) as around:
            return self._step(inputs, state, around if scope is not None else None)

    def _step(self, inputs: Any, state: Any, scope: Any) -> tuple[Any, Any]:
        self._open(scope)
        assert self._scope is not None
        reuse = True if self.built and self._shares else self._reuse
        with (
            variable_scope(self._scope, reuse=reuse, auxiliary_name_scope=False) as entered,
            get_default_graph().name_scope(entered.original_name_scope or None) if self._named else nullcontext(),
        ):
            if not self.built:
                first = nest.flatten(inputs)
                if self._dtype is None and first:
                    self._dtype = convert_to_tensor(first[0]).dtype.base
                self.build(convert_to_tensor(first[0]).static_shape if first else Shape(None))
                self.built = True
            return self.call(inputs, state)

    #: whether later calls may only find variables
    _shares = True
    _named = True

    def _open(self, scope: Any) -> None:
        if self._scope is not None:
            return
        given = scope if scope is not None else None
        if self._reuse:
            with variable_scope(given if given is not None else self._label) as opened:
                self._scope = opened
        else:
            with variable_scope(given, default_name=self._label) as opened:
                self._scope = opened

    def add_variable(self, name: str, shape: Sequence[int], dtype: DTypeLike = None, initializer: Any = None) -> Any:
        """A variable of the cell in the scope that is open: a new one, or what an earlier step has made."""
        made = get_variable(
            name, shape, dtype or self._dtype or dtypes.float32, initializer, trainable=self.trainable,
        )  # fmt: skip
        if not any(made is each for each in self._variables):
            self._variables.append(made)
        return made

    add_weight = add_variable

    def zero_state(self, batch_size: Any, dtype: DTypeLike) -> Any:
        """Zeros of the state's size, for `batch_size` (a number or an int32 scalar) rows."""
        with name_scope(None, type(self).__name__ + "ZeroState", [batch_size]):
            return zeros_of(self.state_size, batch_size, dtype)

    def get_initial_state(self, inputs: Any = None, batch_size: Any = None, dtype: DTypeLike = None) -> Any:
        """Zeros for the batch size and type of `inputs`, or for those given.

        Raises:
            UsageError: neither says the batch size and the type.
        """
        if inputs is not None:
            tensor = convert_to_tensor(inputs, name="inputs")
            batch_size, dtype = array_ops.shape(tensor)[0], tensor.dtype.base
        if batch_size is None or dtype is None:
            raise UsageError("get_initial_state needs inputs, or batch_size and dtype")
        return self.zero_state(batch_size, dtype)


def _snake_case(name: str) -> str:
    apart = re.sub(r"(.)([A-Z][a-z0-9]+)", r"\1_\2", name)
    lower = re.sub(r"([a-z])([A-Z])", r"\1_\2", apart).lower()
    return "private" + lower if lower.startswith("_") else lower


def _width(shape: Shape, cell: RNNCell) -> int:
    size = None if not shape.rank else shape[-1]
    if size is None:
        raise GraphError(f"'{cell.name}' needs inputs whose last size is known; their shape is {shape}")
    return size


def _activation(given: Any, default: Activation) -> Activation:
    if given is None:
        return default
    if isinstance(given, str):
        found = getattr(nn_ops, given, None) or getattr(math_ops, given, None)
        if found is None:
            raise UsageError(f"there is no activation '{given}'; give a function, or a name such as 'tanh' or 'relu'")
        return found
    return given


class LayerRNNCell(RNNCell):
    """A cell that makes its variables in `build`: they stand in the cell's own scope, without another around it."""

    def __init__(self, trainable: bool = True, name: str | None = None, dtype: DTypeLike = None, **kwargs: Any):
        super().__init__(trainable, name, dtype, **kwargs)

    def __call__(self, inputs: Any, state: Any, scope: Any = None) -> tuple[Any, Any]:
        return self._step(inputs, state, scope)


class _OneStateCell(LayerRNNCell):
    """A cell whose state is what it puts out."""

    def __init__(self, num_units: int, activation: Any, **kwargs: Any):
        super().__init__(**kwargs)
        self._num_units = num_units
        self._activation = _activation(activation, math_ops.tanh)

    @property
    def state_size(self) -> int:
        return self._num_units

    @property
    def output_size(self) -> int:
        return self._num_units


class BasicRNNCell(_OneStateCell):
    """output = state = activation(W [input, state] + b)."""

    def __init__(
        self, num_units: int, activation: Any = None, reuse: bool | None = None, name: str | None = None,
        dtype: DTypeLike = None, **kwargs: Any,
    ):  # fmt: skip
        super().__init__(num_units, activation, name=name, dtype=dtype, _reuse=reuse, **kwargs)

    def build(self, inputs_shape: Shape) -> None:
        units = self._num_units
        self._kernel = self.add_variable("kernel", [_width(inputs_shape, self) + units, units])
        self._bias = self.add_variable("bias", [units], initializer=initializers.Zeros())

    def call(self, inputs: Any, state: Any) -> tuple[Any, Any]:
        gates = math_ops.matmul(array_ops.concat([inputs, state], 1), self._kernel)
        output = self._activation(nn_ops.bias_add(gates, self._bias))
        return output, output


class GRUCell(_OneStateCell):
    """Cho et al. (arXiv 1406.1078): a reset and an update gate."""

    def __init__(
        self, num_units: int, activation: Any = None, reuse: bool | None = None, kernel_initializer: Any = None,
        bias_initializer: Any = None, name: str | None = None, dtype: DTypeLike = None, **kwargs: Any,
    ):  # fmt: skip
        super().__init__(num_units, activation, name=name, dtype=dtype, _reuse=reuse, **kwargs)
        self._kernel_initializer, self._bias_initializer = kernel_initializer, bias_initializer

    def build(self, inputs_shape: Shape) -> None:
        units = self._num_units
        rows = _width(inputs_shape, self) + units
        ones, zeros = initializers.Constant(1.0), initializers.Zeros()
        given = self._bias_initializer
        self._gate_kernel = self.add_variable("gates/kernel", [rows, 2 * units], initializer=self._kernel_initializer)
        self._gate_bias = self.add_variable("gates/bias", [2 * units], initializer=ones if given is None else given)
        self._kernel = self.add_variable("candidate/kernel", [rows, units], initializer=self._kernel_initializer)
        self._bias = self.add_variable("candidate/bias", [units], initializer=zeros if given is None else given)

    def call(self, inputs: Any, state: Any) -> tuple[Any, Any]:
        gates = math_ops.matmul(array_ops.concat([inputs, state], 1), self._gate_kernel)
        both = math_ops.sigmoid(nn_ops.bias_add(gates, self._gate_bias))
        reset, update = array_ops.split(both, 2, 1)
        kept = reset * state
        candidate = math_ops.matmul(array_ops.concat([inputs, kept], 1), self._kernel)
        fresh = self._activation(nn_ops.bias_add(candidate, self._bias))
        output = update * state + (1 - update) * fresh
        return output, output


class BasicLSTMCell(LayerRNNCell):
    """Zaremba et al. (arXiv 1409.2329): an LSTM without peepholes, clipping or projection.

    Args:
        forget_bias: added to the forget gate, so that a new cell forgets little.
        state_is_tuple: the state is an LSTMStateTuple, else one tensor [batch, 2 * units].
    """

    def __init__(
        self, num_units: int, forget_bias: float = 1.0, state_is_tuple: bool = True, activation: Any = None,
        reuse: bool | None = None, name: str | None = None, dtype: DTypeLike = None, **kwargs: Any,
    ):  # fmt: skip
        super().__init__(name=name, dtype=dtype, _reuse=reuse, **kwargs)
        self._num_units = num_units
        self._forget_bias = forget_bias
        self._state_is_tuple = state_is_tuple
        self._activation = _activation(activation, math_ops.tanh)

    @property
    def state_size(self) -> Any:
        units = self._num_units
        return LSTMStateTuple(units, units) if self._state_is_tuple else 2 * units

    @property
    def output_size(self) -> int:
        return self._num_units

    def build(self, inputs_shape: Shape) -> None:
        units = self._num_units
        self._kernel = self.add_variable("kernel", [_width(inputs_shape, self) + units, 4 * units])
        self._bias = self.add_variable("bias", [4 * units], initializer=initializers.Zeros())

    def call(self, inputs: Any, state: Any) -> tuple[Any, Any]:
        axis = constant(1, dtypes.int32)
        c, h = state if self._state_is_tuple else array_ops.split(state, 2, axis)
        gates = math_ops.matmul(array_ops.concat([inputs, h], 1), self._kernel)
        gates = nn_ops.bias_add(gates, self._bias)
        i, j, f, o = array_ops.split(gates, 4, axis)
        bias = constant(self._forget_bias, f.dtype.base)
        kept = _times(c, math_ops.sigmoid(_plus(f, bias)))
        new_c = _plus(kept, _times(math_ops.sigmoid(i), self._activation(j)))
        new_h = _times(self._activation(new_c), math_ops.sigmoid(o))
        following = LSTMStateTuple(new_c, new_h) if self._state_is_tuple else array_ops.concat([new_c, new_h], 1)
        return new_h, following


def _plus(x: Tensor, y: Tensor) -> Tensor:
    return math_ops.add(x, y)


def _times(x: Tensor, y: Tensor) -> Tensor:
    return math_ops.multiply(x, y)


class LSTMCell(LayerRNNCell):
    """Sak et al. (arXiv 1402.1128): an LSTM, if wanted with peepholes, clipping and a projection of its output.

    Args:
        use_peepholes: gates see the cell's state.
        cell_clip: bound of the cell's state.
        initializer: of all weights.
        num_proj, proj_clip: the size of the projected output, and its bound.
        num_unit_shards, num_proj_shards: no longer of any effect; use a partitioner of the variable scope.
    """

    def __init__(
        self, num_units: int, use_peepholes: bool = False, cell_clip: float | None = None, initializer: Any = None,
        num_proj: int | None = None, proj_clip: float | None = None, num_unit_shards: int | None = None,
        num_proj_shards: int | None = None, forget_bias: float = 1.0, state_is_tuple: bool = True,
        activation: Any = None, reuse: bool | None = None, name: str | None = None, dtype: DTypeLike = None,
        **kwargs: Any,
    ):  # fmt: skip
        super().__init__(name=name, dtype=dtype, _reuse=reuse, **kwargs)
        self._num_units, self._num_proj = num_units, num_proj
        self._use_peepholes = use_peepholes
        self._cell_clip, self._proj_clip = cell_clip, proj_clip
        self._num_unit_shards, self._num_proj_shards = num_unit_shards, num_proj_shards
        self._initializer = initializer
        self._forget_bias = forget_bias
        self._state_is_tuple = state_is_tuple
        self._activation = _activation(activation, math_ops.tanh)

    @property
    def state_size(self) -> Any:
        sizes = self._num_units, self._num_proj or self._num_units
        return LSTMStateTuple(*sizes) if self._state_is_tuple else sum(sizes)

    @property
    def output_size(self) -> int:
        return self._num_proj or self._num_units

    @property
    def _state_size(self) -> Any:
        return self.state_size

    @property
    def _output_size(self) -> int:
        return self.output_size

    def build(self, inputs_shape: Shape) -> None:
        units, rows = self._num_units, _width(inputs_shape, self) + self.output_size
        weights = self._initializer
        self._kernel = self.add_variable("kernel", [rows, 4 * units], initializer=weights)
        self._bias = self.add_variable("bias", [4 * units], initializer=initializers.Zeros())
        if self._use_peepholes:
            self._diagonals = [self.add_variable(f"w_{g}_diag", [units], initializer=weights) for g in "fio"]
        if self._num_proj is not None:
            self._projection = self.add_variable("projection/kernel", [units, self._num_proj], initializer=weights)

    def call(self, inputs: Any, state: Any) -> tuple[Any, Any]:
        units = self._num_units
        if self._state_is_tuple:
            c, m = state
        else:
            c = array_ops.slice(state, [0, 0], [-1, units])
            m = array_ops.slice(state, [0, units], [-1, self.output_size])
        gates = math_ops.matmul(array_ops.concat([inputs, m], 1), self._kernel)
        gates = nn_ops.bias_add(gates, self._bias)
        i, j, f, o = array_ops.split(gates, 4, 1)
        sigmoid = math_ops.sigmoid
        forget, enter, leave = self._diagonals if self._use_peepholes else (None, None, None)
        if self._use_peepholes:
            kept = sigmoid(f + self._forget_bias + forget * c) * c
            new_c = kept + sigmoid(i + enter * c) * self._activation(j)
        else:
            kept = sigmoid(f + self._forget_bias) * c
            new_c = kept + sigmoid(i) * self._activation(j)
        if self._cell_clip is not None:
            new_c = clip_ops.clip_by_value(new_c, -self._cell_clip, self._cell_clip)
        if self._use_peepholes:
            new_m = sigmoid(o + leave * new_c) * self._activation(new_c)
        else:
            new_m = sigmoid(o) * self._activation(new_c)
        if self._num_proj is not None:
            new_m = math_ops.matmul(new_m, self._projection)
            if self._proj_clip is not None:
                new_m = clip_ops.clip_by_value(new_m, -self._proj_clip, self._proj_clip)
        following = LSTMStateTuple(new_c, new_m) if self._state_is_tuple else array_ops.concat([new_c, new_m], 1)
        return new_m, following


class MultiRNNCell(RNNCell):
    """Cells one upon another: the output of each is the input of the next.

    Raises:
        UsageError: there are no cells; states that are tuples cannot be joined into one tensor.
    """

    _shares = False

    def __init__(self, cells: Sequence[RNNCell], state_is_tuple: bool = True):
        super().__init__()
        if not isinstance(cells, list | tuple) or not cells:
            raise UsageError("MultiRNNCell needs a list of at least one cell")
        self._cells = list(cells)
        self._state_is_tuple = state_is_tuple
        if not state_is_tuple and any(nest.is_nested(cell.state_size) for cell in self._cells):
            raise UsageError("some cells have states that are tuples; with them, state_is_tuple must be True")

    @property
    def state_size(self) -> Any:
        sizes = tuple(cell.state_size for cell in self._cells)
        return sizes if self._state_is_tuple else sum(sizes)

    @property
    def output_size(self) -> Any:
        return self._cells[-1].output_size

    @property
    def variables(self) -> list[BaseVariable]:
        return [v for cell in self._cells for v in cell.variables]

    def zero_state(self, batch_size: Any, dtype: DTypeLike) -> Any:
        with name_scope(None, type(self).__name__ + "ZeroState", [batch_size]):
            if self._state_is_tuple:
                return tuple(cell.zero_state(batch_size, dtype) for cell in self._cells)
            return zeros_of(self.state_size, batch_size, dtype)

    def call(self, inputs: Any, state: Any) -> tuple[Any, Any]:
        if self._state_is_tuple and (not nest.is_nested(state) or len(state) != len(self._cells)):
            raise UsageError(f"the state of {len(self._cells)} cells is a tuple of as many, not {state!r}")
        start = 0
        following: list[Any] = []
        for number, cell in enumerate(self._cells):
            with variable_scope(f"cell_{number}"):
                if self._state_is_tuple:
                    own = state[number]
                else:
                    own = array_ops.slice(state, [0, start], [-1, cell.state_size])
                    start += cell.state_size
                inputs, new = cell(inputs, own)
                following.append(new)
        return inputs, tuple(following) if self._state_is_tuple else array_ops.concat(following, 1)
