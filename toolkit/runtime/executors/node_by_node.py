"""What executors that compile nothing say of themselves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from toolkit.runtime.steps.step import DeviceStep


class NodeByNode:
    """An executor that calls the kernel of each node."""

    def explain(self, arguments: Sequence[Any], running: DeviceStep) -> list[str]:
        """What it does for these arguments, in lines; nothing is run."""
        return [f"runs node by node in the {type(self).__name__}"]

    def notes(self) -> list[str]:
        """What a compiler left to kernels until now: there is none."""
        return []
