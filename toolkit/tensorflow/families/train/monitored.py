# TensorFlow's arguments may be anything, so what they are is for tests to say, not for types.
# pyright: basic
"""MonitoredSession and its kin: sessions with hooks, queue runners, recovery and a clean end."""

from __future__ import annotations

import abc
import inspect
from collections.abc import Callable
from types import TracebackType
from typing import Any

from schemas import config_pb2
from toolkit.client.construction import context
from toolkit.errors import AbortedError, OutOfRangeError, UnavailableError
from toolkit.tensorflow.deprecation import log
from toolkit.tensorflow.families.train.coordinators import Coordinator
from toolkit.tensorflow.families.train.saving_hooks import CheckpointSaverHook, StepCounterHook, SummarySaverHook
from toolkit.tensorflow.families.train.scaffold import Scaffold
from toolkit.tensorflow.families.train.session_hooks import SessionRunArgs, SessionRunContext, SessionRunValues
from toolkit.tensorflow.families.train.session_manager import SessionManager

#: what a lost worker or parameter server raises: a new session is made
_LOST = (AbortedError, UnavailableError)
#: what MonitoredTrainingSession takes "not given" by
USE_DEFAULT = object()


class SessionCreator(abc.ABC):
    """Makes sessions."""

    @abc.abstractmethod
    def create_session(self) -> Any:
        """A session that is ready."""
        raise NotImplementedError(f"{type(self).__name__} has no create_session")


class _ScaffoldedCreator(SessionCreator):
    _scaffold: Scaffold
    _manager: SessionManager | None = None

    def _ready_manager(self) -> SessionManager:
        self._scaffold.finalize()
        if self._manager is None:
            parts = self._scaffold
            self._manager = SessionManager(
                parts.local_init_op, parts.ready_op, parts.ready_for_local_init_op, context.get_default_graph(),
                local_init_feed_dict=parts.local_init_feed_dict,
            )  # fmt: skip
        return self._manager


class ChiefSessionCreator(_ScaffoldedCreator):
    """Makes sessions that restore or initialize the variables."""

    def __init__(
        self, scaffold: Any = None, master: str = "", config: Any = None, checkpoint_dir: Any = None,
        checkpoint_filename_with_path: Any = None,
    ):  # fmt: skip
        self._scaffold = scaffold or Scaffold()
        self._master, self._config = master, config
        self._folder, self._checkpoint = checkpoint_dir, checkpoint_filename_with_path

    def create_session(self) -> Any:
        manager, parts = self._ready_manager(), self._scaffold
        return manager.prepare_session(
            self._master, parts.init_op, parts.saver, self._folder, self._checkpoint, config=self._config,
            init_feed_dict=parts.init_feed_dict, init_fn=parts.init_fn,
        )  # fmt: skip


class WorkerSessionCreator(_ScaffoldedCreator):
    """Makes sessions that wait until the chief has initialized the variables."""

    def __init__(self, scaffold: Any = None, master: str = "", config: Any = None, max_wait_secs: float = 30 * 60):
        self._scaffold = scaffold or Scaffold()
        self._master, self._config, self._max_wait_secs = master, config, max_wait_secs

    def create_session(self) -> Any:
        return self._ready_manager().wait_for_session(self._master, self._config, self._max_wait_secs)


class _Live:
    """One session with its threads, from its making to its end."""

    def __init__(self, creator: SessionCreator, hooks: list[Any], grace_secs: float):
        from toolkit.tensorflow.families.train.training import start_queue_runners

        self.session = creator.create_session()
        self.coordinator = Coordinator(clean_stop_exception_types=[])
        self.stops = False
        self._hooks, self._grace_secs = hooks, grace_secs
        if context.get_default_graph().get_collection("queue_runners"):
            start_queue_runners(sess=self.session, coord=self.coordinator)
        for hook in hooks:
            hook.after_create_session(self.session, self.coordinator)

    def should_stop(self) -> bool:
        self.coordinator.raise_requested_exception()
        return self.coordinator.should_stop() or self.stops

    def run(self, fetches: Any, feed_dict: Any, options: Any, run_metadata: Any) -> Any:
        if self.stops:
            raise RuntimeError("a stop was requested; look at should_stop() before each run()")
        try:
            return self._run(fetches, feed_dict, options, run_metadata)
        except _LOST:
            raise
        except Exception:
            self._raise_loss_of_a_thread()
            raise

    def _raise_loss_of_a_thread(self) -> None:
        """A thread that lost its peers is why the step failed."""
        try:
            self.coordinator.raise_requested_exception()
        except _LOST:
            raise
        except Exception:
            return  # the step's own error says more

    def _run(self, fetches: Any, feed_dict: Any, options: Any, run_metadata: Any) -> Any:
        run_context = SessionRunContext(SessionRunArgs(fetches, feed_dict), self.session)
        asked: list[Any] = []
        wanted: list[Any] = [fetches]
        hook_feeds: dict[Any, Any] = {}
        options = options or config_pb2.RunOptions()
        for hook in self._hooks:
            request = hook.before_run(run_context)
            if request is None:
                continue
            if request.fetches is not None:
                asked.append(hook)
                wanted.append(request.fetches)
            if request.feed_dict:
                _refuse_twice(hook_feeds, request.feed_dict, "two hooks feed")
                hook_feeds.update(request.feed_dict)
            if request.options:
                _merge_options(options, request.options)
        if hook_feeds:
            _refuse_twice(feed_dict or {}, hook_feeds, "a hook and the caller of run feed")
            feed_dict = {**hook_feeds, **(feed_dict or {})}
        run_metadata = run_metadata or config_pb2.RunMetadata()
        value, *found = self.session.run(wanted, feed_dict, options, run_metadata)
        results = {id(hook): each for hook, each in zip(asked, found, strict=True)}
        for hook in self._hooks:
            hook.after_run(run_context, SessionRunValues(results.get(id(hook)), options, run_metadata))
        self.stops = self.stops or run_context.stop_requested
        return value

    def close(self) -> None:
        self.coordinator.request_stop()
        try:
            self.coordinator.join(stop_grace_period_secs=self._grace_secs, ignore_live_threads=True)
        finally:
            self.session.close()


class HookedSession(_Live):
    """A session of the caller's with hooks around its runs: what tests of hooks make (`_HookedSession`).

    Args:
        sess: a session that runs; `close` closes it.
        hooks: have begun already; nothing but `before_run` and `after_run` of theirs is called here.
    """

    def __init__(self, sess: Any, hooks: list[Any]):
        self.session, self.stops = sess, False
        self.coordinator = Coordinator(clean_stop_exception_types=[])
        self._hooks, self._grace_secs = list(hooks), 0.0

    @property
    def graph(self) -> Any:
        return self.session.graph

    def run(self, fetches: Any, feed_dict: Any = None, options: Any = None, run_metadata: Any = None) -> Any:
        return super().run(fetches, feed_dict, options, run_metadata)


def _refuse_twice(feeds: Any, more: Any, who: str) -> None:
    both = [key for key in more if key in feeds]
    if both:
        raise RuntimeError(f"{who} '{getattr(both[0], 'name', both[0])}'; feed it once")


def _merge_options(options: Any, more: Any) -> None:
    """Take over what asks for more: the higher trace level, the longer timeout."""
    options.trace_level = max(options.trace_level, more.trace_level)
    options.timeout_in_ms = max(options.timeout_in_ms, more.timeout_in_ms)
    options.inter_op_thread_pool = max(options.inter_op_thread_pool, more.inter_op_thread_pool)
    options.output_partition_graphs = options.output_partition_graphs or more.output_partition_graphs


class _Monitored:
    """What both monitored sessions share."""

    def __init__(self, creator: Any, hooks: Any, recovers: bool, grace_secs: float):
        self._was_finalized = context.get_default_graph().finalized
        self._hooks = list(hooks or [])
        for hook in self._hooks:
            hook.begin()
        self._creator = creator or ChiefSessionCreator()
        self._recovers, self._grace_secs = recovers, grace_secs
        self._closed = False
        self._live: _Live | None = None
        self._live = self._create()

    def _create(self) -> _Live:
        while True:
            try:
                return _Live(self._creator, self._hooks, self._grace_secs)
            except _LOST as error:
                if not self._recovers:
                    raise
                log().info("a session was lost while it was made (%s); making another one", error)

    @property
    def graph(self) -> Any:
        """The graph that runs; None when the session is closed."""
        return None if self._live is None else self._live.session.graph

    def run(self, fetches: Any, feed_dict: Any = None, options: Any = None, run_metadata: Any = None) -> Any:
        """One step with the hooks around it, as `tf.Session.run`."""
        return self._recovering(lambda live: live.run(fetches, feed_dict, options, run_metadata))

    class StepContext:
        """What `run_step_fn` hands to its function."""

        def __init__(self, session: Any, run_with_hooks_fn: Callable[..., Any]):
            self._session, self._run_with_hooks = session, run_with_hooks_fn

        @property
        def session(self) -> Any:
            """The session itself; what it runs has no hooks around it."""
            return self._session

        def run_with_hooks(self, *args: Any, **kwargs: Any) -> Any:
            """As `run` of the monitored session."""
            return self._run_with_hooks(*args, **kwargs)

        def request_stop(self) -> None:
            """End the step, and the loop.

            Raises:
                StopIteration: always.
            """
            raise StopIteration("the step function has requested a stop")

    def run_step_fn(self, step_fn: Callable[..., Any]) -> Any:
        """Call a function of a StepContext, in which some runs have hooks and others do not; returns what it does.

        Raises:
            ValueError: its argument is not called `step_context`.
        """
        arguments = [name for name in inspect.signature(step_fn).parameters if name != "self"]
        if arguments != ["step_context"]:
            raise ValueError(f"a step function takes one argument, step_context; this one takes {arguments}")

        def step(live: _Live) -> Any:
            def run(fetches: Any, feed_dict: Any = None, options: Any = None, run_metadata: Any = None) -> Any:
                return live.run(fetches, feed_dict, options, run_metadata)

            return step_fn(self.StepContext(live.session, run))

        return self._recovering(step)

    def _recovering(self, step: Callable[[_Live], Any]) -> Any:
        """Do it, again in a new session when this one is lost."""
        if self._closed:
            raise RuntimeError("the monitored session is closed")
        while True:
            try:
                if self._live is None:
                    self._live = self._create()
                return step(self._live)
            except _LOST as error:
                if not self._recovers:
                    raise
                log().info("the session was lost (%s); making a new one", error)
                self._lose()

    def _lose(self) -> None:
        live, self._live = self._live, None
        if live is not None:
            try:
                live.close()
            except _LOST as error:
                log().info("closing the lost session failed: %s", error)

    def should_stop(self) -> bool:
        if self._closed:
            return True
        if self._live is None:
            return False  # lost, and made anew by the next run
        if not self._recovers:
            return self._live.should_stop()
        try:
            return self._live.should_stop()
        except _LOST as error:
            log().info("the session was lost (%s); making a new one", error)
            self._lose()
            self._live = self._create()
            return False
        except Exception:
            return True  # `close` will raise it

    def close(self) -> None:
        """Run the hooks' `end` and close the session."""
        self._close(None)

    def _close(self, kind: type[BaseException] | None) -> None:
        if self._closed:
            raise RuntimeError("the monitored session is closed already")
        live = self._live
        try:
            if kind is None:
                for hook in self._hooks:
                    hook.end(None if live is None else live.session)
        finally:
            self._live, self._closed = None, True
            try:
                if live is not None:
                    live.close()
            finally:
                if not self._was_finalized:
                    context.get_default_graph().unfinalize()

    def __enter__(self) -> Any:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> bool:
        if kind in (OutOfRangeError, StopIteration):
            kind = None
        self._close(kind)
        return kind is None


class MonitoredSession(_Monitored):
    """A session with hooks around its steps. One that is lost (AbortedError, UnavailableError) is made anew, and the
    step runs again. The end of the input ends a `with` block without an error.

    When it is made: `begin` of the hooks, the graph is finalized, the session is made ready by `session_creator`,
    queue runners start, `after_create_session` of the hooks.
    """

    def __init__(self, session_creator: Any = None, hooks: Any = None, stop_grace_period_secs: float = 120):
        super().__init__(session_creator, hooks, True, stop_grace_period_secs)


class SingularMonitoredSession(_Monitored):
    """As MonitoredSession, of one process: nothing is recovered, and the session itself can be had."""

    def __init__(
        self, hooks: Any = None, scaffold: Any = None, master: str = "", config: Any = None,
        checkpoint_dir: Any = None, stop_grace_period_secs: float = 120, checkpoint_filename_with_path: Any = None,
    ):  # fmt: skip
        creator = ChiefSessionCreator(scaffold, master, config, checkpoint_dir, checkpoint_filename_with_path)
        super().__init__(creator, hooks, False, stop_grace_period_secs)

    def raw_session(self) -> Any:
        return None if self._live is None else self._live.session


def _chosen(steps: Any, secs: Any, default_steps: Any, default_secs: Any) -> tuple[Any, Any]:
    """Both numbers where none is given, else what is given alone."""
    if steps is USE_DEFAULT and secs is USE_DEFAULT:
        return default_steps, default_secs
    return None if steps is USE_DEFAULT else steps, None if secs is USE_DEFAULT else secs


def MonitoredTrainingSession(  # noqa: N802 (TensorFlow's name)
    master: str = "", is_chief: bool = True, checkpoint_dir: Any = None, scaffold: Any = None, hooks: Any = None,
    chief_only_hooks: Any = None, save_checkpoint_secs: Any = USE_DEFAULT, save_summaries_steps: Any = USE_DEFAULT,
    save_summaries_secs: Any = USE_DEFAULT, config: Any = None, stop_grace_period_secs: float = 120,
    log_step_count_steps: Any = 100, max_wait_secs: float = 7200, save_checkpoint_steps: Any = USE_DEFAULT,
    summary_dir: Any = None, save_graph_def: bool = True,
) -> MonitoredSession:  # fmt: skip
    """A monitored session with the hooks that training usually has, the chief's in front of all others: steps per
    second, summaries, checkpoints. Checkpoints come every 600 seconds, summaries every 100 steps, by default."""
    summary_steps, summary_secs = _chosen(save_summaries_steps, save_summaries_secs, 100, None)
    save_steps, save_secs = _chosen(save_checkpoint_steps, save_checkpoint_secs, None, 600)
    scaffold = scaffold or Scaffold()
    creator: SessionCreator
    if not is_chief:
        creator = WorkerSessionCreator(scaffold, master, config, max_wait_secs)
        return MonitoredSession(creator, hooks, stop_grace_period_secs)
    creator = ChiefSessionCreator(scaffold, master, config, checkpoint_dir)
    all_hooks = list(chief_only_hooks or [])
    summary_dir = summary_dir or checkpoint_dir
    if summary_dir and log_step_count_steps and log_step_count_steps > 0:
        all_hooks.append(StepCounterHook(log_step_count_steps, output_dir=summary_dir))
    if summary_dir and ((summary_steps or 0) > 0 or (summary_secs or 0) > 0):
        all_hooks.append(SummarySaverHook(summary_steps, summary_secs, summary_dir, scaffold=scaffold))
    if checkpoint_dir and ((save_secs or 0) > 0 or (save_steps or 0) > 0):
        all_hooks.append(
            CheckpointSaverHook(checkpoint_dir, save_secs, save_steps, scaffold=scaffold, save_graph_def=save_graph_def)
        )
    all_hooks += hooks or []
    return MonitoredSession(creator, all_hooks, stop_grace_period_secs)
