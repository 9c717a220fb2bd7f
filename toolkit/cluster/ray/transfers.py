"""Tensors between tasks: who needs one asks the actor of the task that sends it, and is given a Ray object.

On one host that is shared memory, which arrays are views of; small ones come with the answer. Either way they are
read-only, as what comes over gRPC is.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from toolkit.cluster.ray.answers import begin, checked
from toolkit.errors import InternalError, NotFoundError, OpError, UnimplementedError
from toolkit.kernels.cpu.memory import addresses
from toolkit.runtime.steps.rendezvous import Receiver

#: where arrays begin that are no tensors of an arena (ARCHITECTURE.md, on guards)
_ALIGNMENT = 16


def sendable(value: Any) -> Any:
    """A tensor as it can leave its process.

    Raises:
        UnimplementedError: it is a handle or a list, which only its process knows.
    """
    array: Any = value
    if not isinstance(value, np.ndarray | np.generic):
        raise UnimplementedError(f"a {type(value).__name__} cannot leave its process; only tensors are sent")
    if array.dtype == object and any(not isinstance(each, bytes | str) for each in np.asarray(array).flat):
        raise UnimplementedError("handles and variants cannot leave their process; only tensors are sent")
    return array


def received(value: Any) -> Any:
    """A tensor that came: where its memory begins somewhere that compiled code does not bear, in memory of its own."""
    array: Any = value
    if isinstance(value, np.ndarray) and not addresses.begins_at_multiple(array, _ALIGNMENT):
        return array.copy()
    return array


class ActorSender:
    """The actor of a task, as far as it sends tensors."""

    def __init__(self, task: str, actor: Any):
        self._task = task
        self._actor = actor

    def receive(self, step_id: int, key: str, done: Receiver) -> None:
        """Ask for a tensor; see `Worker.receive`. The step's end at the sender ends the waiting."""

        def arrived(answer: Any) -> None:
            try:
                value, is_dead = checked(answer, self._task)
            except OpError as error:
                done(None, False, error)
            except BaseException as error:
                done(None, False, InternalError(f"{self._task}, asked for a tensor: {error}"))
            else:
                done(received(value), is_dead, None)

        begin(self._actor, "receive", step_id, key).add_done_callback(arrived)


class ActorSenders:
    """The actors of the other tasks. See `worker.task.Senders`."""

    def __init__(self) -> None:
        self._made: dict[str, ActorSender] = {}

    def meet(self, actors: dict[str, Any]) -> None:
        """The actors of tasks, by name."""
        for task, actor in actors.items():
            self._made.setdefault(task, ActorSender(task, actor))

    def get(self, task: str, address: str) -> ActorSender:
        """The actor of a task.

        Raises:
            NotFoundError: there is none of this name.
        """
        found = self._made.get(task)
        if found is None:
            raise NotFoundError(f"no actor is known for {task}")
        return found

    def close(self) -> None:
        """Forget them."""
        self._made.clear()
