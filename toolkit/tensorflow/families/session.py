# TensorFlow's arguments may be anything, so what they are is for tests to say, not for types.
# pyright: basic
"""Session and InteractiveSession with TensorFlow 1's arguments."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from schemas import config_pb2
from toolkit.client import context, session_stack
from toolkit.runtime import session as runtime
from toolkit.runtime.targets import is_remote
from toolkit.tensorflow.families import handles


def defaults() -> dict[str, Any]:
    """What `tf.config` has set for all sessions."""
    module = sys.modules.get("toolkit.tensorflow.families.config")
    if module is None:  # nobody has set anything
        return {}
    chosen: Any = module.settings
    found: dict[str, Any] = {}
    if chosen.intra_op_threads:
        found["threads"] = chosen.intra_op_threads
    if chosen.inter_op_threads > 1:
        found["inter_op_threads"] = chosen.inter_op_threads
    if chosen.devices:
        found["devices"] = {"CPU": len(chosen.devices)}
    return found


def settings(config: Any) -> dict[str, Any]:
    """A ConfigProto as the settings of a session.

    Threads, the number of CPU devices and a timeout are heeded. Nodes that ask for a device that is not here run on one
    that is, whatever `allow_soft_placement` says: programs come with the devices of the machine they were written on.
    """
    found: dict[str, Any] = defaults()
    if config is None:
        return found
    if config.intra_op_parallelism_threads > 0:
        found["threads"] = config.intra_op_parallelism_threads
    if config.inter_op_parallelism_threads > 1:
        found["inter_op_threads"] = config.inter_op_parallelism_threads
    if config.device_count.get("CPU", 1) > 1:
        found["devices"] = {"CPU": config.device_count["CPU"]}
    return found


#: what is told of every session when it is opened: `graphmill build --until session` listens
opened: list[Callable[[Any], None]] = []


class BaseSession(runtime.Session):
    """What Session and InteractiveSession share.

    Args:
        target: "" or "local://NAME"; sessions with the same name share variables. "grpc://HOST:PORT": a master.
        config: a ConfigProto; see `settings`. A master is sent all of it.
    """

    casts_feeds = True

    def __init__(self, target: str = "", graph: Any = None, config: Any = None):
        graph = context.get_default_graph() if graph is None else graph
        for listener in list(opened):
            listener(graph)
        target = target.decode() if isinstance(target, bytes) else target or ""
        self._target = target
        if is_remote(target):
            super().__init__(graph, target=target, config=config or config_pb2.ConfigProto())
        else:
            super().__init__(graph, target=target, **settings(config))
        self._timeout = 0 if config is None else config.operation_timeout_in_ms

    @property
    def sess_str(self) -> str:
        return self._target if self.is_remote else ""

    @property
    def graph_def(self) -> Any:
        return self.graph.as_graph_def()

    def run(  # type: ignore[override]  # TensorFlow's run has no keywords of ours
        self, fetches: Any, feed_dict: Any = None, options: Any = None, run_metadata: Any = None
    ) -> Any:
        values = super().run(fetches, feed_dict, options, run_metadata, timeout_ms=self._timeout or None)
        return handles.wrapped(fetches, values, self) if handles.USED in self.graph.extras else values

    def make_callable(self, fetches: Any, feed_list: Any = None, accept_options: bool = False) -> Callable[..., Any]:
        call = super().make_callable(fetches, feed_list or [])
        if not accept_options:
            return call
        feeds = list(feed_list or [])

        def with_options(*values: Any, options: Any = None, run_metadata: Any = None) -> Any:
            return self.run(fetches, dict(zip(feeds, values, strict=True)), options, run_metadata)

        return with_options

    def partial_run_setup(self, fetches: Any, feeds: Any = None) -> str:
        return super().partial_run_setup(fetches, feeds or [])


class Session(BaseSession):
    """Runs the operations of a graph."""

    def __init__(self, target: str = "", graph: Any = None, config: Any = None):
        super().__init__(target, graph, config)

    @staticmethod
    def reset(target: str, containers: Any = None, config: Any = None) -> None:
        runtime.Session.reset(target, containers, config)


class InteractiveSession(BaseSession):
    """A session that is the default one from the start until it is closed."""

    def __init__(self, target: str = "", graph: Any = None, config: Any = None):
        super().__init__(target, graph, config)
        self._given = graph
        if graph is not None:
            self._scope = graph.as_default()
            self._scope.__enter__()
        session_stack.push(self)

    def close(self) -> None:
        if not self._closed:
            session_stack.pop(self)
            if self._given is not None:
                self._scope.__exit__(None, None, None)
        super().close()


def get_default_session() -> Any:
    return session_stack.get_default_session()


ConfigProto = config_pb2.ConfigProto
