"""What users are told of exceptions that kernels did not foresee: memory or stack used up, a rule of the op broken,
numbers too large, files, text that is none; else an internal error."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from toolkit.errors import GraphmillError, InternalError, InvalidArgumentError, ResourceExhaustedError, os_status
from toolkit.graph.expansion import expansion
from toolkit.graph.functions import FunctionLibrary
from toolkit.graph.node import Node
from toolkit.limits.exhaustion import Alive, exhaustion


def _too_deep(library: FunctionLibrary) -> str:
    """What to say where calls within calls have used up the stack."""
    recursive = sorted(expansion(library).recursive)
    if recursive:
        return f"calls within calls are too deep for the stack; '{recursive[0]}' calls itself, without end perhaps"
    return "functions call one another too deep for the stack"


def told_of(error: BaseException, node: Node, alive: Alive = (), values: Sequence[Any] | None = None) -> GraphmillError:
    """What a user is told of an exception that the kernel of a node did not foresee.

    Args:
        alive: names and values that were there where memory has run out.
        values: of the inputs, where they are still there.
    """
    from toolkit.compiler.diagnose import beyond_addresses, beyond_int32, broken_rule  # few steps fail

    if isinstance(error, RecursionError):
        return ResourceExhaustedError(f"{node.op}: {_too_deep(node.graph.library)}", node=node.name)
    told = exhaustion(error, node.op, node.name, alive) or broken_rule(node, values)
    if told is None and isinstance(error, OverflowError):
        told = beyond_int32(node)
    if told is None and isinstance(error, OverflowError | ValueError):
        told = beyond_addresses(node, values)
    if told is None and isinstance(error, OSError):
        where = f"{error.filename}: " if error.filename else ""
        told = os_status(error)(f"{node.op}: {where}{error.strerror or error}", node=node.name)
    if told is None and isinstance(error, np.linalg.LinAlgError):
        told = InvalidArgumentError(f"{node.op}: {error}", node=node.name)
    if told is None and isinstance(error, UnicodeDecodeError):
        told = InvalidArgumentError(f"{node.op} takes text here; what it was given is not UTF-8", node=node.name)
    if told is not None:
        return told
    inputs = ", ".join(f"{src.name}:{index}" for src, index in node.inputs)
    return InternalError(f"{node.op} failed: {type(error).__name__}: {error} (inputs: {inputs})", node=node.name)
