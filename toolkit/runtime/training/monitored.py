"""Monitored sessions: hooks around every step, recovery from lost peers, a clean end (MonitoredSession)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from types import TracebackType
from typing import Any

from toolkit.errors import (
    AbortedError,
    CancelledError,
    ClosedError,
    GivenUpError,
    OutOfRangeError,
    UnavailableError,
    UsageError,
)
from toolkit.kernels.queues.barrier import Barrier
from toolkit.kernels.queues.base import QueueResource
from toolkit.runtime.probes.base import Probe, Probes
from toolkit.runtime.session import Session
from toolkit.runtime.training.coordinator import Coordinator
from toolkit.runtime.training.hooks.base import Hook, RunArgs, RunContext
from toolkit.runtime.training.queue_runner import start_queue_runners
from toolkit.runtime.training.scaffold import Scaffold

#: how long threads that fill queues have to end
_GRACE_SECS = 10.0
#: a failure of the cluster, not of the program: the session is made anew and training goes on
RECOVERABLE = (AbortedError, UnavailableError)


class MonitoredSession:
    """A session in a training loop:

        with MonitoredSession(scaffold, lambda: manager.prepare_session("ckpt"), hooks) as session:
            while not session.should_stop():
                session.run("train")

    When a step fails with Aborted or Unavailable the session is closed and made anew from the last checkpoint, and
    the step is run again. OutOfRange (the input has ended) ends the `with` block without an error. Hooks' `end`
    runs unless another error is on its way.

    Args:
        create: makes a ready session and says which checkpoint it came from; `SessionManager.prepare_session`
            with its arguments bound is one.
        max_recoveries: give up after so many failures in a row without a step in between.
        log: takes one line about recoveries.
        probe: looks at every node of every step.
    """

    def __init__(
        self,
        scaffold: Scaffold,
        create: Callable[[], tuple[Session, str | None]],
        hooks: Sequence[Hook] = (),
        *,
        max_recoveries: int = 5,
        log: Callable[[str], None] = lambda line: None,
        probe: Probe | None = None,
    ):
        self.scaffold = scaffold
        self._make = create
        self._hooks = list(hooks)
        self._max_recoveries = max_recoveries
        self._log = log
        self._probe = probe
        self._stop = False
        self._session: Session | None = None
        self._coordinator = Coordinator()
        self.restored: str | None = None
        self.step = 0
        for hook in self._hooks:
            hook.begin(scaffold)
        self._create()

    @property
    def session(self) -> Session:
        """The session under it.

        Raises:
            UsageError: it is closed.
        """
        if self._session is None:
            raise ClosedError("the monitored session is closed")
        return self._session

    def should_stop(self) -> bool:
        return self._stop or self._session is None or self._coordinator.should_stop()

    def request_stop(self) -> None:
        """End the loop at its next look at `should_stop`."""
        self._stop = True

    def stop_input(self) -> None:
        """Let no more input come, so that a step that waits for some ends as at the end of the data.

        May be called from any thread. The threads that fill queues stop, and every queue is closed, those that the
        step has yet to make too: what is in it can still be taken out.
        """
        self._stop = True
        session = self._session
        self._coordinator.request_stop()
        if session is not None:  # at a master the queue runners' own operations close them
            session.resources.for_each((QueueResource, Barrier), _close)

    def cancel(self) -> None:
        """End the step that is running, from any thread; the session is of no more use."""
        self._stop = True
        if self._session is not None:
            self._session.close()

    def run(self, fetches: Any, feed_dict: Mapping[Any, Any] | None = None) -> Any:
        """Run one step with the hooks around it; returns the values of `fetches`.

        Raises:
            OpError: the step failed in a way that a new session does not mend.
        """
        feeds = dict(feed_dict or {})
        failures = 0
        while True:
            try:
                return self._run_once(fetches, feeds)
            except CancelledError:
                # The queue was closed because a thread that fills it failed: that error is the one to tell.
                self._coordinator.raise_requested_exception()
                raise
            except RECOVERABLE as error:
                failures += 1
                if failures > self._max_recoveries or isinstance(error, GivenUpError):
                    raise
                self._log(f"the session was lost ({error}); making a new one")
                self._close_session()
                self._create()

    def _create(self) -> None:
        self._session, self.restored = self._make()
        self.step = self.scaffold.read_global_step(self._session)
        self._coordinator = Coordinator()
        start_queue_runners(self._session, self.scaffold.meta, self._coordinator)
        for hook in self._hooks:
            hook.after_create_session(self._session, self.step)

    def _run_once(self, fetches: Any, feeds: dict[Any, Any]) -> Any:
        context = RunContext(self.session, fetches, feeds, self.step)
        wanted: list[tuple[Hook, RunArgs]] = []
        for hook in self._hooks:
            args = hook.before_run(context)
            if args is not None:
                wanted.append((hook, args))
                for key, value in args.feeds.items():
                    if key in feeds:
                        raise UsageError(f"a hook feeds '{key}', which is fed already")
                    feeds = {**feeds, key: value}
        extra: list[Any] = [args.fetches if args.fetches is not None else [] for _, args in wanted]
        probe = self._probe
        if context.trace:
            from toolkit.runtime.probes.trace import TraceProbe

            context.tracer = TraceProbe()
            probe = context.tracer if probe is None else Probes([probe, context.tracer])
        value, extra_values = self.session.run([fetches, extra], feeds, probe=probe)
        context.values = value
        self.step = self._next_step()
        context.step = self.step
        asked = {id(hook): got for (hook, _), got in zip(wanted, extra_values, strict=True)}
        for hook in self._hooks:
            hook.after_run(context, asked.get(id(hook)))
        if context.stop_requested:
            self._stop = True
        return value

    def _next_step(self) -> int:
        if self.scaffold.global_step is None:
            return self.step + 1
        return self.scaffold.read_global_step(self.session)

    def _close_session(self) -> None:
        session, self._session = self._session, None
        if session is None:
            return
        # The queues are closed first, which ends the threads that fill them; what still waits then is cancelled.
        self._coordinator.request_stop()
        try:
            self._coordinator.join(grace_seconds=_GRACE_SECS, ignore_live_threads=True)
        finally:
            session.close()

    def close(self) -> None:
        """Run the hooks' `end` and close the session."""
        if self._session is None:
            return
        try:
            for hook in self._hooks:
                hook.end(self._session, self.step)
        finally:
            self._close_session()

    def __enter__(self) -> MonitoredSession:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> bool:
        if kind is None or issubclass(kind, OutOfRangeError):
            self.close()
            return kind is not None
        self._close_session()
        return False


def _close(queue: QueueResource | Barrier) -> None:
    with suppress(CancelledError):  # it is closed already
        queue.close(True, lambda result: None)
