"""Gradients of Python functions that are made of operations: the function of the call before goes back."""

from __future__ import annotations

from toolkit.client.construction.context import get_default_graph
from toolkit.client.construction.operation import Operation
from toolkit.client.functions.python_functions import PythonFunction, find
from toolkit.client.functions.script_ops import call_python
from toolkit.client.gradients.registry import Gradient, gradient
from toolkit.errors import GraphError


@gradient("EagerPyFunc")
def eager_py_func(op: Operation, *grads: Gradient) -> list[Gradient]:
    """A node that takes the function's derivatives; it runs after the call that they are of.

    Raises:
        GraphError: the function is not here.
    """
    function = find(op.get_attr("token").decode())
    if function is None or function.backward is None:
        raise GraphError(f"the Python function of '{op.name}' is not in this process, so it has no gradient")
    with get_default_graph().control_dependencies(op.outputs):
        types = [tensor.dtype.base for tensor in op.inputs]
        return call_python("EagerPyFunc", function.backward, PythonFunction(function.backward), grads, types)
