"""Targets for tests: a row of the table with other thresholds, handed in through `Session(processor=...)`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from toolkit.target import rows
from toolkit.target.target import Target


def changed(target: Target | None = None, /, **groups: Mapping[str, Any]) -> Target:
    """A target with other numbers.

    Args:
        target: the one that they are put in; default: this processor's.
        groups: of each group of thresholds what is different, `winograd={"least_work": 0}`.
    """
    target = rows.current() if target is None else target
    return target._replace(**{name: getattr(target, name)._replace(**fields) for name, fields in groups.items()})


_OF_ONEDNN = ("product", "convolution", "softmax", "activation", "pool", "norm", "norm_training")
#: kernels that run node by node use oneDNN for tensors of any size
EAGER = changed(kernels=dict.fromkeys(_OF_ONEDNN, 0))
