"""An actor as its master calls it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from schemas import device_attributes_pb2
from toolkit.cluster.master.found import FoundTask
from toolkit.cluster.ray.answers import begin, checked
from toolkit.errors import DeadlineExceededError


class ActorTask:
    """One task.

    Args:
        name: /job:worker/replica:0/task:0.
        actor: Ray's handle of it; good for the processes that follow as well.
    """

    def __init__(self, name: str, actor: Any):
        self.name = name
        self.actor = actor
        self._farewells: set[Future[Any]] = set()
        self._lock = threading.Lock()

    def begin(self, method: str, *arguments: Any) -> Future[Any]:
        """Call a method; a future of its answer, for `result`."""
        return begin(self.actor, method, *arguments)

    def result(self, answer: Future[Any], timeout: float | None = None) -> Any:
        """Wait for an answer; see `answers.checked`."""
        return checked(answer, self.name, timeout)

    def ask(self, method: str, *arguments: Any, timeout: float | None = None) -> Any:
        """Call a method and wait for its answer.

        Raises:
            UnavailableError: the actor's process has ended, or is not there.
            TimeoutError: it did not answer in time.
            GraphmillError: what the method raised.
        """
        return self.result(self.begin(method, *arguments), timeout)

    def ask_status(self, timeout: float) -> Callable[[], FoundTask]:
        """See `master.health.AskedTask`."""
        asked = self.begin("status")

        def wait() -> FoundTask:
            try:
                return self._told(self.result(asked, timeout))[1]
            except TimeoutError:
                raise DeadlineExceededError(f"no answer for {timeout:g} seconds") from None

        return wait

    def found(self, timeout: float) -> tuple[int, FoundTask]:
        """The number of its process, and its devices as they are now.

        Raises:
            UnavailableError: it is not there.
            TimeoutError: it does not answer.
        """
        return self._told(self.ask("status", timeout=timeout))

    def _told(self, status: tuple[int, list[bytes]]) -> tuple[int, FoundTask]:
        process, attributes = status
        devices = tuple(device_attributes_pb2.DeviceAttributes.FromString(each) for each in attributes)
        return process, FoundTask(self.name, devices)

    def tell(self, method: str, *arguments: Any) -> None:
        """Make a call that nobody waits for, and whose failure changes nothing."""
        answer = self.begin(method, *arguments)
        with self._lock:
            self._farewells.add(answer)
        answer.add_done_callback(self._over)

    def _over(self, answer: Future[Any]) -> None:
        with self._lock:
            self._farewells.discard(answer)

    def __str__(self) -> str:
        return self.name

    def finish(self, seconds: float) -> None:
        """Wait until what was told has arrived, or for so long for each."""
        with self._lock:
            waiting = list(self._farewells)
        for answer in waiting:
            try:
                answer.exception(seconds)
            except Exception:  # late, or given up
                return
