# TensorFlow's arguments may be anything, so what they are is for tests to say, not for types.
# pyright: basic
"""Session and InteractiveSession with TensorFlow 1's arguments."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from schemas import config_pb2
from toolkit.client.construction import context, session_stack
from toolkit.kernels.device_options import DeviceOptions, parse_visible
from toolkit.runtime import session as runtime
from toolkit.runtime.sessions import config_fields
from toolkit.runtime.sessions.targets import is_remote
from toolkit.tensorflow.families.framework import handles


def defaults() -> dict[str, Any]:
    """What `tf.config` has set for all sessions."""
    module = sys.modules.get("toolkit.tensorflow.families.platform.config")
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


def with_gpus(found: dict[str, Any], config: Any) -> dict[str, Any]:
    """The settings of a session with the GPUs that there are, as TensorFlow's sessions have them: all of them, but for
    what `tf.config`, `device_count` and `gpu_options` say. Where there is none, nothing is said about them either."""
    from toolkit.kernels import device_types

    there = device_types.there("GPU")
    if not there:
        return found
    module = sys.modules.get("toolkit.tensorflow.families.platform.config")
    options = DeviceOptions() if module is None else module.gpu_options()
    visible = None if config is None else parse_visible(config.gpu_options.visible_device_list)
    if visible is not None:
        options = replace(options, visible=visible)
    if options.visible is not None:
        there = len(options.visible)
    count = there if config is None else min(there, max(0, config.device_count.get("GPU", there)))
    if not count:
        return found
    if config is not None:
        said = config.gpu_options
        part = said.per_process_gpu_memory_fraction
        if 0 < part < 1:  # all of the memory, as RunConfig says by default, is no limit and nothing to take at once
            options = replace(options, memory=float(part), grows=said.allow_growth)
        elif said.allow_growth:
            options = replace(options, grows=True)
    found["devices"] = {"CPU": 1, **found.get("devices", {}), "GPU": count}
    found["device_options"] = options
    return found


def settings(config: Any) -> dict[str, Any]:
    """A ConfigProto as the settings of a session; what becomes of each field is in `runtime/sessions/config_fields`.

    Raises:
        OpError: a value that cannot be, or that asks for what is refused.
    """
    found: dict[str, Any] = defaults()
    if config is None:
        return with_gpus(found, None)
    config_fields.check_config(config)
    if config.intra_op_parallelism_threads > 0:
        found["threads"] = config.intra_op_parallelism_threads
    pools = config.session_inter_op_thread_pool
    threads = (pools[0].num_threads if pools else 0) or config.inter_op_parallelism_threads
    if threads > 1:
        found["inter_op_threads"] = threads
    if config.experimental.executor_type == "SINGLE_THREADED_EXECUTOR":
        found.pop("inter_op_threads", None)
    if config.device_count.get("CPU", 1) > 1:
        found["devices"] = {"CPU": config.device_count["CPU"]}
    return with_gpus(found, config)


_METADATA = "session_metadata"
#: the memory limit that TensorFlow tells of every CPU
_CPU_MEMORY = 1 << 28


def _logs_placement(config: Any) -> bool:
    module = sys.modules.get("toolkit.tensorflow.families.platform.config")
    chosen: Any = None if module is None else module.settings
    return bool(chosen is not None and chosen.log_placement if config is None else config.log_device_placement)


#: what is told the graph of every session when it is opened
opened: list[Callable[[Any], None]] = []
#: what is told the graph before a session prepares its first step, of one at a master before it connects:
#: `graphmill build --until session` listens
first_steps: list[Callable[[Any], None]] = []


class _DeviceAttributes:
    """What a session tells of a device.

    Attributes:
        memory_limit_bytes: that the runtime may use; of a device of this process what TensorFlow tells of every CPU.
        incarnation: another one each time that the device's process starts, with a sign as in TensorFlow.
    """

    def __init__(self, name: str, device_type: str, memory_limit_bytes: int, incarnation: int):
        self.name, self.device_type = name, device_type
        self.memory_limit_bytes = memory_limit_bytes
        self.incarnation = (incarnation + (1 << 63)) % (1 << 64) - (1 << 63)

    def __repr__(self) -> str:
        return f"_DeviceAttributes({self.name}, {self.device_type}, {self.memory_limit_bytes}, {self.incarnation})"


def reported(device: Any) -> _DeviceAttributes:
    """What is told of a device of this process or of a cluster."""
    memory = getattr(device, "memory_limit", None)
    if memory is None:
        memory = _CPU_MEMORY if device.device_type == "CPU" else _limit_of(device)
    return _DeviceAttributes(device.name, device.device_type, memory, device.incarnation)


def _limit_of(device: Any) -> int:
    from toolkit.kernels import device_types

    found = device_types.memory(device.device_type, device.spec.device_index or 0)
    return 0 if found is None else found.statistics().limit or 0


class BaseSession(runtime.Session):
    """What Session and InteractiveSession share.

    Args:
        target: "" or "local://NAME"; sessions with the same name share variables. "grpc://HOST:PORT": a master.
        config: a ConfigProto; see `settings`. A master is sent all of it.
    """

    casts_feeds = True

    def __init__(self, target: str = "", graph: Any = None, config: Any = None):
        if target is not None and not isinstance(target, str | bytes):
            raise TypeError(f"target is a text, not {type(target).__name__}")
        if config is not None and not hasattr(config, "device_count"):
            raise TypeError(f"config is a ConfigProto, not {type(config).__name__}")
        graph = context.get_default_graph() if graph is None else graph
        for listener in list(opened):
            listener(graph)
        target = target.decode() if isinstance(target, bytes) else target or ""
        self._target = target
        self._has_run = False
        if is_remote(target):  # a listener may want no cluster for what it does
            self._tell_first_step(graph)
        self._config = None if config is None else config_pb2.ConfigProto.FromString(config.SerializeToString())
        if is_remote(target):
            super().__init__(graph, target=target, config=self._config or config_pb2.ConfigProto())
        else:
            alone = self._config is not None and self._config.isolate_session_state
            super().__init__(graph, target="" if alone else target, **settings(config))
        self._timeout = 0 if self._config is None else max(0, self._config.operation_timeout_in_ms)
        logs = _logs_placement(self._config) and not self.is_remote  # a master logs it itself
        self._logged: set[str] | None = set() if logs else None

    def _tell_first_step(self, graph: Any) -> None:
        if not self._has_run:
            self._has_run = True
            for listener in list(first_steps):
                listener(graph)

    @property
    def _graph(self) -> Any:
        return self.graph

    @property
    def sess_str(self) -> bytes:
        return self._target.encode() if self.is_remote else b""

    @property
    def graph_def(self) -> Any:
        return self.graph.as_graph_def()

    def run(  # type: ignore[override]  # TensorFlow's run has no keywords of ours
        self, fetches: Any, feed_dict: Any = None, options: Any = None, run_metadata: Any = None
    ) -> Any:
        if options is not None:
            config_fields.check_run_options(options, self._config)
        values = super().run(fetches, feed_dict, options, run_metadata, timeout_ms=self._timeout or None)
        if run_metadata is not None and self._config is not None and self._config.experimental.HasField(_METADATA):
            run_metadata.session_metadata.CopyFrom(self._config.experimental.session_metadata)
        return handles.wrapped(fetches, values, self) if handles.USED in self.graph.extras else values

    def _feedable(self, key: Any) -> Any:
        if isinstance(key, str) and ":" not in key:
            raise TypeError(f"'{key}' names an operation; what is fed is a tensor, as '{key}:0'")
        found = super()._feedable(key)
        if not getattr(self.graph, "feeds_all", True) and not self.graph.is_feedable(self.graph.tensor(found)):
            raise ValueError(f"'{found.name}' may not be fed (prevent_feeding)")
        return found

    def _compile(self, feeds: Any, fetches: Any, targets: Any) -> Any:
        self._tell_first_step(self.graph)
        if not getattr(self.graph, "fetches_all", True):
            for node in (*(output.node for output in fetches), *targets):
                if not self.graph.is_fetchable(self.graph.operation(node)):
                    raise ValueError(f"'{node.name}' may not be fetched (prevent_fetching)")
        compiled = super()._compile(feeds, fetches, targets)
        if self._logged is not None:
            for device, graph in compiled.stages.partitions.items():
                for node in graph:
                    if not node.op.startswith("_") and node.name not in self._logged:
                        self._logged.add(node.name)
                        print(f"{node.name}: ({node.op}): {device}", file=sys.stderr)
        return compiled

    def list_devices(self) -> list[_DeviceAttributes]:  # type: ignore[override]  # TensorFlow's objects
        return [reported(each) for each in super().list_devices()]

    def make_callable(self, fetches: Any, feed_list: Any = None, accept_options: bool = False) -> Callable[..., Any]:
        call = super().make_callable(fetches, feed_list or [])
        if not accept_options:
            return call
        feeds = list(feed_list or [])

        def with_options(*values: Any, options: Any = None, run_metadata: Any = None) -> Any:
            return self.run(fetches, dict(zip(feeds, values, strict=True)), options, run_metadata)

        return with_options

    def partial_run_setup(self, fetches: Any, feeds: Any = None) -> str:
        self._tell_first_step(self.graph)
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
