"""TensorArrays and stacks on GPUs: objects of the host with tensors of the device in them.

The kernels are the CPU's: they look at no number of an element, and what they do to elements `tensor_space` does.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from toolkit.graph import dtypes
from toolkit.kernels import registry
from toolkit.kernels.context import StepContext
from toolkit.kernels.cpu.lists.tensor_array import array_of, held_stack
from toolkit.kernels.registry import COMPLEX, FLOATING, NUMBER
from toolkit.kernels.resources.stack import Stack
from toolkit.kernels.resources.tensor_array import TensorArray

_ELEMENTS = FLOATING | COMPLEX | {dtypes.int32, dtypes.int64, dtypes.bool_}
_FAMILY: dict[str, dict[str, Any]] = {
    "TensorArray": {"dtype": _ELEMENTS}, "TensorArrayWrite": {"T": _ELEMENTS}, "TensorArrayRead": {"dtype": _ELEMENTS},
    "TensorArrayGather": {"dtype": _ELEMENTS}, "TensorArrayScatter": {"T": _ELEMENTS},
    "TensorArrayConcat": {"dtype": _ELEMENTS}, "TensorArraySplit": {"T": _ELEMENTS}, "TensorArrayGrad": {},
    "TensorArraySize": {}, "TensorArrayClose": {},
}  # fmt: skip
_OTHERS: dict[str, dict[str, Any]] = {
    "TensorArrayGradWithShape": {}, "TensorArrayPack": {"dtype": _ELEMENTS}, "TensorArrayUnpack": {"T": _ELEMENTS},
}  # fmt: skip
_STACKS = NUMBER | {dtypes.bool_}


def held_by(step: StepContext, handle: Any) -> TensorArray:
    """The array of a step that a handle is of.

    Raises:
        GraphmillError: it is no such handle.
    """
    return array_of(step, handle)


def stack_of(step: StepContext, handle: Any) -> Stack:
    """The stack of a step that a handle is of.

    Raises:
        GraphmillError: it is no such handle.
    """
    return held_stack(step, handle)


def _register() -> None:
    ops = {f"{op}{version}": types for op, types in _FAMILY.items() for version in ("", "V2", "V3")} | _OTHERS
    for version in ("", "V2"):
        ops[f"Stack{version}"] = ops[f"StackClose{version}"] = {}
        ops[f"StackPush{version}"] = {"T": _STACKS}
        ops[f"StackPop{version}"] = {"elem_type": _STACKS}
    for op, types in ops.items():
        for entry in registry.candidates(op, "CPU"):
            allowed = {name: frozenset(known) for name, known in types.items()}
            registry.add(dataclasses.replace(entry, device_type="GPU", types=allowed))


_register()
