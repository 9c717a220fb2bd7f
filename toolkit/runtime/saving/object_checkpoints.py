"""Checkpoints of objects, written and read in sessions: what variables hold under the paths that lead to them.

Values go through `Session.run`: fetched from variables, and fed to what initializes them, so that nothing is added to
the graph and a finalized one will do.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from toolkit.client.construction import session_stack
from toolkit.client.trackables import Match, Objects, PythonState
from toolkit.client.variables.base import BaseVariable
from toolkit.errors import InvalidArgumentError, NotFoundError
from toolkit.formats import bundle
from toolkit.formats.bundle import object_graph, storage
from toolkit.formats.bundle.source import TensorSource
from toolkit.formats.bundle.state import exists
from toolkit.graph.shape import Shape


def session_of(session: Any, root: Any, what: str) -> Any:
    """The session that is given, or the default one.

    Raises:
        UsageError: there is none.
    """
    variables = Objects(root).variables()
    return session_stack.session_for(session, variables[0].graph if variables else None, what)


def write(root: Any, prefix: str, session: Any) -> str:
    """Write what an object's variables hold in a session; returns the prefix."""
    message, values = Objects(root).described()
    variables = {key: value for key, value in values.items() if isinstance(value, BaseVariable)}
    held: dict[str, Any] = session.run(variables) if variables else {}
    _grant(session, write=prefix + "*")
    storage.make_folder(prefix)
    with bundle.BundleWriter(prefix) as writer:
        for key in sorted([*values, object_graph.KEY]):
            if key == object_graph.KEY:
                writer.add(key, np.array(message.SerializeToString(deterministic=True), object))
            elif key in variables:
                writer.add(key, np.asarray(held[key]), variables[key].dtype.base)
            else:
                state = values[key].serialize()
                writer.add(key, np.array(state.encode() if isinstance(state, str) else state, object))
    return prefix


def _grant(session: Any, **paths: str) -> None:
    access = getattr(session, "access", None)
    if access is not None:
        access.grant(**paths)


class NothingToLoad:
    """What `restore(None)` gives: variables are only initialized."""

    def __init__(self, root: Any):
        self._root = root

    def _no_checkpoint(self) -> Any:
        raise AssertionError("there is no checkpoint (save_path is None), so nothing was loaded")

    def assert_consumed(self) -> Any:
        return self._no_checkpoint()

    def assert_existing_objects_matched(self) -> Any:
        return self._no_checkpoint()

    def assert_nontrivial_match(self) -> Any:
        return self._no_checkpoint()

    def run_restore_ops(self, session: Any = None) -> None:
        self._no_checkpoint()

    def expect_partial(self) -> Any:
        return self

    def initialize_or_restore(self, session: Any = None) -> None:
        """Give all variables that are reached their initial values."""
        _initialize(Objects(self._root).variables(), session_of(session, self._root, "initialize_or_restore"))


class Loading:
    """A checkpoint of objects, to be read into what the program has by the time that it asks for it.

    Args:
        skip_slots: leave out the variables that optimizers keep.

    Raises:
        UsageError: there is no such checkpoint.
    """

    def __init__(self, root: Any, prefix: str, skip_slots: bool = False):
        self._root = root
        self._prefix = prefix
        self._skip_slots = skip_slots
        if not exists(prefix):
            raise NotFoundError(f"there is no such checkpoint (no file '{prefix}.index')", file=prefix)
        with bundle.open_checkpoint(prefix) as source:
            found = object_graph.find_object_graph(source)
            self._message = None if found is None else found.message
            self._names = list(source)

    @property
    def is_by_name(self) -> bool:
        """Whether it is none of objects: variables are found by their own names then."""
        return self._message is None

    def _match(self, objects: Objects) -> tuple[list[tuple[Any, str]], list[Any], list[str]]:
        """(object, key), objects without a value, keys that nobody takes."""
        if self._message is not None:
            found: Match = objects.matched(self._message, self._skip_slots)
            return found.keys, found.unmatched, found.unused
        names = set(self._names)
        variables = objects.variables()
        keys = [(variable, variable.op.name) for variable in variables if variable.op.name in names]
        taken = {key for _, key in keys}
        return keys, [v for v in variables if v.op.name not in names], sorted(names - taken)

    def assert_consumed(self) -> Loading:
        """Make sure that every object has a value and every value an object.

        Raises:
            AssertionError: one is left.
        """
        _, without, unused = self._match(Objects(self._root))
        if without:
            raise AssertionError(f"{self._prefix} has no values for {_listed(without)}")
        if unused:
            raise AssertionError(f"{self._prefix} has values that no object takes: {_listed(unused)}")
        return self

    def assert_existing_objects_matched(self) -> Loading:
        """Make sure that every object that there is by now has a value.

        Raises:
            AssertionError: one has none.
        """
        _, without, _ = self._match(Objects(self._root))
        if without:
            raise AssertionError(f"{self._prefix} has no values for {_listed(without)}")
        return self

    def assert_nontrivial_match(self) -> Loading:
        """Make sure that something besides the root is found.

        Raises:
            AssertionError: nothing is.
        """
        keys, _, _ = self._match(Objects(self._root))
        if not keys:
            raise AssertionError(f"nothing of {self._prefix} fits the objects of this program")
        return self

    def expect_partial(self) -> Loading:
        """Say that values may be left; nobody is warned of them here."""
        return self

    def run_restore_ops(self, session: Any = None) -> None:
        """Give the values to variables that there are by now.

        Raises:
            UsageError: there is no session.
            InvalidArgumentError: a value has another type or shape than its variable.
        """
        keys, _, _ = self._match(Objects(self._root))
        self._load(keys, session_of(session, self._root, "run_restore_ops"))

    def initialize_or_restore(self, session: Any = None) -> None:
        """As `run_restore_ops`; what has no value in the checkpoint gets its initial one."""
        keys, without, _ = self._match(Objects(self._root))
        running = session_of(session, self._root, "initialize_or_restore")
        self._load(keys, running)
        _initialize([each for each in without if isinstance(each, BaseVariable)], running)

    def _load(self, keys: Sequence[tuple[Any, str]], session: Any) -> None:
        _grant(session, read=self._prefix + "*")
        feeds: dict[Any, Any] = {}
        fetched: list[Any] = []
        with bundle.open_checkpoint(self._prefix) as source:
            for value, key in keys:
                if isinstance(value, PythonState):
                    value.deserialize(source.read(key).item())
                    continue
                feeds[value.initializer.inputs[1]] = self._fitting(source, key, value)
                fetched.append(value.initializer)
        if fetched:
            session.run(fetched, feeds)

    def _fitting(self, source: TensorSource, key: str, variable: BaseVariable) -> Any:
        entry, kind, shape = source.entry(key), variable.dtype.base, variable.static_shape
        if entry.dtype is not kind or not shape.is_compatible_with(Shape(entry.shape)):
            raise InvalidArgumentError(
                f"variable '{variable.op.name}' is {kind} of shape {shape}, but '{key}' in the checkpoint is "
                f"{entry.dtype} of shape {Shape(entry.shape)}",
                file=self._prefix,
            )
        return source.read(key)


def _initialize(variables: Sequence[BaseVariable], session: Any) -> None:
    started = [variable.initializer for variable in variables if variable.initializer is not None]
    if started:
        session.run(started)


def _listed(things: Sequence[Any]) -> str:
    shown = [each.op.name if isinstance(each, BaseVariable) else str(each) for each in things]
    return ", ".join(f"'{each}'" for each in shown[:5]) + (f" and {len(shown) - 5} more" if len(shown) > 5 else "")
