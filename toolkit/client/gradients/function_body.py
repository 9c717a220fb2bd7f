"""Functions opened as graphs, extended by their gradients, and written back as functions.

A gradient needs values that the function computed on its way. So two functions are made of one: the forward function
gives those values out as well, the backward function takes them and the gradients of the results.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from toolkit.client import ops
from toolkit.client.arrays import array_ops
from toolkit.client.construction.convert import convert_to_tensor
from toolkit.client.construction.graph import Graph
from toolkit.client.construction.operation import Operation
from toolkit.client.construction.tensor import Tensor
from toolkit.client.functions.definition import function_def, unique
from toolkit.client.metagraphs.importing import import_graph_def
from toolkit.errors import GraphError
from toolkit.graph import dtypes
from toolkit.graph.attrs import FuncRef
from toolkit.graph.bodies import instantiate
from toolkit.graph.dtypes import DType
from toolkit.graph.functions import FunctionLibrary


@dataclass
class OpenFunction:
    """A function as a graph that can be extended.

    Attributes:
        graph: its nodes; its library is that of the graph the function belongs to.
        args, results: the tensors that come in and go out.
        controls: what must run whether or not a result needs it.
        forward: the operations that were there in the beginning.
    """

    name: str
    graph: Graph
    args: list[Tensor]
    results: list[Tensor]
    controls: list[Operation]
    forward: dict[Operation, None] = field(default_factory=dict[Operation, None])


def open_function(library: FunctionLibrary, ref: FuncRef) -> OpenFunction:
    """The body of a function as a graph.

    Raises:
        GraphError: there is no such function, or it is malformed.
    """
    body = instantiate(library, ref)
    graph = Graph()
    graph.core.library = library
    with graph.as_default():
        import_graph_def(body.graph, name="")
    args = [graph.get_operation_by_name(node.name).outputs[0] for node in body.args]
    results = [graph.get_operation_by_name(node.name).inputs[0] for node in body.results]
    controls = [graph.get_operation_by_name(node.name) for node in body.control_results]
    forward = {op: None for op in graph.get_operations() if op.type not in ("_Arg", "_Retval")}
    return OpenFunction(ref.name, graph, args, results, controls, forward)


@dataclass
class Derivative:
    """A function with the nodes of its gradient.

    Attributes:
        seeds: placeholders of the results' gradients, in the order of the `ys` that were asked for.
        grads: the gradient of each argument, None where there is none.
    """

    function: OpenFunction
    seeds: list[Tensor]
    grads: list[Tensor | None]

    def zeros(self, index: int, dtype: DType) -> Tensor:
        """Zeros for an argument without gradient; for a variable, of what it holds."""
        arg = self.function.args[index]
        with self.function.graph.as_default():
            if arg.dtype.base is dtypes.resource:
                return array_ops.zeros(ops.variable_shape(arg), dtype)
            return ops.zeros_like(arg)

    def backward(self, results: Sequence[Tensor]) -> Backward:
        """What computes `results`, apart from the forward function."""
        forward = self._forward_ops()
        args = {arg.op for arg in self.function.args} | {seed.op for seed in self.seeds}
        made: dict[Operation, None] = {}
        captured: dict[Tensor, None] = {}
        stack = list(results)
        while stack:
            tensor = stack.pop()
            op = tensor.op
            if op.type == "Placeholder" and op not in forward:
                continue
            if op.type == "Const":
                made[op] = None  # cheaper to have twice than to hand on
            elif op in forward or op in args:
                captured[tensor] = None
            elif op not in made:
                made[op] = None
                stack.extend(op.inputs)
        order = [op for op in self.function.graph.get_operations() if op in made]
        known = {arg: i for i, arg in enumerate(self.function.args)}
        return Backward(
            order,
            {tensor: known[tensor] for tensor in captured if tensor in known},
            [tensor for tensor in captured if tensor not in known],
        )

    def _forward_ops(self) -> dict[Operation, None]:
        """The function's own operations and what was put before them since (loops inside keep their history)."""
        seen = dict(self.function.forward)
        stack = [tensor.op for op in seen for tensor in op.inputs]
        arguments = {arg.op for arg in self.function.args}
        while stack:
            op = stack.pop()
            if op not in seen and op not in arguments:
                seen[op] = None
                stack.extend(tensor.op for tensor in op.inputs)
        return seen

    def forward_ops(self, more: Iterable[Operation] = ()) -> list[Operation]:
        """The forward function's operations in order, and `more` of them."""
        wanted = self._forward_ops() | dict.fromkeys(more)
        return [op for op in self.function.graph.get_operations() if op in wanted]


@dataclass
class Backward:
    """Attributes:
    ops: what computes the gradients.
    from_args: the arguments of the function that they use, with their positions.
    intermediates: other tensors of the forward function that they use.
    """

    ops: list[Operation]
    from_args: dict[Tensor, int]
    intermediates: list[Tensor]


def differentiate(library: FunctionLibrary, ref: FuncRef, ys: Sequence[int], xs: Sequence[int]) -> Derivative:
    """A function, opened, with the gradients of some of its arguments from those of some of its results."""
    from toolkit.client.gradients.backprop import gradients

    function = open_function(library, ref)
    grads: list[Tensor | None] = [None] * len(function.args)
    with function.graph.as_default():
        results = [function.results[i] for i in ys]
        seeds = [array_ops.placeholder(r.dtype.base, None, name="grad_ys") for r in results]
        for seed, result in zip(seeds, results, strict=True):
            seed.set_shape(result.static_shape)
        if ys and xs:
            found = gradients(results, [function.args[j] for j in xs], grad_ys=seeds)
            for j, grad in zip(xs, found, strict=True):
                grads[j] = None if grad is None else convert_to_tensor(grad)
    return Derivative(function, seeds, grads)


def write_function(
    function: OpenFunction,
    suffix: str,
    operations: Sequence[Operation],
    args: Sequence[Tensor | DType],
    results: Sequence[Tensor],
    *,
    stand_ins: Mapping[Tensor, Tensor] | None = None,
    controls: Sequence[Operation] = (),
) -> FuncRef:
    """Add a function of these operations to the library.

    Args:
        suffix: what its name adds to that of the function it is made of; made unique.
        args: tensors that come in, or the types of arguments that are not used.
        stand_ins: tensors to use in the place of others.
        controls: operations that must run.
    """
    library = function.graph.core.library
    taken = {op.name for op in operations}
    given: dict[str, Tensor | DType] = {}
    for i, arg in enumerate(args):
        given[unique(f"arg_{i}", taken, 1)] = arg
    named = {f"result_{i}": result for i, result in enumerate(results)}
    name = unique(f"{function.name}_{suffix}", library, 1)
    library.add(function_def(name, operations, given, named, stand_ins=stand_ins, controls=controls))
    return FuncRef(name)


def gradient_function(library: FunctionLibrary, ref: FuncRef, count: int) -> FuncRef:
    """Add the function (args, gradients of the results) -> gradients of the first `count` args, and refer to it.

    It computes the function anew. Arguments without a gradient get zeros; gradients of results that have none, such
    as those of integers, are taken and not used.

    Raises:
        GraphError: there is no such function, it is malformed, or an op in it has no gradient.
    """
    types = [node.attr("T") for node in instantiate(library, ref).results]
    ys = [i for i, dtype in enumerate(types) if dtype.kind in "fc"]
    given = instantiate(library, ref).args
    if count > len(given):
        raise GraphError(f"{count} gradients asked for of '{ref.name}', which takes {len(given)} tensor(s)")
    xs = [j for j, node in enumerate(given) if node.attr("T").kind in "fcr"]
    derivative = differentiate(library, ref, ys, xs)
    function = derivative.function
    grads: list[Tensor] = []
    for j in range(count):
        grad = derivative.grads[j]
        grads.append(derivative.zeros(j, dtypes.float32) if grad is None else grad)
    seeds: dict[int, Tensor | DType] = dict(enumerate(types))
    seeds.update(zip(ys, derivative.seeds, strict=True))
    args: list[Tensor | DType] = [*function.args, *seeds.values()]
    inner = {op: None for op in function.graph.get_operations() if op.type not in ("_Arg", "_Retval")}
    skipped = {seed.op for seed in derivative.seeds}
    operations = [op for op in inner if op not in skipped]
    return write_function(function, "gradient", operations, args, grads, controls=function.controls)
