"""Operations whose values can be asked for at once: what functions given to `py_function` work with.

An `ImmediateGraph` is made for one call. Its tensors have values, which are computed when Python asks for them
(`numpy()`, `if`, `float`), each once, by a session over what has been made so far. Gradients of the call are made in
the same graph.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from toolkit.client.construction.context import get_default_graph
from toolkit.client.construction.convert import convert_to_tensor
from toolkit.client.construction.create import create_op
from toolkit.client.construction.graph import Graph
from toolkit.client.construction.operation import Operation
from toolkit.client.construction.tensor import Tensor
from toolkit.client.functions.python_functions import PythonFunction
from toolkit.client.gradients import gradients
from toolkit.client.structures import nest
from toolkit.errors import InvalidArgumentError
from toolkit.graph import dtypes
from toolkit.graph.dtypes import DType
from toolkit.graph.node import Node
from toolkit.graph.shape import Shape
from toolkit.runtime.session import Session


class ImmediateTensor(Tensor):
    """A tensor with a value."""

    __slots__ = ()

    def numpy(self) -> Any:
        """Its value: an array, a NumPy number or bytes."""
        graph = self.graph
        assert isinstance(graph, ImmediateGraph)
        return graph.value_of(self)

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray[Any, Any]:
        return np.asarray(self.numpy(), dtype)

    def __bool__(self) -> bool:  # pyright: ignore[reportIncompatibleMethodOverride]  # it has a value
        return bool(self.numpy())

    def __int__(self) -> int:
        return int(self.numpy())

    def __float__(self) -> float:
        return float(self.numpy())

    def __index__(self) -> int:
        return int(self.numpy())

    def __len__(self) -> int:
        return len(self.numpy())

    def __iter__(self) -> Iterator[Tensor]:
        return (self[i] for i in range(len(self)))

    def __format__(self, spec: str) -> str:
        return format(self.numpy(), spec)

    def __str__(self) -> str:
        return str(self.numpy())

    def __repr__(self) -> str:
        return f"<Tensor shape={self.static_shape} dtype={self.dtype} numpy={self.numpy()!r}>"


class ImmediateGraph(Graph):
    """The operations of one call.

    Args:
        like: shapes are shown as that graph shows them.
    """

    def __init__(self, like: Graph):
        super().__init__()
        self._like = like
        self._values: dict[Tensor, Any] = {}

    def present_shape(self, shape: Shape) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]  # as around it
        return self._like.present_shape(shape)

    def _adopt(self, node: Node, flow: Any = None) -> Operation:
        op = super()._adopt(node, flow)
        op.outputs = [ImmediateTensor(op, tensor.index, tensor.dtype) for tensor in op.outputs]
        return op

    def given(self, value: Any, dtype: DType) -> Tensor:
        """A tensor of a value."""
        attrs = {"dtype": dtype, "shape": Shape(list(np.shape(value)))}
        tensor = create_op("Placeholder", [], attrs, "value").outputs[0]
        self._values[tensor] = value
        return tensor

    def value_of(self, tensor: Tensor) -> Any:
        return self.values_of([tensor])[0]

    def values_of(self, tensors: Sequence[Tensor]) -> list[Any]:
        """The values of tensors; what is known already is not computed again."""
        lacking = [tensor for tensor in dict.fromkeys(tensors) if tensor not in self._values]
        if lacking:
            with Session(self) as session:
                self._values.update(zip(lacking, session.run(lacking, self._values), strict=True))
        return [self._values[tensor] for tensor in tensors]


def immediate_function(
    func: Callable[..., Any], input_types: Sequence[DType], output_types: Sequence[DType]
) -> PythonFunction:
    """A function of tensors with values, as a node of EagerPyFunc calls it.

    Its `backward` takes the gradients of the last call's outputs, which it differentiates by its operations.
    """
    outer = get_default_graph()
    last: dict[str, tuple[ImmediateGraph, list[Tensor], list[Tensor]]] = {}

    def call(*values: Any) -> list[Any]:
        graph = ImmediateGraph(outer)
        with graph.as_default():
            inputs = [graph.given(value, dtype) for value, dtype in zip(values, input_types, strict=True)]
            returned = func(*inputs)
            flat = [] if returned is None else nest.flatten(returned)
            if len(flat) != len(output_types):
                return list(flat)  # the kernel says what is wrong
            outputs = [convert_to_tensor(value, dtype) for value, dtype in zip(flat, output_types, strict=True)]
        last["call"] = graph, inputs, outputs
        return graph.values_of(outputs)

    def backward(*grads: Any) -> list[Any]:
        if "call" not in last:
            raise InvalidArgumentError("the function was not called before its gradient")
        graph, inputs, outputs = last.pop("call")
        with graph.as_default():
            given = [graph.given(grad, tensor.dtype) for grad, tensor in zip(grads, outputs, strict=True)]
            trained = [tensor for tensor in inputs if tensor.dtype.base.is_floating or tensor.dtype.base.is_complex]
            found = dict(zip(trained, gradients(outputs, trained, given), strict=True))
            wanted = [
                convert_to_tensor(found[tensor])
                if found.get(tensor) is not None
                else np.zeros((), dtypes.float32.numpy)
                for tensor in inputs
            ]
        known = iter(graph.values_of([value for value in wanted if isinstance(value, Tensor)]))
        return [next(known) if isinstance(value, Tensor) else value for value in wanted]

    return PythonFunction(call, backward)
