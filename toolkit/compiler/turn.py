"""How many processors the steps of a plan keep busy, as they have been seen to (`toolkit.runtime.steps.turns` asks)."""

from __future__ import annotations

#: weight of a new measurement in those before
_NEW = 0.25
#: share of a processor that does not count: what a step spends outside of its parallel parts is one processor's
_LITTLE = 0.35


class Turn:
    """What is known of the steps that one plan runs.

    Attributes:
        seconds: that they take; None until one has run.
        busy: how many processors they keep busy; None until one was seen alone.
        seen: how many were seen alone.
        loops: they have loops, so before one has run nobody knows whether they end soon.
    """

    __slots__ = ("busy", "loops", "seconds", "seen")

    def __init__(self, loops: bool = False) -> None:
        self.loops = loops
        self.seen = 0
        self.seconds: float | None = None
        self.busy: float | None = None

    def add(self, seconds: float, spent: float | None) -> None:
        """A step has run.

        Args:
            spent: seconds of all processors; None if others ran meanwhile.
        """
        self.seconds = _mixed(self.seconds, seconds)
        if spent is not None and seconds > 0:
            self.busy = _mixed(self.busy, spent / seconds)
            self.seen += 1

    def share(self, most: int) -> int:
        """How many of so many processors a step takes: all, as long as nothing is known."""
        return most if self.busy is None else max(1, min(most, int(self.busy + 1 - _LITTLE)))


def _mixed(before: float | None, new: float) -> float:
    return new if before is None else before + _NEW * (new - before)
