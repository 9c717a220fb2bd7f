"""Steps that a master feeds and fetches bit by bit: RunGraph with `is_partial`, again and again for one step."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

from toolkit.cluster.worker.graphs import RegisteredGraph
from toolkit.errors import AbortedError, GraphmillError, InvalidArgumentError, OpError
from toolkit.kernels.context import DEAD
from toolkit.runtime.probes.base import Probe
from toolkit.runtime.workers.base import Worker


class PartialStep:
    """One such step under way, in a thread of its own.

    Args:
        within: around what the thread does: limits.
    """

    def __init__(
        self, worker: Worker, graph: RegisteredGraph, step_id: int, probe: Probe | None,
        within: Callable[[], AbstractContextManager[None]],
    ):  # fmt: skip
        self._within = within
        self._worker = worker
        self._graph = graph
        self._step_id = step_id
        self._probe = probe
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._execute, name="graphmill partial run", daemon=True)
        self._thread.start()

    def _execute(self) -> None:
        try:
            with self._within():
                self._graph.run_with_transfers(self._step_id, self._probe)
        except BaseException as error:
            self._error = error
            self._worker.cancel(self._step_id)

    def run(self, feeds: Mapping[str, Any], fetches: Sequence[str], *, is_last: bool) -> list[Any]:
        """Feed some more and wait for some of what it sends.

        Args:
            is_last: wait for its end as well.

        Raises:
            OpError: the step failed, or a fetch has no value.
        """
        try:
            for key, value in feeds.items():
                if key not in self._graph.feeds:
                    raise InvalidArgumentError(f"this graph receives nothing under the key '{key}'")
                self._worker.send(self._step_id, key, value)
            values = self._received(fetches)
        except GraphmillError as error:
            self._worker.cancel(self._step_id)
            self._thread.join()
            raise self._root(error) from None
        if is_last:
            self._thread.join()
            if self._error is not None:
                raise self._error
        return values

    def _root(self, error: GraphmillError) -> BaseException:
        """What the step failed of, where `error` only says that it did."""
        return self._error if isinstance(error, AbortedError) and self._error is not None else error

    def _received(self, fetches: Sequence[str]) -> list[Any]:
        values: list[Any] = [None] * len(fetches)
        failures: list[BaseException] = []
        pending = threading.Semaphore(0)
        for position, key in enumerate(fetches):
            if key not in self._graph.fetches:
                raise InvalidArgumentError(f"this graph sends nothing under the key '{key}'")

            def arrived(value: Any, is_dead: bool, error: BaseException | None, position: int = position) -> None:
                values[position] = DEAD if is_dead else value
                if error is not None:
                    failures.append(error)
                pending.release()

            self._worker.receive(self._step_id, key, arrived)
        for _ in fetches:
            pending.acquire()
        if failures:
            raise failures[0] if isinstance(failures[0], OpError) else AbortedError(str(failures[0]))
        for key, value in zip(fetches, values, strict=True):
            if value is DEAD:
                raise InvalidArgumentError(
                    f"'{key}' was fetched but is on a branch that was not taken; it has no value"
                )
        return values
