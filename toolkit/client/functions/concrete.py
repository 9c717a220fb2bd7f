"""A function for one kind of arguments, as one node calls it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from toolkit.client.construction.context import get_default_graph
from toolkit.client.construction.create import create_op
from toolkit.client.construction.graph import Graph
from toolkit.client.construction.tensor import Tensor
from toolkit.client.functions.argument_kinds import fitting, packed, places
from toolkit.client.functions.graph import FunctionGraph
from toolkit.client.functions.ordering import READ_ONLY, only_read
from toolkit.client.functions.trace import TracedFunction
from toolkit.client.structures import nest
from toolkit.client.structures.type_specs import TensorSpec
from toolkit.errors import ArgumentTypeError


class ConcreteFunction:
    """A function for one kind of arguments, in one graph.

    Attributes:
        structured_input_signature: (positional, keywords): a TensorSpec for each tensor, other arguments as they are.
        structured_outputs: what the Python function returned, with the tensors of `graph`.
        variables: those that the graph around has and the function reads or writes.
    """

    def __init__(
        self,
        traced: TracedFunction,
        given: tuple[tuple[Any, ...], dict[str, Any]],
        variables: list[Any],
        names: Mapping[str, Any],
    ):
        self._traced = traced
        self.structured_input_signature = given
        self.structured_outputs = packed(traced.structure, traced.results)
        self.variables = tuple(variables)
        self._only_read = only_read(self.inputs)
        tensors = iter(self.graph.args)
        self._other_names: dict[str, str] = {}  # where an argument is one tensor, whose spec has a name of its own
        for name, value in names.items():
            own = [next(tensors).op.name for _ in places(value)]
            if len(own) == 1:
                self._other_names[name] = own[0]

    @property
    def name(self) -> bytes:
        """In the library of the graph around."""
        return self._traced.name.encode()

    @property
    def graph(self) -> FunctionGraph:
        return self._traced.graph

    @property
    def function_def(self) -> Any:
        """The FunctionDef."""
        return self.graph.core.library.function(self._traced.name)

    @property
    def inputs(self) -> list[Tensor]:
        """The arguments, then what stands for tensors of the graph around."""
        return [*self.graph.args, *(self.graph.captured[tensor] for tensor in self.captured_inputs)]

    @property
    def outputs(self) -> list[Tensor]:
        return self._traced.results

    @property
    def captured_inputs(self) -> list[Tensor]:
        """Tensors of the graph around that each call hands in."""
        return self._traced.captured

    @property
    def trainable_variables(self) -> tuple[Any, ...]:
        return tuple(variable for variable in self.variables if variable.trainable)

    @property
    def output_dtypes(self) -> Any:
        def of(tensor: Any) -> Any:
            return None if tensor is None else tensor.dtype

        return nest.map_structure(of, self.structured_outputs)

    @property
    def output_shapes(self) -> Any:
        def of(tensor: Any) -> Any:
            return None if tensor is None else tensor.shape

        return nest.map_structure(of, self.structured_outputs)

    def add_to_graph(self, g: Graph | None = None) -> None:
        """Put the function, and those it calls, into a graph's library."""
        graph, own = g or get_default_graph(), self.graph.core.library
        if graph.core.library is not own:
            for name in own:
                graph.core.library.add(own.function(name))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call it in the default graph with its tensors, in order or by their names.

        Raises:
            TypeError: there are too few or too many, or one has another type or shape.
        """
        names = [tensor.op.name for tensor in self.graph.args]
        given = list(args)
        kwargs = {self._other_names.get(name, name): value for name, value in kwargs.items()}
        if len(given) > len(names) or any(name not in names[len(given) :] for name in kwargs):
            raise ArgumentTypeError(f"{self._traced.name} takes the tensors {names}, got {len(args)} and {[*kwargs]}")
        for name in names[len(given) :]:
            if name not in kwargs:
                raise ArgumentTypeError(f"{self._traced.name} lacks its argument '{name}'")
            given.append(kwargs[name])
        specs = [TensorSpec(tensor.static_shape, tensor.dtype, tensor.op.name) for tensor in self.graph.args]
        return self.call([fitting(value, spec, spec.name or "") for value, spec in zip(given, specs, strict=True)])

    def call(self, tensors: Sequence[Tensor]) -> Any:
        """Add a call with these tensors to the default graph; what the Python function returned, of its results."""
        traced = self._traced
        self.add_to_graph()
        kind = "StatefulPartitionedCall" if traced.is_stateful else "PartitionedCall"
        op = create_op(kind, [[*tensors, *traced.captured]], {"f": traced.ref, "Tout": traced.result_types})
        op.set_attr(READ_ONLY, self._only_read)
        results = op.outputs
        for tensor, shape in zip(results, traced.result_shapes, strict=True):
            tensor.set_shape(shape)
        return packed(traced.structure, results)
