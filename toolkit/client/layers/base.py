"""What all layers do: names and scopes, variables, losses and updates, reuse."""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar, Self, cast

from toolkit.client.construction import session_stack
from toolkit.client.construction.context import get_default_graph
from toolkit.client.construction.convert import DTypeLike, as_dtype, as_shape, convert_to_tensor
from toolkit.client.construction.graph import Graph
from toolkit.client.construction.scopes import name_scope
from toolkit.client.construction.tensor import Tensor
from toolkit.client.math import math_ops
from toolkit.client.nn import nn_ops
from toolkit.client.structures import nest
from toolkit.client.trackables import Trackable
from toolkit.client.variables.store import VariableScope, get_variable, variable_scope
from toolkit.errors import UsageError
from toolkit.graph import dtypes
from toolkit.graph.metagraph import GraphKeys
from toolkit.graph.shape import Shape

Activation = Callable[[Tensor], Tensor]


class InputSpec:
    """What a layer takes: a number of axes (`ndim`, `min_ndim`, `max_ndim`), sizes (`shape`; `axes`: axis to size)."""

    def __init__(
        self, dtype: Any = None, shape: Any = None, ndim: int | None = None, max_ndim: int | None = None,
        min_ndim: int | None = None, axes: dict[int, int | None] | None = None,
    ):  # fmt: skip
        self.dtype = None if dtype is None else as_dtype(dtype).name
        self.shape = shape
        self.ndim = len(shape) if shape is not None else ndim
        self.max_ndim, self.min_ndim = max_ndim, min_ndim
        self.axes = {int(axis): size for axis, size in (axes or {}).items()}

    def check(self, shape: Shape, layer: str) -> None:
        """Refuse an input that is known not to fit.

        Raises:
            ValueError: it does not.
        """
        rank = shape.rank
        start = f"layer {layer} takes inputs of "
        if rank is not None:
            end = f" dimensions, not of shape {shape}"
            if self.ndim is not None and rank != self.ndim:
                raise ValueError(f"{start}{self.ndim}{end}")
            if self.max_ndim is not None and rank > self.max_ndim:
                raise ValueError(f"{start}at most {self.max_ndim}{end}")
            if self.min_ndim is not None and rank < self.min_ndim:
                raise ValueError(f"{start}at least {self.min_ndim}{end}")
            for axis, size in self.axes.items():
                found = shape[axis]
                if size is not None and found not in (size, None):
                    raise ValueError(f"{start}size {size} along axis {axis}, not of shape {shape}")

    def __repr__(self) -> str:
        given = {key: value for key, value in vars(self).items() if value}
        return f"InputSpec({', '.join(f'{key}={value}' for key, value in given.items())})"


def snake_case(name: str) -> str:
    """`MaxPooling2D` -> `max_pooling2d`, as layers are called after their classes."""
    apart = re.sub(r"(.)([A-Z][a-z0-9]+)", r"\1_\2", name)
    lower = re.sub(r"([a-z])([A-Z])", r"\1_\2", apart).lower()
    return "private" + lower if lower.startswith("_") else lower


def activation_of(given: Any) -> Activation | None:
    """An activation from a function, a name, or None (and "linear") for none.

    Raises:
        UsageError: no function has the name.
    """
    if given is None or given == "linear":
        return None
    if isinstance(given, str):
        found = getattr(nn_ops, given, None) or getattr(math_ops, given, None)
        if found is None:
            raise UsageError(f"there is no activation '{given}'; give a function, or a name such as 'tanh' or 'relu'")
        return found
    return given


class Layer(Trackable):
    """A layer: `layer(inputs)` makes its variables the first time and applies it; later calls share them.

    A subclass overrides `build(input_shape)`, which makes variables by `add_weight`, and `call(inputs)`.

    Args:
        trainable: whether variables go to TRAINABLE_VARIABLES.
        name: of its variable scope; default: the class's name in snake case, made unique.
        dtype: of variables; default: the first input's.
    """

    _UNTRACKED: ClassVar[frozenset[str]] = frozenset({"_weights", "_losses", "_updates", "_calls"})

    def __init__(self, trainable: bool = True, name: str | None = None, dtype: DTypeLike = None, **kwargs: Any):
        scope = kwargs.pop("_scope", None)
        self._reuse: bool | None = kwargs.pop("_reuse", None)
        self._activity_regularizer = kwargs.pop("activity_regularizer", None)
        for key in kwargs:
            if key not in ("input_shape", "batch_input_shape", "batch_size", "weights", "autocast", "dynamic"):
                raise TypeError(f"a layer has no option '{key}'")
        self.trainable = trainable
        self.built = False
        self.stateful = False
        self.supports_masking = False
        self.input_spec: InputSpec | None = None
        self._dtype = None if dtype is None else as_dtype(dtype)
        self._base_name = name or snake_case(type(self).__name__)
        self._name = name or _unique_name(self._base_name)
        self._scope: VariableScope | None = None
        self._weights: list[Any] = []
        self._losses: list[Any] = []
        self._updates: list[Any] = []
        self._graph: Graph | None = None
        self._calls: list[tuple[Any, Any]] = []
        if scope is not None:
            with variable_scope(scope) as opened:
                self._scope = opened

    # -- what a subclass says --------------------------------------------------------------------------------------

    def build(self, input_shape: Any) -> None:
        """Make the variables; `input_shape` is the shape of the first call's inputs."""
        self.built = True

    def call(self, inputs: Any, **kwargs: Any) -> Any:
        """The layer applied."""
        return inputs

    def compute_output_shape(self, input_shape: Any) -> Any:
        """The shape of what `call` returns."""
        raise NotImplementedError(f"{type(self).__name__} does not say the shape of its output")

    # -- what it is ------------------------------------------------------------------------------------------------

    @property
    def name(self) -> str:
        return self._name

    @property
    def dtype(self) -> Any:
        return None if self._dtype is None else self._dtype.name

    @property
    def graph(self) -> Graph | None:
        return self._graph

    @property
    def scope_name(self) -> str:
        """The variable scope.

        Raises:
            ValueError: the layer has not been called yet.
        """
        if self._scope is None:
            raise ValueError(f"layer {self._name} has no scope before it is first called")
        return self._scope.name

    @property
    def trainable_weights(self) -> list[Any]:
        return [v for v in self._weights if v.trainable] if self.trainable else []

    @property
    def non_trainable_weights(self) -> list[Any]:
        kept = self.trainable_weights
        return [v for v in self._weights if not any(v is other for other in kept)]

    @property
    def weights(self) -> list[Any]:
        return self.trainable_weights + self.non_trainable_weights

    trainable_variables = trainable_weights
    non_trainable_variables = non_trainable_weights
    variables = weights

    @property
    def losses(self) -> list[Any]:
        return list(self._losses)

    @property
    def updates(self) -> list[Any]:
        return list(self._updates)

    @property
    def activity_regularizer(self) -> Any:
        return self._activity_regularizer

    @property
    def input(self) -> Any:
        return self._only_call()[0]

    @property
    def output(self) -> Any:
        return self._only_call()[1]

    @property
    def input_shape(self) -> Any:
        return tuple(nest.flatten(self.input)[0].static_shape)

    @property
    def output_shape(self) -> Any:
        return tuple(nest.flatten(self.output)[0].static_shape)

    def _only_call(self) -> tuple[Any, Any]:
        if len(self._calls) != 1:
            raise AttributeError(f"Layer {self._name} has been called {len(self._calls)} times; expected once")
        return self._calls[0]

    def count_params(self) -> int:
        """How many numbers its variables hold.

        Raises:
            ValueError: they are not made yet.
        """
        if not self.built:
            raise ValueError(f"layer {self._name} has no weights to count before it is first called")
        return sum(v.static_shape.num_elements for v in self._weights)

    def get_weights(self) -> list[Any]:
        """The values of its variables in the default session."""
        graph = get_default_graph()
        session: Any = session_stack.session_for(None, graph, f"get_weights of '{self._name}'")
        return session.run(self.weights)

    def set_weights(self, weights: Sequence[Any]) -> None:
        """Give its variables values, in the default session.

        Raises:
            ValueError: there are more or fewer than variables.
        """
        if len(weights) != len(self.weights):
            raise ValueError(f"layer {self._name} has {len(self.weights)} weights, {len(weights)} are given")
        session: Any = session_stack.session_for(None, get_default_graph(), f"set_weights of '{self._name}'")
        for variable, value in zip(self.weights, weights, strict=True):
            session.run(variable.initializer, {variable.initializer.inputs[1]: value})

    def get_config(self) -> dict[str, Any]:
        return {"name": self._name, "trainable": self.trainable, "dtype": self.dtype}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Self:
        return cls(**config)

    # -- using it --------------------------------------------------------------------------------------------------

    def __call__(self, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        """Apply the layer.

        Args:
            scope: the variable scope, for the first call.
        """
        scope = kwargs.pop("scope", None)
        flat = nest.flatten(inputs)
        graph = next((each.graph for each in flat if isinstance(getattr(each, "graph", None), Graph)), None)
        here = self._graph = graph or get_default_graph()
        with here.as_default():
            self._open(scope)
            assert self._scope is not None
            reuse = True if self.built else self._reuse
            with (
                variable_scope(self._scope, reuse=reuse, auxiliary_name_scope=False) as entered,
                here.name_scope(entered.original_name_scope or None),
            ):
                if self.input_spec is not None:
                    inputs = nest.map_structure(convert_to_tensor, inputs)
                    flat = nest.flatten(inputs)
                    self.input_spec.check(flat[0].static_shape, self._name)
                if not self.built:
                    self._build(flat)
                outputs = self.call(inputs, *args, **kwargs)
                self._regularize_activity(inputs, outputs)
        self._calls.append((inputs, outputs))
        return outputs

    apply = __call__

    def _build(self, flat: list[Any]) -> None:
        known = [each for each in flat if isinstance(each, Tensor) or hasattr(each, "dtype")]
        if self._dtype is None and known:
            self._dtype = convert_to_tensor(known[0]).dtype.base
        shapes = [self._shown(convert_to_tensor(each).static_shape) for each in known]
        self.build(shapes[0] if len(shapes) == 1 else shapes)
        self.built = True

    def _shown(self, shape: Shape) -> Any:
        """A shape as programs see it."""
        return (self._graph or get_default_graph()).present_shape(shape)

    def _open(self, scope: Any = None) -> None:
        if self._scope is not None:
            return
        if self._reuse:
            with variable_scope(scope if scope is not None else self._base_name) as opened:
                self._scope = opened
        else:
            with variable_scope(scope, default_name=self._base_name) as opened:
                self._scope = opened

    def add_weight(
        self, name: str, shape: Any, dtype: DTypeLike = None, initializer: Any = None, regularizer: Any = None,
        trainable: bool | None = None, constraint: Any = None, use_resource: bool | None = None,
        synchronization: Any = None, aggregation: Any = None, partitioner: Any = None, **kwargs: Any,
    ) -> Any:  # fmt: skip
        """A variable of the layer, made in its scope.

        Args:
            trainable: default: as the layer.
            regularizer: a function of the variable, whose result is a loss of the layer.
        """
        self._open()
        assert self._scope is not None
        graph = get_default_graph()
        reuse = True if self.built else self._reuse
        wanted = dtype or self._dtype or dtypes.float32
        with (
            variable_scope(self._scope, reuse=reuse, auxiliary_name_scope=False) as entered,
            graph.name_scope(entered.original_name_scope or None),
        ):
            before = len(graph.get_collection_ref(GraphKeys.GLOBAL_VARIABLES))
            made = get_variable(
                name, shape, wanted, initializer, trainable=(trainable is not False) and self.trainable,
                constraint=constraint, use_resource=use_resource or entered.use_resource, partitioner=partitioner,
            )  # fmt: skip
            self._weights.append(made)
            is_new = len(graph.get_collection_ref(GraphKeys.GLOBAL_VARIABLES)) > before
            if regularizer is not None and is_new:
                for part in getattr(made, "parts", None) or [made]:
                    with name_scope(name + "/Regularizer"):
                        loss = regularizer(part)
                    if loss is not None:
                        self.add_loss(loss)
        return made

    @contextmanager
    def _whole(self) -> Generator[None]:
        """Variables are made in one piece, whatever the scope's partitioner."""
        self._open()
        assert self._scope is not None
        partitioner = self._scope.partitioner
        self._scope.set_partitioner(None)
        try:
            yield
        finally:
            self._scope.set_partitioner(partitioner)

    def add_variable(self, *args: Any, **kwargs: Any) -> Any:
        """`add_weight` by its older name."""
        return self.add_weight(*args, **kwargs)

    def add_loss(self, losses: Any, inputs: Any = None) -> None:
        """Keep losses, in REGULARIZATION_LOSSES as well."""
        self._keep(self._losses, GraphKeys.REGULARIZATION_LOSSES, losses)

    def add_update(self, updates: Any, inputs: Any = None) -> None:
        """Keep operations to run with each training step, in UPDATE_OPS as well."""
        self._keep(self._updates, GraphKeys.UPDATE_OPS, updates)

    def _keep(self, own: list[Any], collection: str, given: Any) -> None:
        graph = get_default_graph()
        each: Any
        for each in cast("Any", given) if isinstance(given, list | tuple) else [given]:
            own.append(each)
            if not any(each is other for other in graph.get_collection_ref(collection)):
                graph.add_to_collection(collection, each)

    def get_losses_for(self, inputs: Any) -> list[Any]:
        return self.losses

    def get_updates_for(self, inputs: Any) -> list[Any]:
        return self.updates

    def _regularize_activity(self, inputs: Any, outputs: Any) -> None:
        if self._activity_regularizer is None:
            return
        from toolkit.client.arrays import array_ops

        with name_scope("ActivityRegularizer"):
            for output in nest.flatten(outputs):
                loss = self._activity_regularizer(output)
                batch = math_ops.cast(array_ops.shape(output)[0], loss.dtype.base)
                self.add_loss(loss / batch)

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """A layer like this one, with the same variables."""
        made = type(self).__new__(type(self))
        made.__dict__.update(self.__dict__)
        return made


def _unique_name(base: str) -> str:
    """`base_1`, `base_2`, ... in the order in which layers of a graph are made."""
    counts: dict[str, int] = get_default_graph().extras.setdefault(__name__, {})
    counts[base] = counts.get(base, 0) + 1
    return f"{base}_{counts[base]}"


def last_size(shape: Any) -> int | None:
    """The size of the last axis of a shape, if it is known."""
    plain = as_shape(shape)
    return plain[-1] if plain.rank else None
