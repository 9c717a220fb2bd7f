"""SymbolicGradient: the gradient of a function, made when the step is compiled."""

from __future__ import annotations

from typing import Any

from toolkit.errors import GraphError
from toolkit.graph.attrs import FuncRef
from toolkit.graph.functions import FunctionLibrary
from toolkit.kernels.context import StepContext
from toolkit.kernels.registry import Compute, KernelNode, Kind, kernel


@kernel("SymbolicGradient", kind=Kind.STATEFUL)
def symbolic_gradient(op: KernelNode) -> Compute:
    """Takes f's arguments and the gradients of its results; gives those of its arguments, zeros where there is none.

    The gradient that the library names for f is called, if there is one; else it is derived from f's body.
    """
    ref: FuncRef = op.attr("f")
    library, site = op.library, op.name
    named = library.gradients.get(ref.name)
    if named is not None:
        made, found = library, FuncRef(named, ref.attrs)
    else:
        made, found = _derived(op, ref, library)

    def compute(step: StepContext, *args: Any) -> list[Any]:
        return step.device_functions.prepare(made, found, site)(args, step)

    return compute


def _derived(op: KernelNode, ref: FuncRef, library: FunctionLibrary) -> tuple[FunctionLibrary, FuncRef]:
    """The gradient function, in a library of its own: the graph's stays as it is."""
    from toolkit.client.gradients.function_body import gradient_function

    copy = library.copy()
    try:
        return copy, gradient_function(copy, ref, len(op.output_types))
    except GraphError as error:
        raise error.at(node=op.name) from None
