# TensorFlow's arguments may be anything, so what they are is for tests to say, not for types.
# pyright: basic
"""tf.contrib.training's strategies for replica_device_setter: which parameter server has which variable."""

from __future__ import annotations

import hashlib
from typing import Any


class RandomStrategy:
    """A server that follows from the name of the operation, the same in each process."""

    def __init__(self, num_ps_tasks: int, seed: int = 0):
        self._count, self._seed = num_ps_tasks, seed

    def __call__(self, op: Any) -> int:
        digest = hashlib.md5(f"{op.name}_{self._seed}".encode(), usedforsecurity=False).hexdigest()
        return int(digest, 16) % self._count


class GreedyLoadBalancingStrategy:
    """The server that has the least so far.

    Args:
        load_fn: of an operation, how much it is; `byte_size_load_fn`, say.
    """

    def __init__(self, num_tasks: int, load_fn: Any):
        self._loads = [0.0] * num_tasks
        self._load_fn = load_fn

    def __call__(self, op: Any) -> int:
        task = self._loads.index(min(self._loads))
        self._loads[task] += self._load_fn(op)
        return task


def byte_size_load_fn(op: Any) -> int:
    """The bytes of what an operation holds.

    Raises:
        ValueError: it has several outputs, or none; or a shape that is not known.
    """
    if len(op.outputs) != 1:
        raise ValueError(f"'{op.name}': expected one output, to know how large it is; it has {len(op.outputs)}")
    output = op.outputs[0]
    shape: Any = output.static_shape
    if not shape.is_fully_defined:
        shape = op.node.attr("shape")
    if not shape.is_fully_defined:
        raise ValueError(f"'{op.name}': its shape {shape} is not known, so it is not known how large it is")
    return shape.num_elements * output.dtype.base.size
