"""MasterService: what TensorFlow's clients, and ours, ask of a master."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from schemas import config_pb2, master_pb2
from toolkit.cluster.master.master import Master
from toolkit.cluster.master.session import ClusterSession
from toolkit.cluster.rpc import services, statuses, tensors
from toolkit.errors import CancelledError, GraphmillError, InvalidArgumentError, UnavailableError, UnimplementedError
from toolkit.runtime.steps.cancellation import CancellationManager

#: callables that one session has at once
MOST_CALLABLES = 10_000
#: methods whose requests and responses are bytes
_RAW = ("RunStep", "RunCallable")
# numbers of fields: of RunStep's messages and of RunCallable's
_FEED, _TENSOR = 2, 1
_CALLABLE_FEED, _FETCH = 3, 1


@dataclass(frozen=True, slots=True)
class _Callable:
    feeds: tuple[str, ...]
    wanted: tuple[str, ...]
    fetches: int
    options: config_pb2.RunOptions


class MasterService:
    """The methods, as functions of a request and a `grpc.ServicerContext` (`rpc.services.handler`)."""

    def __init__(self, master: Master):
        self._master = master
        self._callables: dict[str, dict[int, _Callable]] = {}
        self._numbers = itertools.count(1)
        self._lock = threading.Lock()
        self._draining = False
        self._running = 0
        self._idle = threading.Condition(self._lock)

    def methods(self) -> dict[str, Callable[[Any, Any], Any]]:
        """By name."""
        return {
            "CreateSession": _answered(self.create_session),
            "ExtendSession": _answered(self.extend_session),
            "PartialRunSetup": _answered(self.partial_run_setup),
            "RunStep": _answered(self.run_step),
            "CloseSession": _answered(self.close_session),
            "ListDevices": _answered(self.list_devices),
            "Reset": _answered(self.reset),
            "MakeCallable": _answered(self.make_callable),
            "RunCallable": _answered(self.run_callable),
            "ReleaseCallable": _answered(self.release_callable),
        }

    def handler(self) -> Any:
        """What a `grpc.Server` is given."""
        return services.handler(services.MASTER, self.methods(), raw=_RAW, raw_requests=_RAW)

    # -- sessions ----------------------------------------------------------------------------------------

    def create_session(self, request: Any, context: Any) -> Any:
        """Waits for the tasks of the cluster as long as the client does."""
        session = self._master.create_session(request.graph_def, request.config, context.is_active)
        if not context.is_active():  # nobody knows the handle
            session.close()
        return master_pb2.CreateSessionResponse(session_handle=session.handle, graph_version=session.graph_version)

    def extend_session(self, request: Any, context: Any) -> Any:
        session = self._master.session(request.session_handle)
        version = session.extend(request.graph_def, request.current_graph_version)
        return master_pb2.ExtendSessionResponse(new_graph_version=version)

    def close_session(self, request: Any, context: Any) -> Any:
        session = self._master.session(request.session_handle)
        self._callables.pop(session.handle, None)
        session.close()
        return master_pb2.CloseSessionResponse()

    def reset(self, request: Any, context: Any) -> Any:
        self._callables.clear()
        self._master.reset(list(request.container), list(request.device_filters))
        return master_pb2.ResetResponse()

    def list_devices(self, request: Any, context: Any) -> Any:
        own, *others = self._master.devices(request.session_handle)
        return master_pb2.ListDevicesResponse(
            local_device=own.attributes, remote_device=[device for each in others for device in each.attributes]
        )

    # -- steps -------------------------------------------------------------------------------------------

    def run_step(self, data: bytes, context: Any) -> bytes:
        """RunStep, whose request and response are bytes: large tensors are not copied on their way."""
        request, feeds = tensors.take_named(data, master_pb2.RunStepRequest, _FEED)
        metadata = config_pb2.RunMetadata() if _wants_metadata(request.options) else None
        wanted = [*request.fetch, *request.target]
        try:
            values = self.step(
                request.session_handle, wanted, feeds, request.options, metadata, context, request.partial_run_handle
            )
        except GraphmillError as error:
            if not request.store_errors_in_response_body:
                raise
            code, message = statuses.status_of(error)
            answer = master_pb2.RunStepResponse(status_code=code, status_error_message=message)  # type: ignore[arg-type]
            return answer.SerializeToString()
        parts = [master_pb2.RunStepResponse(metadata=metadata).SerializeToString()] if metadata is not None else []
        for name, value in zip(request.fetch, values, strict=False):  # targets have no value
            parts += tensors.named_tensor(_TENSOR, name, value)
        return b"".join(parts)

    def step(
        self, handle: str, wanted: Sequence[str], feeds: Mapping[str, Any], options: config_pb2.RunOptions | None,
        metadata: config_pb2.RunMetadata | None, context: Any, partial_run: str = "",
    ) -> Sequence[Any]:  # fmt: skip
        """Run a step, or go on with one.

        Args:
            wanted: names of tensors and operations.
            context: of the call, with whose end the step ends.
        """
        session = self._master.session(handle)
        if partial_run:
            return self._run(session, context, lambda: session.partial_run(partial_run, wanted, feeds))
        return self._run(session, context, lambda: session.run(wanted, feeds, options, metadata))

    def partial_run_setup(self, request: Any, context: Any) -> Any:
        session = self._master.session(request.session_handle)
        handle = session.partial_run_setup([*request.fetch, *request.target], list(request.feed))
        return master_pb2.PartialRunSetupResponse(partial_run_handle=handle)

    def make_callable(self, request: Any, context: Any) -> Any:
        session = self._master.session(request.session_handle)
        options = request.options
        if options.tensor_connection:
            raise UnimplementedError(
                "callables cannot connect tensors with each other; feed the one that is to be replaced"
            )
        if len(set(options.feed)) < len(options.feed):
            raise InvalidArgumentError(f"a callable feeds each tensor once, not {', '.join(options.feed)}")
        made = _Callable(
            tuple(options.feed), (*options.fetch, *options.target), len(options.fetch), options.run_options
        )
        session.compiled(list(made.wanted), made.feeds)
        with self._lock:
            known = self._callables.setdefault(session.handle, {})
            if len(known) >= MOST_CALLABLES:
                raise InvalidArgumentError(f"a session has {MOST_CALLABLES:,} callables at most; release some")
            number = next(self._numbers)
            known[number] = made
        return master_pb2.MakeCallableResponse(handle=number)

    def run_callable(self, data: bytes, context: Any) -> bytes:
        """RunCallable; see `run_step`."""
        request, arguments = tensors.take_tensors(data, master_pb2.RunCallableRequest, _CALLABLE_FEED)
        made = self._callable(request.session_handle, request.handle)
        metadata = config_pb2.RunMetadata() if _wants_metadata(made.options) else None
        values = self.step_of_callable(request.session_handle, request.handle, arguments, metadata, context)
        parts = [] if metadata is None else [master_pb2.RunCallableResponse(metadata=metadata).SerializeToString()]
        for value in values:
            parts += tensors.tensor_field(_FETCH, value)
        return b"".join(parts)

    def _callable(self, handle: str, number: int) -> _Callable:
        made = self._callables.get(self._master.session(handle).handle, {}).get(number)
        if made is None:
            raise InvalidArgumentError(f"the session has no callable {number}; it was released")
        return made

    def step_of_callable(
        self, handle: str, number: int, arguments: Sequence[Any], metadata: config_pb2.RunMetadata | None, context: Any
    ) -> Sequence[Any]:
        """Run a callable; see `step`."""
        session, made = self._master.session(handle), self._callable(handle, number)
        if len(arguments) != len(made.feeds):
            raise InvalidArgumentError(f"the callable takes {len(made.feeds)} tensor(s), not {len(arguments)}")
        feeds = dict(zip(made.feeds, arguments, strict=True))
        values = self._run(session, context, lambda: session.run(list(made.wanted), feeds, made.options, metadata))
        return values[: made.fetches]

    def release_callable(self, request: Any, context: Any) -> Any:
        session = self._master.session(request.session_handle)
        if self._callables.get(session.handle, {}).pop(request.handle, None) is None:
            raise InvalidArgumentError(f"the session has no callable {request.handle}; it was released")
        return master_pb2.ReleaseCallableResponse()

    def _run(self, session: ClusterSession, context: Any, run: Callable[[], Sequence[Any]]) -> Sequence[Any]:
        """Run steps that end when the client's call does."""
        ending = CancellationManager()
        if not context.add_callback(ending.cancel):
            raise CancelledError("the client has gone")
        with self._lock:
            if self._draining:
                raise UnavailableError(f"{self._master.own.name} is being shut down and runs no new steps")
            self._running += 1
        try:
            return session.run_for(ending, run)
        except CancelledError:
            if self._master.is_closing and not ending.is_cancelled:  # a session recovers from that
                raise UnavailableError(f"{self._master.own.name} was shut down while it ran the step") from None
            raise
        finally:
            with self._lock:
                self._running -= 1
                self._idle.notify_all()

    @property
    def running(self) -> int:
        """Steps that run now."""
        return self._running

    def drain(self, seconds: float) -> bool:
        """Refuse new sessions and steps, and wait for those that run.

        Returns:
            whether all have ended within that time.
        """
        self._master.refuse()
        with self._lock:
            self._draining = True
            return self._idle.wait_for(lambda: not self._running, seconds)


def _answered(method: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """A method whose errors are the statuses of its calls."""

    def call(request: Any, context: Any) -> Any:
        try:
            return method(request, context)
        except Exception as error:
            statuses.abort(context, error)

    return call


def _wants_metadata(options: config_pb2.RunOptions) -> bool:
    return bool(options.trace_level or options.output_partition_graphs)
