# TensorFlow's arguments may be anything, so what they are is for tests to say, not for types.
# pyright: basic
"""Tensors that stay in the session: get_session_handle, get_session_tensor, delete_session_tensor.

What a step fetches of GetSessionHandle is a TensorHandle; a placeholder of get_session_tensor may be fed with one.
"""

from __future__ import annotations

from typing import Any

from toolkit.client import ops
from toolkit.client.arrays import array_ops
from toolkit.client.construction.scopes import colocate_with, device
from toolkit.client.construction.tensor import Tensor
from toolkit.errors import UsageError
from toolkit.graph import dtypes
from toolkit.graph.device import DeviceSpec

#: the graphs whose steps may return handles
USED = "toolkit.tensorflow.handles"


class TensorHandle:
    """A tensor that a session keeps; it goes when it is deleted, or with the session."""

    def __init__(self, handle: Any, dtype: Any, session: Any):
        self._handle = handle.decode() if isinstance(handle, bytes) else str(handle)
        self._dtype, self._session = dtype, session
        self._deleted = False

    def __str__(self) -> str:
        return self._handle

    @property
    def handle(self) -> str:
        return self._handle

    def get_raw_handle(self) -> str:
        """The handle as a text, which may be fed later."""
        return self._handle

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        import numpy as np

        return np.array(self._handle.encode(), object)

    def to_numpy_array(self) -> Any:
        return self.__array__()

    def eval(self) -> Any:
        """The tensor's value."""
        return self._run(lambda: get_session_tensor(self._handle, self._dtype))

    def delete(self) -> None:
        self._run(lambda: delete_session_tensor(self._handle))
        self._deleted = True

    def _run(self, make: Any) -> Any:
        if self._deleted:
            raise TypeError(f"the tensor of the handle '{self._handle}' is deleted")
        graph = self._session.graph
        kept = graph.extras.setdefault(__name__, {})
        key = (make.__qualname__, make.__code__.co_firstlineno, self._dtype.name, self._handle.rpartition(";")[2])
        if key not in kept:
            with graph.as_default():
                kept[key] = make()
        holder, wanted = kept[key]
        return self._session.run(wanted, {holder: self._handle})


def get_session_handle(data: Any, name: Any = None) -> Tensor:
    """A handle of a tensor that the session keeps when it is run."""
    if not isinstance(data, Tensor):
        raise TypeError(f"data is a tensor, not {type(data).__name__}")
    data.graph.extras[USED] = True
    with colocate_with(data):
        return ops.get_session_handle(data, name=name)


def _device_of(handle: Any) -> str:
    last = str(handle).split(";")[-1]
    try:
        return str(DeviceSpec.parse(last))
    except UsageError:
        return ""


def get_session_tensor(handle: Any, dtype: Any, name: Any = None) -> tuple[Tensor, Tensor]:
    """A placeholder for a handle, and the tensor it stands for."""
    with device(_device_of(handle)):
        holder = array_ops.placeholder(dtypes.string)
        return holder, ops.get_session_tensor(holder, dtype=dtype, name=name)


def delete_session_tensor(handle: Any, name: Any = None) -> tuple[Tensor, Any]:
    """A placeholder for a handle, and the operation that lets its tensor go."""
    with device(_device_of(handle)):
        holder = array_ops.placeholder(dtypes.string)
        return holder, ops.delete_session_tensor(holder, name=name)


def wrapped(fetches: Any, values: Any, session: Any) -> Any:
    """The values of a step, with a TensorHandle for each handle."""
    if isinstance(fetches, str) and ":" in fetches:
        fetches = session.graph.get_tensor_by_name(fetches)
    if isinstance(fetches, Tensor):
        if fetches.op.type != "GetSessionHandle":
            return values
        return TensorHandle(values, fetches.op.inputs[0].dtype.base, session)
    if isinstance(fetches, dict):
        return type(values)((key, wrapped(fetches[key], values[key], session)) for key in fetches)
    if isinstance(fetches, list | tuple):
        found = [wrapped(fetch, value, session) for fetch, value in zip(fetches, values, strict=True)]
        return type(values)(*found) if hasattr(values, "_fields") else type(values)(found)
    return values
