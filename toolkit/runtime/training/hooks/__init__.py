"""Hooks: what happens around the steps of a monitored session; one kind per file."""

from __future__ import annotations

from toolkit.runtime.training.hooks.base import Hook, RunArgs, RunContext, Timer

__all__ = ["Hook", "RunArgs", "RunContext", "Timer"]
