"""Feeding and fetching beside the training loop (FeedFnHook, FinalOpsHook)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from toolkit.runtime.session import Session
from toolkit.runtime.training.hooks.base import Hook, RunArgs, RunContext


class FeedFnHook(Hook):
    """Feeds what a function gives, asked anew before every step.

    Args:
        feed: returns tensor to value.
    """

    def __init__(self, feed: Callable[[], Mapping[Any, Any]]):
        self._feed = feed

    def before_run(self, run: RunContext) -> RunArgs:
        return RunArgs(feeds=self._feed())


class FinalOpsHook(Hook):
    """Runs something once at the end of the loop.

    Args:
        fetches: anything `Session.run` fetches.
        feeds: tensor to value.

    Attributes:
        values: what the fetches gave; None until then.
    """

    def __init__(self, fetches: Any, feeds: Mapping[Any, Any] | None = None):
        self._fetches = fetches
        self._feeds = feeds
        self.values: Any = None

    def end(self, session: Session, step: int) -> None:
        self.values = session.run(self._fetches, self._feeds)
