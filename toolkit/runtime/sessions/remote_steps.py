"""Steps of a session that run at a master: what cannot be asked there, and probes that are told what was recorded."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from schemas import config_pb2
from toolkit.errors import UsageError
from toolkit.runtime.probes.base import Probe, Probes
from toolkit.runtime.sessions.prepared import PreparedStep
from toolkit.runtime.sessions.targets import Remote, StepOptions

if TYPE_CHECKING:
    from toolkit.runtime.probes.trace import TraceProbe


def refuse_settings(target: str, **settings: Any) -> None:
    """What is for steps of this process, where a master has its own.

    Raises:
        UsageError: one of them was given.
    """
    for name, value in settings.items():
        if value:
            raise UsageError(
                f"{name}= is a setting of sessions in this process; at {target} the servers have their own"
            )


def run_remotely(
    remote: Remote,
    prepared: PreparedStep,
    arguments: list[Any],
    options: config_pb2.RunOptions | None,
    metadata: config_pb2.RunMetadata | None,
    timeout_ms: int | None,
    probe: Probe | None,
) -> list[Any]:
    """Run a step at a master; returns the values of what is fetched.

    Raises:
        UsageError: a probe wants to see tensors.
        OpError: the step failed, or the master cannot be reached.
    """
    tracers = _tracers(probe)
    if tracers:
        asked = config_pb2.RunOptions()
        asked.MergeFrom(options or asked)
        asked.trace_level = config_pb2.RunOptions.FULL_TRACE
        options, metadata = asked, config_pb2.RunMetadata() if metadata is None else metadata
    values = remote.run(prepared.compiled, arguments, StepOptions(options, metadata, timeout_ms))
    for tracer in tracers:
        assert metadata is not None
        tracer.told(metadata.step_stats)
    return values


def _tracers(probe: Probe | None) -> list[TraceProbe]:
    if probe is None:
        return []
    if isinstance(probe, Probes):
        return [tracer for each in probe.probes for tracer in _tracers(each)]
    from toolkit.runtime.probes.trace import TraceProbe

    if not isinstance(probe, TraceProbe):
        raise UsageError(f"{type(probe).__name__} looks at tensors, which a master does not show; trace steps there")
    return [probe]
