"""Tensor lists on GPUs: values of the host with tensors of the device in them; see `tensor_array`."""

from __future__ import annotations

import dataclasses
from typing import Any

from toolkit.graph import dtypes
from toolkit.kernels import registry
from toolkit.kernels.registry import COMPLEX, FLOATING

_ELEMENTS = FLOATING | COMPLEX | {dtypes.int32, dtypes.int64, dtypes.bool_}
#: ops whose kernels take elements, which are of these types
_TYPED = (
    "TensorListConcat", "TensorListConcatV2", "TensorListFromTensor", "TensorListGather", "TensorListGetItem",
    "TensorListPushBackBatch", "TensorListScatter", "TensorListScatterIntoExistingList", "TensorListScatterV2",
    "TensorListSetItem", "TensorListSplit", "TensorListStack",
)  # fmt: skip
#: those that look at none
_UNTYPED = (
    "EmptyTensorList", "TensorListConcatLists", "TensorListElementShape", "TensorListLength", "TensorListPushBack",
    "TensorListReserve", "TensorListResize",
)  # fmt: skip
#: what variants of all kinds are given to, lists among them
_VARIANTS = ("AddN", "ZerosLike")


def _register() -> None:
    ops: dict[str, dict[str, Any]] = {op: {"element_dtype": frozenset(_ELEMENTS)} for op in _TYPED}
    ops |= {op: {} for op in _UNTYPED} | {op: {"T": frozenset({dtypes.variant})} for op in _VARIANTS}
    ops["TensorListPopBack"] = {"element_dtype": frozenset(_ELEMENTS | {dtypes.variant})}
    for op, types in ops.items():
        for entry in registry.candidates(op, "CPU"):
            if entry.priority == 0 and ("T" not in entry.types or dtypes.variant in entry.types["T"]):
                registry.add(dataclasses.replace(entry, device_type="GPU", types=types))


_register()
