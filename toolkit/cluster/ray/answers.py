"""Calls of actors: what goes wrong in one comes back as the error it is, what goes wrong on the way as a lost task."""

from __future__ import annotations

import pickle
from concurrent.futures import CancelledError as FutureCancelledError
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

from toolkit.cluster.ray.library import ray
from toolkit.cluster.rpc.statuses import status_of, to_error
from toolkit.errors import (
    CancelledError,
    GraphmillError,
    InternalError,
    OpError,
    ResourceExhaustedError,
    UnavailableError,
)


@dataclass(frozen=True, slots=True)
class Failure:
    """The answer of a method that raised something.

    Attributes:
        error: it, if it can be told elsewhere; else what comes nearest to it.
    """

    error: GraphmillError

    @staticmethod
    def of(error: BaseException) -> Failure:
        """Of what was raised."""
        if isinstance(error, GraphmillError):
            try:
                pickle.loads(pickle.dumps(error))
            except Exception:  # an error with arguments of its own, or with something of its process
                pass
            else:
                return Failure(error)
        return Failure(to_error(*status_of(error)))


def begin(actor: Any, method: str, *arguments: Any) -> Future[Any]:
    """Call a method of an actor; a future of its answer, for `checked`."""
    answer: Future[Any] = Future()
    try:
        reference = getattr(actor, method).remote(*arguments)
        under_way: Future[Any] = reference.future()
    except Exception as error:  # the actor is known to be dead, or Ray was left
        settle(answer, error=error)
        return answer

    def arrived(done: Future[Any]) -> None:
        error = done.exception()
        settle(answer, None if error is not None else done.result(), error)

    under_way.add_done_callback(arrived)
    return answer


def settle(answer: Future[Any], value: Any = None, error: BaseException | None = None) -> None:
    """Give a future its end, unless somebody has ended it before."""
    try:
        if error is not None:
            answer.set_exception(error)
        else:
            answer.set_result(value)
    except Exception:  # InvalidStateError: it was given up
        return


def checked(answer: Future[Any], task: str, timeout: float | None = None) -> Any:
    """The value of an answer; waits for it.

    Args:
        task: who is asked, for messages.

    Raises:
        UnavailableError: the actor's process has ended, or is not there.
        TimeoutError: it did not come in time.
        GraphmillError: what the method raised.
    """
    try:
        value = answer.result(timeout)
    except (TimeoutError, GraphmillError):
        raise
    except FutureCancelledError:
        raise CancelledError("the step was cancelled") from None
    except Exception as error:
        raise lost(error, task) from None
    if isinstance(value, Failure):
        raise value.error
    return value


def lost(error: BaseException, task: str) -> OpError:
    """The error of what Ray raised instead of an answer."""
    exceptions = ray().exceptions
    what = str(error).strip().partition("\n")[0].removesuffix(".")
    if isinstance(error, exceptions.OutOfMemoryError):
        return ResourceExhaustedError(f"{task} was ended by Ray, for its host has no memory left: {what}")
    if isinstance(error, exceptions.ObjectStoreFullError):
        return ResourceExhaustedError(f"{task}: Ray has no room for a tensor: {what}")
    if isinstance(error, exceptions.RayTaskError):
        return InternalError(f"{task}: {what}")
    if isinstance(error, exceptions.RayActorError):
        return UnavailableError(f"{task} is lost: its process has ended, or its host ({what})")
    return UnavailableError(f"{task} cannot be reached: {type(error).__name__}: {what}")
