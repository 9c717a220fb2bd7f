# TensorFlow's arguments may be anything, so what they are is for tests to say, not for types.
# pyright: basic
"""tf.train.Scaffold: what a training session is made of, completed with default operations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

from toolkit.client.arrays import array_ops
from toolkit.client.construction import context
from toolkit.client.construction.grouping import group
from toolkit.client.variables import by_collection, resources
from toolkit.graph.metagraph import GraphKeys


class Scaffold:
    """The operations that bring a graph to life. `finalize` takes what is not given from the graph's collections,
    or makes it and puts it there.

    Args:
        init_fn: called as `init_fn(scaffold, session)` after `init_op`.
        copy_from_scaffold: another one, for what is not given.
    """

    def __init__(
        self, init_op: Any = None, init_feed_dict: Any = None, init_fn: Any = None, ready_op: Any = None,
        ready_for_local_init_op: Any = None, local_init_op: Any = None, summary_op: Any = None, saver: Any = None,
        copy_from_scaffold: Any = None, local_init_feed_dict: Any = None,
    ):  # fmt: skip
        if copy_from_scaffold is not None and not isinstance(copy_from_scaffold, Scaffold):
            raise TypeError(f"copy_from_scaffold is a Scaffold, not {type(copy_from_scaffold).__name__}")
        other = copy_from_scaffold

        def either(given: Any, name: str) -> Any:
            return getattr(other, name) if given is None and other is not None else given

        self._init_op, self._init_feed_dict = either(init_op, "init_op"), either(init_feed_dict, "init_feed_dict")
        self._ready_op = either(ready_op, "ready_op")
        self._ready_for_local_init_op = either(ready_for_local_init_op, "ready_for_local_init_op")
        self._local_init_op = either(local_init_op, "local_init_op")
        self._local_init_feed_dict = either(local_init_feed_dict, "local_init_feed_dict")
        self._summary_op, self._saver = either(summary_op, "summary_op"), either(saver, "saver")
        init_fn = either(init_fn, "_user_init_fn")
        self._user_init_fn = init_fn
        self._init_fn = (lambda session: init_fn(self, session)) if init_fn else None

    def finalize(self) -> Self:
        """Make what is missing, in this order, and finalize the default graph."""
        from toolkit.tensorflow.families.train import training

        if self.init_op is None:
            self._init_op = self.get_or_default("init_op", GraphKeys.INIT_OP, _default_init_op)
        if self.ready_op is None:
            self._ready_op = self.get_or_default("ready_op", GraphKeys.READY_OP, _default_ready_op)
        if self.ready_for_local_init_op is None:
            self._ready_for_local_init_op = self.get_or_default(
                "ready_for_local_init_op", GraphKeys.READY_FOR_LOCAL_INIT_OP, _default_ready_for_local_init_op
            )
        if self.local_init_op is None:
            self._local_init_op = self.get_or_default(
                "local_init_op", GraphKeys.LOCAL_INIT_OP, self.default_local_init_op
            )
        if self.summary_op is None:
            self._summary_op = self.get_or_default("summary_op", GraphKeys.SUMMARY_OP, training.merge_all)
        if self.saver is None:
            self._saver = default_saver()
        self._saver.build()
        context.get_default_graph().finalize()
        return self

    @property
    def init_op(self) -> Any:
        return self._init_op

    @property
    def init_feed_dict(self) -> Any:
        return self._init_feed_dict

    @property
    def init_fn(self) -> Callable[[Any], Any] | None:
        """A function of the session, or None."""
        return self._init_fn

    @property
    def ready_op(self) -> Any:
        return self._ready_op

    @property
    def ready_for_local_init_op(self) -> Any:
        return self._ready_for_local_init_op

    @property
    def local_init_op(self) -> Any:
        return self._local_init_op

    @property
    def local_init_feed_dict(self) -> Any:
        return self._local_init_feed_dict

    @property
    def summary_op(self) -> Any:
        return self._summary_op

    @property
    def saver(self) -> Any:
        return self._saver

    @staticmethod
    def get_or_default(arg_name: str, collection_key: str, default_constructor: Callable[[], Any]) -> Any:
        """What a collection holds, else what a function makes, which is put there.

        Raises:
            RuntimeError: the collection holds several.
        """
        found = only_one(collection_key, f"Scaffold({arg_name}=...)")
        if found is None:
            found = default_constructor()
            if found is not None:
                context.get_default_graph().add_to_collection(collection_key, found)
        return found

    @staticmethod
    def default_local_init_op() -> Any:
        """Initializes local variables, tables and local resources."""
        return group([
            by_collection.local_variables_initializer(), by_collection.tables_initializer(),
            resources.initialize_resources(resources.local_resources()),
        ])  # fmt: skip


def only_one(collection_key: str, instead: str) -> Any:
    """What a collection of the default graph holds, or None.

    Raises:
        RuntimeError: it holds several.
    """
    found = context.get_default_graph().get_collection(collection_key)
    if len(found) > 1:
        raise RuntimeError(
            f"the collection '{collection_key}' holds {len(found)} members, where one is looked for; "
            f"say which: {instead}"
        )
    return found[0] if found else None


def default_saver() -> Any:
    """The graph's saver, or a new one of all its variables."""
    from toolkit.tensorflow.families.train.saver import Saver

    found = only_one(GraphKeys.SAVERS, "Scaffold(saver=...)")
    if found is None:
        found = Saver(sharded=True, allow_empty=True)
        context.get_default_graph().add_to_collection(GraphKeys.SAVERS, found)
    return found


def _default_init_op() -> Any:
    return group([
        by_collection.global_variables_initializer(),
        resources.initialize_resources(resources.shared_resources()),
        *context.get_default_graph().get_collection("saved_model_initializers"),
    ])  # fmt: skip


def _default_ready_op() -> Any:
    missing = by_collection.report_uninitialized_variables()
    return array_ops.concat([missing, resources.report_uninitialized_resources()], 0)


def _default_ready_for_local_init_op() -> Any:
    missing = by_collection.report_uninitialized_variables(by_collection.global_variables())
    return array_ops.concat([missing, resources.report_uninitialized_resources(resources.shared_resources())], 0)
