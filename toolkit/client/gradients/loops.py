"""Gradients through while loops."""

from __future__ import annotations

from typing import Any

from toolkit.client import array_ops
from toolkit.client.operation import Operation
from toolkit.client.tensor import Tensor


def is_loop_switch(op: Operation) -> bool:
    return False


def is_loop_exit(op: Operation) -> bool:
    return False


def state_for(pending: dict[Operation, int]) -> Any:
    return None


def zeros_like(state: Any, op: Operation, index: int) -> Tensor:
    return array_ops.zeros_like(op.outputs[index])
