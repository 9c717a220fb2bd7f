"""The count of steps that says when rounding begins."""

from __future__ import annotations

from toolkit.client.arrays import array_ops
from toolkit.client.construction.graph import Graph
from toolkit.client.construction.tensor import Tensor
from toolkit.client.variables import initializers
from toolkit.client.variables.store import get_variable
from toolkit.errors import GraphError
from toolkit.graph import dtypes
from toolkit.graph.metagraph import GraphKeys

_NAME = "fake_quantization_step"


def quantization_step(graph: Graph) -> Tensor:
    """The number of this step, from 1; a variable that each step counts up, made once for a graph."""
    try:
        return graph.get_tensor_by_name(f"{_NAME}/Identity:0")
    except (KeyError, ValueError, GraphError):
        pass
    with graph.as_default(), graph.name_scope(None):
        variable = get_variable(
            _NAME, [], dtypes.int64, initializers.Zeros(), trainable=False, collections=[GraphKeys.GLOBAL_VARIABLES]
        )
        with graph.name_scope(f"{variable.op.name}/"):
            return array_ops.identity(variable.assign_add(1))
