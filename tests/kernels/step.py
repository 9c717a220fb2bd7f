"""A stand-in for the running step, for tests that call STATEFUL and ASYNC kernels without the runtime."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from toolkit.errors import AlreadyExistsError, InvalidArgumentError, NotFoundError


class DictResources:
    """`toolkit.kernels.context.Resources` over a dictionary."""

    def __init__(self) -> None:
        self.items: dict[tuple[str, str, str], Any] = {}

    def _find(self, container: str, name: str, kind: type[Any]) -> Any:
        for (c, n, _), value in self.items.items():
            if (c, n) == (container, name):
                if not isinstance(value, kind):
                    raise InvalidArgumentError(f"resource '{container}/{name}' is not a {kind.__name__}")
                return value
        return None

    def get(self, container: str, name: str, kind: type[Any]) -> Any:
        found = self._find(container, name, kind)
        if found is None:
            raise NotFoundError(f"there is no resource '{container}/{name}'")
        return found

    def get_or_create(self, container: str, name: str, kind: type[Any], make: Callable[[], Any]) -> Any:
        found = self._find(container, name, kind)
        if found is None:
            found = self.items[container, name, kind.__name__] = make()
        return found

    def create(self, container: str, name: str, value: object) -> None:
        if self._find(container, name, object) is not None:
            raise AlreadyExistsError(f"resource '{container}/{name}' exists")
        self.items[container, name, type(value).__name__] = value

    def delete(self, container: str, name: str) -> None:
        found = [key for key in self.items if key[:2] == (container, name)]
        if not found:
            raise NotFoundError(f"there is no resource '{container}/{name}'")
        for key in found:
            del self.items[key]


class NeverCancelled:
    is_cancelled = False

    def register(self, callback: Callable[[], None]) -> int:
        return 0

    def deregister(self, token: int) -> None:
        return None


class NoService:
    """Stands for a service the test did not provide."""

    def __init__(self, name: str):
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        raise AssertionError(f"the test's step has no {self._name}")


class FakeStep:
    """`toolkit.kernels.context.StepContext` for one kernel at a time; fields may be replaced by the test."""

    def __init__(self) -> None:
        self.step_id = 1
        self.resources: Any = DictResources()
        self.step_resources: Any = DictResources()
        self.cancellation: Any = NeverCancelled()
        self.rendezvous: Any = NoService("rendezvous")
        self.functions: Any = NoService("functions")
        self.graph_seed_state: dict[str, Any] = {}
        self.arguments: Sequence[Any] = ()
        self.results: dict[int, Any] = {}

    def set_result(self, index: int, value: Any) -> None:
        self.results[index] = value

    def device(self, name: str) -> Any:
        raise AssertionError(f"the test's step has no device '{name}'")
