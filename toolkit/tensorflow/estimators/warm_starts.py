# TensorFlow's arguments may be anything, so what they are is for tests to say, not for types.
# pyright: basic
"""What an estimator's variables start from, where they do not start anew."""

from __future__ import annotations

import os
from typing import Any, NamedTuple

from toolkit.formats.models.savedmodel import VARIABLES


class _WarmStart(NamedTuple):
    ckpt_to_initialize_from: Any
    vars_to_warm_start: Any
    var_name_to_vocab_info: Any
    var_name_to_prev_var_name: Any


class WarmStartSettings(_WarmStart):
    """What an estimator's variables start from.

    Raises:
        ValueError: no checkpoint is named.
    """

    def __new__(
        cls, ckpt_to_initialize_from: Any, vars_to_warm_start: Any = ".*", var_name_to_vocab_info: Any = None,
        var_name_to_prev_var_name: Any = None,
    ) -> WarmStartSettings:  # fmt: skip
        if not ckpt_to_initialize_from:
            raise ValueError("WarmStartSettings needs ckpt_to_initialize_from; it is missing")
        return super().__new__(
            cls, ckpt_to_initialize_from, vars_to_warm_start, var_name_to_vocab_info or {},
            var_name_to_prev_var_name or {},
        )  # fmt: skip


def warm_start_settings(start: Any) -> Any:
    """What `warm_start_from` means: settings, a checkpoint or the folder of a SavedModel; None: nothing."""
    if start is None or isinstance(start, WarmStartSettings):
        return start
    if isinstance(start, str | bytes):
        folder = os.fsdecode(start)
        own = os.path.join(folder, VARIABLES)
        return WarmStartSettings(own if os.path.exists(own + ".index") else folder)
    raise ValueError(f"warm_start_from must be a path or WarmStartSettings; got {start!r}")
