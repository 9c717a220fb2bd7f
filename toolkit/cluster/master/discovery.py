"""Finding the devices of a cluster: every task is asked for its own, until all have answered."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence

from schemas import worker_pb2
from toolkit.cluster.master.found import FoundTask
from toolkit.cluster.master.task import RemoteTask
from toolkit.errors import AbortedError, CancelledError, InvalidArgumentError, OpError, UnavailableError, UsageError
from toolkit.graph.device import DeviceSpec

_LOG = logging.getLogger("graphmill")
#: seconds that one question waits for a task that is not there yet
_ASK_SECONDS = 2.0
#: seconds between two lines that say who is waited for
_SAY_SECONDS = 10.0


def matching(names: Sequence[str], filters: Sequence[str]) -> list[str]:
    """The tasks that device filters leave, "/job:ps" or "/job:worker/task:1" say; all where there are none.

    Raises:
        InvalidArgumentError: a filter is no device name.
    """
    if not filters:
        return list(names)
    try:
        wanted = [DeviceSpec.parse(each) for each in filters]
    except UsageError as error:
        raise InvalidArgumentError(f"a device filter is no device name: {error.message}") from None
    return [
        name for name in names if any(each.without_type_and_index().matches(DeviceSpec.parse(name)) for each in wanted)
    ]


def discover(tasks: Mapping[str, RemoteTask], is_wanted: Callable[[], bool] = lambda: True) -> dict[str, FoundTask]:
    """Ask all tasks for their devices, and wait for those that are not there yet.

    Args:
        tasks: by name.
        is_wanted: whether anybody still waits; asked every second or two.

    Raises:
        AbortedError: nobody waits any more; the message names the tasks that did not answer.
        OpError: a task refuses to answer.
    """
    found: dict[str, FoundTask] = {}
    missing = dict(tasks)
    began = said = time.monotonic()
    while missing:
        calls = {
            name: task.start("GetStatus", worker_pb2.GetStatusRequest(), timeout=_ASK_SECONDS, wait=True)
            for name, task in missing.items()
        }
        for name, call in calls.items():
            try:
                answer = tasks[name].result(call, "GetStatus")
            except OpError as error:
                if not may_come(error):
                    raise
                continue
            found[name] = FoundTask(name, tuple(answer.device_attributes))
            del missing[name]
        if missing and not is_wanted():
            names = ", ".join(str(task) for task in missing.values())
            raise AbortedError(f"nobody waits any more for a session that needs {names}, which does not answer")
        if missing and time.monotonic() - said > _SAY_SECONDS:
            said = time.monotonic()
            names = ", ".join(map(_why, missing.values()))
            _LOG.warning(
                "waiting for %s, for %.0f seconds: start what is missing, or name the tasks that the session needs "
                "(device_filters)", names, said - began,
            )  # fmt: skip
    for meet in (RemoteTask.approach, RemoteTask.meet):
        for task in tasks.values():
            meet(task)
    return {name: found[name] for name in tasks}


def _why(task: RemoteTask) -> str:
    """Why a task is not there: what waits for it is not told."""
    call = task.start("GetStatus", worker_pb2.GetStatusRequest(), timeout=_ASK_SECONDS)
    try:
        task.result(call, "GetStatus")
    except UnavailableError as error:
        return f"{task} ({error.message.rpartition(' cannot be reached: ')[2]})"
    except OpError:
        pass  # it comes, or is slow
    return str(task)


def may_come(error: OpError) -> bool:
    """Whether a task that failed to answer so may do so later: it is not there (UNAVAILABLE) or slow."""
    return error.code in (4, 14) and not isinstance(error, CancelledError)
