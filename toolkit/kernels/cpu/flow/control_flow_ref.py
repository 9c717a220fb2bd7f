"""References to variables handed on."""

from __future__ import annotations

from typing import Any

from toolkit.kernels.cpu.common import require
from toolkit.kernels.registry import simple
from toolkit.kernels.types import Array


@simple("RefIdentity")
def ref_identity(variable: Any) -> Any:
    return variable


@simple("RefSelect")
def ref_select(index: Array, *variables: Any) -> Any:
    """One of the variables."""
    require(index.ndim == 0, f"Index must be a scalar, but it has shape {list(index.shape)}")
    chosen = int(index)
    require(0 <= chosen < len(variables), f"Index must be in the range [0, {len(variables)}) but got {chosen}")
    return variables[chosen]
