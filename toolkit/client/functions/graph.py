"""The graph in which a function is made: its arguments, and tensors of the graph around that it takes in."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import Any

from toolkit.client.construction.graph import Graph
from toolkit.client.construction.operation import Operation
from toolkit.client.construction.tensor import Tensor
from toolkit.errors import GraphError
from toolkit.graph import dtypes, opdefs
from toolkit.graph.attrs import encode
from toolkit.graph.dtypes import DType
from toolkit.graph.metagraph import GraphKeys
from toolkit.graph.shape import Shape

_SHARED_COLLECTIONS = (GraphKeys.GLOBAL_VARIABLES, GraphKeys.LOCAL_VARIABLES, GraphKeys.TRAINABLE_VARIABLES)
_VARIABLES = "toolkit.client.variables.store"
_HANDLES = (dtypes.resource, dtypes.variant)


class FunctionGraph(Graph):
    """A function while it is being made. Tensors of the graph around it become arguments where they are used.

    Args:
        name: of the function.
        outer: the graph in which the function is made; its library, seed, variables and collections are seen here.

    Attributes:
        args: the placeholders of the function's own arguments.
        captured: tensors of `outer` to the placeholders that stand for them.
    """

    building_function = True

    def __init__(self, name: str, outer: Graph) -> None:
        super().__init__()
        self.name = name
        self.outer = outer
        self.core.library = outer.core.library
        self.seed = outer.seed
        self.args: list[Tensor] = []
        self.captured: dict[Tensor, Tensor] = {}
        self.collections = {key: list(items) for key, items in outer.collections.items()}
        for key in _SHARED_COLLECTIONS:
            self.collections[key] = outer.collections.setdefault(key, [])
        if _VARIABLES in outer.extras:
            self.extras[_VARIABLES] = outer.extras[_VARIABLES]

    @property
    def variables_graph(self) -> Graph:
        return self.outer.variables_graph

    def present_shape(self, shape: Shape) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]  # as around it
        return self.outer.present_shape(shape)

    def argument(self, name: str, dtype: DType, shape: Shape, like: Tensor | None = None) -> Tensor:
        """One more argument of the function.

        Args:
            like: a tensor of a graph around: what is known of its handle is known of the argument's.
        """
        tensor = self._placeholder(name, dtype, shape)
        if like is not None:
            self.hold_as(like, tensor)
        self.args.append(tensor)
        return tensor

    def capture(self, tensor: Tensor) -> Tensor:
        """What stands for a tensor of the graphs around inside of this one.

        Raises:
            GraphError: it is of a graph that is not around this one.
        """
        if tensor.graph is self:
            return tensor
        if tensor.graph is not self.outer:
            tensor = self.outer.capture(tensor)
        inside = self.captured.get(tensor)
        if inside is None:
            inside = self.captured[tensor] = self.take_in(tensor)
            self.hold_as(tensor, inside)
        return inside

    def hold_as(self, outside: Tensor, inside: Tensor) -> None:
        """Variables have their shapes inside, too."""
        if outside.dtype.base in _HANDLES:
            self.shapes.hold(inside.output, outside.graph.shapes.handle(outside.output))

    def take_in(self, tensor: Tensor) -> Tensor:
        """A placeholder for a tensor of the graph around."""
        return self._placeholder(tensor.op.name, tensor.dtype.base, tensor.static_shape)

    def _placeholder(self, name: str, dtype: DType, shape: Shape) -> Tensor:
        attrs = {"dtype": encode(dtype), "shape": encode(shape)}
        with self.control_dependencies(None), self.device(None):
            return self.create_node(opdefs.get("Placeholder"), [], attrs, name).outputs[0]

    @contextmanager
    def control_dependencies(self, control_inputs: Sequence[Any] | None) -> Generator[None]:
        """As a graph's; what is outside of the function has run before it is called."""
        inside = control_inputs
        if control_inputs is not None:
            inside = [thing for thing in control_inputs if getattr(thing, "graph", self) is self]
        with super().control_dependencies(inside):
            yield


def may_be_made_again(op: Operation) -> None:
    """See to it that a copy of an operation does the same.

    Raises:
        GraphError: it has a state, or is fed.
    """
    kind = op.type
    if kind.startswith("Placeholder"):
        raise GraphError(f"a function that stands for itself cannot capture the placeholder '{op.name}'")
    if op.op_def.is_stateful and not kind.endswith(("Dataset", "DatasetV2", "DatasetV3")):
        raise GraphError(f"a function that stands for itself cannot capture '{op.name}', a {kind} with a state")


class SelfContainedGraph(FunctionGraph):
    """A function without arguments but its own: what it uses of the graph around is made in it once more.

    That is how datasets become functions that make them (`Dataset.make_one_shot_iterator`).
    """

    def take_in(self, tensor: Tensor) -> Tensor:
        return self.again(tensor.op).outputs[tensor.index]

    def again(self, op: Operation) -> Operation:
        """A copy of an operation of the graph around, with all that it computes from.

        Raises:
            GraphError: it has a state, or is fed.
        """
        if op.name in self.core:
            return self.get_operation_by_name(op.name)
        definition = op.op_def
        may_be_made_again(op)
        inputs = [self.again(tensor.op).outputs[tensor.index] for tensor in op.inputs]
        attrs = {key: op.node.attrs.proto(key) for key in op.node.attrs}
        with self.control_dependencies(None), self.name_scope(None):
            copy = self.create_node(definition, inputs, attrs, op.name + "/", compute_device=False)
        self.mark_names_used([copy.name])
        return copy
