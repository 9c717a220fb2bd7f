"""What a run leaves."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(slots=True)
class RunReport:
    """What a run leaves: fetched values by label, timings, where checkpoints are.

    Attributes:
        notes, moved: what was not compiled, and what was not placed where it asks to be, and why.
        wanting: what runs on the CPU for want of a kernel for GPUs.
    """

    outputs: dict[str, Any] = field(default_factory=dict[str, Any])
    steps: int = 0
    stats: dict[str, Any] | None = None
    checkpoint: str | None = None
    restored: str | None = None
    profile: dict[str, Any] | None = None
    explanation: list[str] | None = None
    notes: list[str] = field(default_factory=list[str])
    moved: list[str] = field(default_factory=list[str])
    wanting: list[str] = field(default_factory=list[str])
    interrupted_by: int | None = None
