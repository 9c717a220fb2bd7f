"""Named objects that outlive a step, by container and name (TensorFlow's ResourceMgr)."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, TypeVar

from toolkit.errors import AlreadyExistsError, InvalidArgumentError, NotFoundError, UsageError
from toolkit.forks import free_in_children, held_over_forks

T = TypeVar("T")

DEFAULT_CONTAINER = "localhost"


class ResourceManager:
    """The resources of a session, of a server, or of one step.

    Safe to use from many threads. Objects with a `release()` method have it called when they are removed.

    Attributes:
        generation: grows whenever something is removed, so that what was looked up before must be looked up again.
    """

    def __init__(self, default_container: str = DEFAULT_CONTAINER) -> None:
        self._default = default_container
        self._containers: dict[str, dict[tuple[type, str], object]] = {}
        self._lock = threading.RLock()
        free_in_children(self, "_lock")
        self._reactions: list[tuple[tuple[type, ...], Callable[[Any], None]]] = []
        self.generation = 0

    def _container(self, name: str) -> dict[tuple[type, str], object]:
        return self._containers.setdefault(name or self._default, {})

    def get(self, container: str, name: str, kind: type[T]) -> T:
        """The resource of that name.

        Raises:
            NotFoundError: there is none.
            InvalidArgumentError: the name belongs to a resource of another kind.
        """
        with self._lock:
            resources = self._container(container)
            found = resources.get((kind, name))
            if found is None:
                others = [k.__name__ for k, n in resources if n == name]
                if others:
                    raise InvalidArgumentError(f"resource '{name}' is a {others[0]}, not a {kind.__name__}")
                raise NotFoundError(f"resource {container or self._default}/{name} ({kind.__name__}) does not exist")
            return found  # type: ignore[return-value]

    def get_or_create(self, container: str, name: str, kind: type[T], make: Callable[[], T]) -> T:
        with self._lock:
            resources = self._container(container)
            found = resources.get((kind, name))
            if found is None:
                found = resources[(kind, name)] = make()
                self._made(found)
            return found  # type: ignore[return-value]

    def create(self, container: str, name: str, value: object) -> None:
        """Add a resource.

        Raises:
            AlreadyExistsError: the name is taken by a resource of its kind.
        """
        with self._lock:
            resources = self._container(container)
            if resources.setdefault((type(value), name), value) is not value:
                raise AlreadyExistsError(f"resource {container or self._default}/{name} exists already")
            self._made(value)

    def delete(self, container: str, name: str) -> None:
        """Remove every resource of that name.

        Raises:
            NotFoundError: there is none.
        """
        with self._lock:
            resources = self._container(container)
            keys = [key for key in resources if key[1] == name]
            if not keys:
                raise NotFoundError(f"resource {container or self._default}/{name} does not exist")
            removed = [resources.pop(key) for key in keys]
            self.generation += 1
        _release(removed)

    def clear(self, containers: list[str] | None = None) -> None:
        """Empty the given containers, or all (Session.reset)."""
        with self._lock:
            names = list(self._containers) if containers is None else containers
            removed = [value for name in names for value in self._containers.pop(name, {}).values()]
            self.generation += 1
        _release(removed)

    def all_of(self, kind: type[T]) -> list[T]:
        with self._lock:
            return [v for c in self._containers.values() for v in c.values() if isinstance(v, kind)]

    def for_each(self, kinds: tuple[type, ...], react: Callable[[Any], None]) -> None:
        """Call `react` with every resource of these kinds, and with each that is made later, before anybody has it."""
        with self._lock:
            self._reactions.append((kinds, react))
            found = [v for c in self._containers.values() for v in c.values() if isinstance(v, kinds)]
        for value in found:
            react(value)

    def _made(self, value: object) -> None:
        for kinds, react in self._reactions:
            if isinstance(value, kinds):
                react(value)


_shared: dict[str, ResourceManager] = {}
_shared_lock = held_over_forks()
SHARED_PREFIX = "local://"


def shared_resources(target: str) -> ResourceManager:
    """The resources that all sessions of a target in this process share.

    Raises:
        UsageError: the target is not of the form local://NAME.
    """
    if not target.startswith(SHARED_PREFIX) or target == SHARED_PREFIX:
        raise UsageError(f"'{target}' is not a session target; expected '' or {SHARED_PREFIX}NAME")
    with _shared_lock:
        return _shared.setdefault(target, ResourceManager())


def _release(resources: list[Any]) -> None:
    for resource in resources:
        release = getattr(resource, "release", None)
        if release is not None:
            release()
