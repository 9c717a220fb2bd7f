"""Calls of Python functions by token: PyFunc, PyFuncStateless, EagerPyFunc."""

# numpy's overloads answer arrays typed Any with Unknown
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

from typing import Any

from toolkit.errors import (
    GraphmillError,
    InvalidArgumentError,
    OpError,
    OutOfRangeError,
    ResourceExhaustedError,
    UnimplementedError,
    UnknownError,
)
from toolkit.graph import dtypes
from toolkit.graph.dtypes import DType
from toolkit.kernels.context import StepContext
from toolkit.kernels.cpu.common import np
from toolkit.kernels.registry import PYTHON_FUNCTION, Compute, KernelNode, Kind, kernel
from toolkit.policy.outside import Reach

#: exceptions of Python to the statuses that TensorFlow gives them
_STATUS: tuple[tuple[type[BaseException] | tuple[type[BaseException], ...], type[OpError]], ...] = (
    ((ValueError, TypeError), InvalidArgumentError),
    (StopIteration, OutOfRangeError),
    (MemoryError, ResourceExhaustedError),
    (NotImplementedError, UnimplementedError),
)


@kernel("PyFunc", "PyFuncStateless", "EagerPyFunc", kind=Kind.STATEFUL)
def py_func(op: KernelNode) -> Compute:
    """Copies go in, so that a function which writes into them changes nothing else.

    Raises:
        UnimplementedError: the token is of another process, as in a graph that came out of a file.
    """
    from toolkit.client.functions.python_functions import find

    op.files.require(Reach.PYTHON)
    token, types = op.text("token"), op.output_types
    function = find(token)
    if function is None:
        raise UnimplementedError(f"there is no CPU kernel for {op.op}{PYTHON_FUNCTION}", node=op.name)
    converts = op.op == "EagerPyFunc"

    def compute(step: StepContext, *values: Any) -> Any:
        try:
            returned = function.call(*(np.array(value)[()] for value in values))
        except GraphmillError:
            raise
        except Exception as error:
            raise _as_status(error, token, op.name) from error
        results = _as_list(returned, len(types))
        if len(results) != len(types):
            raise InvalidArgumentError(
                f"the function {token} returned {len(results)} value(s), expected {len(types)}", node=op.name
            )
        found = [
            _array(value, kind, converts, f"value {i} that the function {token} returned", op.name)
            for i, (value, kind) in enumerate(zip(results, types, strict=True))
        ]
        return found or None

    return compute


def _as_status(error: Exception, token: str, node: str) -> OpError:
    kind = next((status for kinds, status in _STATUS if isinstance(error, kinds)), UnknownError)
    return kind(f"the function {token} raised {type(error).__name__}: {error}", node=node)


def _as_list(returned: Any, count: int) -> list[Any]:
    if isinstance(returned, list | tuple):
        return list(returned)
    return [] if returned is None and not count else [returned]


def _array(value: Any, dtype: DType, converts: bool, what: str, node: str) -> Any:
    """A result as the array of its type; strings as bytes.

    Raises:
        InvalidArgumentError: it is of another type.
    """
    array = np.array(value)
    if dtype is dtypes.string:
        if array.dtype.kind not in "OSU":
            raise InvalidArgumentError(f"{what} is of {array.dtype}, expected string", node=node)
        flat = np.array(value, object).ravel().tolist() if array.dtype.kind != "O" else array.ravel().tolist()
        out = np.empty(len(flat), object)
        out[:] = [each.encode() if isinstance(each, str) else each for each in flat]
        if not all(isinstance(each, bytes) for each in out):
            raise InvalidArgumentError(f"{what} holds what is no text, expected string", node=node)
        return out.reshape(array.shape)
    if array.dtype == dtype.numpy:
        return array
    if array.dtype.kind in "OSU" or not converts:
        hint = f"; return value.astype(np.{dtype.name})" if array.dtype.kind not in "OSU" else ""
        raise InvalidArgumentError(f"{what} is of {array.dtype}, expected {dtype.name}{hint}", node=node)
    return array.astype(dtype.numpy)
