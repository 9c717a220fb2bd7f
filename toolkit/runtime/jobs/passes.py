"""One pass after another over data that comes in pieces, in one session: what is compiled and restored once is kept."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from toolkit.formats.models.model import Model
from toolkit.runtime.jobs.job import Job
from toolkit.runtime.jobs.options import RunOptions
from toolkit.runtime.jobs.wishes import request_of
from toolkit.runtime.session import Session


class Passes:
    """A model in a session that is kept from pass to pass.

    Args:
        options: of every pass; `batch` is the most rows of a step.
        log: takes lines about the session.
    """

    def __init__(self, model: Model, options: RunOptions, log: Callable[[str], None]):
        self._model = model
        self._options = options
        self._log = log
        self._session: Session | None = None

    def run(self, feeds: Mapping[str, Any], rows: int) -> dict[str, Any]:
        """The results of one pass: those per example joined along their first axis.

        Args:
            feeds: by name.
            rows: of the arrays that are cut into batches.

        Raises:
            GraphmillError: see `Session.run` and `Batches`.
        """
        batch = min(self._options.batch or 0, rows) or None  # of a short piece, or an empty one, all at once
        options = replace(self._options, feeds=feeds, batch=batch, keep_values=True)
        job = Job(self._model, options, request_of(self._model, options, options.targets), self._log)
        if self._session is None:
            self._session, _ = job.create()
            self._log = _nothing
        return job.pass_over(self._session)

    def close(self) -> None:
        """Close the session. Again is fine."""
        if self._session is not None:
            self._session.close()
            self._session = None


def _nothing(_line: str) -> None:
    """What was said once is not said again."""
