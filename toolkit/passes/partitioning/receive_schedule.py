"""What scheduling the receives of partitions (`passes/partitioning/schedule_receives`) has made of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(slots=True)
class ReceiveSchedule:
    """What became of the receives.

    Attributes:
        scheduled: how many wait for a node now.
        left: how many were left as they are, by reason.
        seconds: of the simulated step, before and after.
        peaks: by device, the most bytes at once, before and after.
        waits: by the receive's name, the node that it waits for.
    """

    scheduled: int
    left: dict[str, int]
    seconds: tuple[float, float]
    peaks: dict[str, tuple[int, int]]
    waits: dict[str, str]

    def facts(self) -> dict[str, Any]:
        """For reports and listings."""
        return {
            "scheduled": self.scheduled,
            "left": self.left,
            "seconds": {"before": self.seconds[0], "after": self.seconds[1]},
            "peak_bytes": {
                device: {"before": before, "after": after} for device, (before, after) in self.peaks.items()
            },
        }
