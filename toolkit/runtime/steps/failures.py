"""Which of several failures of one step is told."""

from __future__ import annotations

from collections.abc import Sequence

from toolkit.errors import AbortedError, CancelledError


def root_cause(errors: Sequence[BaseException]) -> BaseException:
    """The error that started it, of those that came, in order: cancellations and aborts are what others see of it."""
    return next((e for e in errors if not isinstance(e, CancelledError | AbortedError)), errors[0])
