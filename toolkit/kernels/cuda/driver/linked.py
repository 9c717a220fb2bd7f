"""The libraries of a context, loaded when they are asked for."""

from __future__ import annotations

import importlib
from typing import Any

_ROOM = "toolkit.kernels.cuda.libraries"
#: what is asked for: its module and class, for GPUs and for fake ones
_REAL = {"blas": ("cublaslt", "CublasLt"), "dnn": ("cudnn_graphs", "Cudnn")}
_FAKE = {"blas": ("fake", "FakeBlas"), "dnn": ("fake", "FakeDnn")}


def library(name: str, *arguments: Any, fake: bool) -> tuple[Any, str]:
    """A library for a context, and why there is none; None and the reason where it is not installed."""
    module, made = (_FAKE if fake else _REAL)[name]
    try:
        return getattr(importlib.import_module(f"{_ROOM}.{module}"), made)(*arguments), ""
    except ImportError as error:
        return None, str(error)
