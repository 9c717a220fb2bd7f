"""Steps that are fed and fetched bit by bit (Session.partial_run)."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

from toolkit.errors import CancelledError, GraphmillError, InvalidArgumentError, UsageError
from toolkit.graph.node import Node, Output
from toolkit.kernels.context import DEAD
from toolkit.passes.pruning.client_graph import feed_key, fetch_key, target_key
from toolkit.runtime.steps.compiled import CompiledStep


class PartialRun:
    """One step under way.

    Args:
        compiled: the step with transfers in place of arguments and results.
        feeds, fetches, targets: everything that may be fed and fetched in the course of it.
        step_id: of the step.
        within: what the step runs in: its limits.
    """

    def __init__(
        self,
        compiled: CompiledStep,
        feeds: Sequence[Output],
        fetches: Sequence[Output],
        targets: Sequence[Node],
        step_id: int,
        within: AbstractContextManager[None],
    ):
        self._compiled = compiled
        self._step_id = step_id
        self._feeds = {output: index for index, output in enumerate(feeds)}
        self._fetches = {output: index for index, output in enumerate(fetches)}
        self._targets = {node: index for index, node in enumerate(targets)}
        self._fed: set[Output] = set()
        self._fetched: set[Output | Node] = set()
        self._error: BaseException | None = None
        self._within = within
        self._is_closed = False
        self._thread = threading.Thread(target=self._execute, name="graphmill partial run", daemon=True)
        self._thread.start()

    def _execute(self) -> None:
        try:
            with self._within:
                self._compiled.run(self._step_id, [], None)
        except BaseException as error:
            self._error = error
            self._compiled.cancel(self._step_id)

    @property
    def is_closed(self) -> bool:
        """Whether it is over."""
        return self._is_closed

    def cancel(self) -> None:
        """End what waits of it; whoever waits closes it."""
        if not self._is_closed:
            self._compiled.cancel(self._step_id)

    def close(self) -> None:
        """End the step. Closing twice is fine, and after its end too."""
        if not self._is_closed:
            self._compiled.cancel(self._step_id)
            self._clean_up()

    def _clean_up(self) -> None:
        """Nothing of the step is left at the workers when it has ended."""
        self._is_closed = True
        self._thread.join()
        self._compiled.cleanup(self._step_id)
        self._compiled.close()

    def run(self, fetches: Sequence[Output], targets: Sequence[Node], feeds: Mapping[Output, Any]) -> list[Any]:
        """Feed more, and wait for some of the fetches.

        Raises:
            UsageError: something was not declared in the setup.
            InvalidArgumentError: something is fed or fetched twice, or a fetch needs what has not been fed yet.
            OpError: the step failed.
        """
        # what is fed in the same call needs no computing, whether it was declared or not
        computed = [output for output in fetches if output in self._fetches or output not in feeds]
        self._check(computed, targets, feeds)
        if self._is_closed:
            raise self._error or CancelledError("the step was cancelled")
        keys = [fetch_key(self._fetches[output]) for output in computed]
        keys += [target_key(self._targets[node]) for node in targets]
        try:
            for output, value in feeds.items():
                self._fed.add(output)
                self._compiled.send(self._step_id, feed_key(self._feeds[output]), value)
            values = dict(zip([*computed, *targets], self._receive(keys), strict=True))
        except GraphmillError as error:
            self.close()
            raise self._error or error from None
        self._fetched.update(computed, targets)
        if len(self._fetched) == len(self._fetches) + len(self._targets) and len(self._fed) == len(self._feeds):
            self._clean_up()
        return [values[output] if output in values else feeds[output] for output in fetches]

    def _check(self, fetches: Sequence[Output], targets: Sequence[Node], feeds: Mapping[Output, Any]) -> None:
        for output in feeds:
            if output not in self._feeds:
                raise UsageError(f"'{output.name}' was not among the feeds of partial_run_setup")
            if output in self._fed:
                raise InvalidArgumentError(f"the tensor '{output.name}' has already been fed")
        for wanted in (*fetches, *targets):
            if wanted not in self._fetches and wanted not in self._targets:
                raise UsageError(f"'{wanted.name}' was not among the fetches of partial_run_setup")
            if wanted in self._fetched:
                raise InvalidArgumentError(f"'{wanted.name}' has already been fetched")
            missing = self._unfed(wanted, self._fed | set(feeds))
            if missing is not None:
                raise InvalidArgumentError(
                    f"'{wanted.name}' cannot be computed from what has been fed so far: '{missing.name}' is missing"
                )

    def _unfed(self, wanted: Output | Node, fed: set[Output]) -> Output | None:
        """A declared feed that `wanted` needs and that has no value yet."""
        if wanted in self._feeds:
            return None if wanted in fed else wanted  # type: ignore[return-value]
        start = wanted.node if isinstance(wanted, Output) else wanted
        seen = {start.id}
        stack = [start]
        while stack:
            node = stack.pop()
            for source in node.inputs:
                if source in self._feeds:
                    if source not in fed:
                        return source
                elif source.node.id not in seen:
                    seen.add(source.node.id)
                    stack.append(source.node)
            for node_before in node.control_inputs:
                if node_before.id not in seen and Output(node_before, 0) not in self._feeds:
                    seen.add(node_before.id)
                    stack.append(node_before)
        return None

    def _receive(self, keys: list[str]) -> list[Any]:
        values: list[Any] = [None] * len(keys)
        failures: list[BaseException] = []
        pending = threading.Semaphore(0)

        def receiver(position: int) -> Callable[[Any, bool, BaseException | None], None]:
            def arrived(value: Any, is_dead: bool, error: BaseException | None) -> None:
                values[position] = DEAD if is_dead else value
                if error is not None:
                    failures.append(error)
                pending.release()

            return arrived

        for position, key in enumerate(keys):
            self._compiled.receive(self._step_id, key, receiver(position))
        for _ in keys:
            pending.acquire()
        if failures:
            raise failures[0]
        return values
