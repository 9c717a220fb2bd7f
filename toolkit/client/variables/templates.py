"""Templates: functions that share the variables of their first call (tf.make_template)."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from toolkit.client.construction.context import get_default_graph
from toolkit.client.variables.store import VariableScope, new_scope, variable_scope
from toolkit.errors import UsageError
from toolkit.graph.metagraph import GraphKeys


class Template:
    """Calls a function in one variable scope, which its first call makes, or `create_scope_now` at once.

    Args:
        name: of the scope, made unique; `unique_name` is taken as it is.
        custom_getter: as of a variable scope.
    """

    def __init__(
        self, name: str, func: Callable[..., Any], create_scope_now: bool = False, unique_name: str | None = None,
        custom_getter: Callable[..., Any] | None = None,
    ):  # fmt: skip
        self._name, self._func = name, func
        self._unique_name, self._getter = unique_name, custom_getter
        self._scope: VariableScope | None = None
        self._called = self._made = False
        if create_scope_now:
            self._scope = new_scope(name, unique_name, custom_getter)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self._scope is not None:
            scope: Any = variable_scope(self._scope, reuse=self._called)
        else:
            scope = variable_scope(self._unique_name, self._name, custom_getter=self._getter)
        with scope as entered:
            self._scope = self._scope or entered
            return self._call(args, kwargs)

    def _call(self, args: Any, kwargs: Any) -> Any:
        if not self._made:
            was_called, self._called = self._called, True
            try:
                result = self._func(*args, **kwargs)
            except BaseException:
                self._called = was_called
                raise
            self._made = True
            return result
        trained = get_default_graph().get_collection_ref(GraphKeys.TRAINABLE_VARIABLES)
        before = len(trained)
        result = self._func(*args, **kwargs)
        if len(trained) != before:
            raise UsageError(
                f"the template '{self._name}' has made the variable '{trained[before].name}' when it was called again; "
                "variables that its calls share are made with get_variable"
            )
        return result

    @property
    def name(self) -> str:
        return self._name

    @property
    def func(self) -> Callable[..., Any]:
        return self._func

    @property
    def variable_scope(self) -> VariableScope | None:
        return self._scope

    @property
    def var_scope(self) -> VariableScope | None:
        return self._scope

    @property
    def variable_scope_name(self) -> str | None:
        """With a slash at its end; None before there is a scope."""
        if self._scope is None:
            return None
        name = self._scope.name
        return name if not name or name.endswith("/") else name + "/"

    def _members(self, key: str) -> list[Any]:
        return get_default_graph().get_collection(key, self.variable_scope_name) if self._made else []

    @property
    def global_variables(self) -> list[Any]:
        return self._members(GraphKeys.GLOBAL_VARIABLES)

    @property
    def local_variables(self) -> list[Any]:
        return self._members(GraphKeys.LOCAL_VARIABLES)

    @property
    def trainable_variables(self) -> list[Any]:
        return self._members(GraphKeys.TRAINABLE_VARIABLES)

    @property
    def variables(self) -> list[Any]:
        return self.global_variables + self.local_variables

    @property
    def non_trainable_variables(self) -> list[Any]:
        trained = set(self.trainable_variables)
        return [v for v in self.global_variables if v not in trained]

    @property
    def weights(self) -> list[Any]:
        return self.variables

    @property
    def trainable_weights(self) -> list[Any]:
        return self.trainable_variables

    @property
    def non_trainable_weights(self) -> list[Any]:
        return self.non_trainable_variables


def make_template(
    name: str, func: Callable[..., Any], create_scope_now: bool = False, unique_name: str | None = None,
    custom_getter: Callable[..., Any] | None = None, **kwargs: Any,
) -> Template:  # fmt: skip
    """A function whose calls share variables; `kwargs` are arguments of each call."""
    bound = functools.partial(func, **kwargs) if kwargs else func
    return Template(name, bound, create_scope_now, unique_name, custom_getter)
