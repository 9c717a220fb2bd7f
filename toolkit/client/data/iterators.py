"""Iterators: what goes through a dataset, one element a step."""

from __future__ import annotations

from typing import Any

from toolkit.client import ops
from toolkit.client.construction.context import get_default_graph
from toolkit.client.construction.convert import convert_to_tensor
from toolkit.client.construction.create import create_op
from toolkit.client.construction.operation import Operation
from toolkit.client.construction.tensor import Tensor
from toolkit.client.data import structure as structures
from toolkit.client.data.dataset import Dataset
from toolkit.client.functions.graph import SelfContainedGraph
from toolkit.client.functions.trace import function_name, trace
from toolkit.client.random.seeds import get_seed
from toolkit.errors import GraphError
from toolkit.graph import dtypes

#: the collection of the handles of iterators
ITERATORS = "iterators"


class Iterator:
    """Goes through a dataset.

    Args:
        iterator_resource: its handle.
        initializer: the operation that starts it; None when it needs none, or gets its own by `make_initializer`.
        output_types, output_shapes, output_classes: what elements are, each in an element's structure.
    """

    def __init__(
        self, iterator_resource: Tensor, initializer: Operation | None, output_types: Any, output_shapes: Any,
        output_classes: Any,
    ):  # fmt: skip
        self._hold(
            iterator_resource, initializer, structures.structure_from(output_types, output_shapes, output_classes)
        )

    def _hold(self, handle: Tensor, initializer: Operation | None, structure: Any) -> None:
        self.handle = handle
        self.structure = structure
        self._initializer = initializer
        self._text = ops.iterator_to_string_handle(handle)
        get_default_graph().add_to_collection(ITERATORS, handle)

    @staticmethod
    def from_structure(
        output_types: Any, output_shapes: Any = None, shared_name: str | None = None, output_classes: Any = None
    ) -> Iterator:
        """An iterator without a dataset; `make_initializer` gives it one."""
        structure = structures.structure_from(output_types, output_shapes, output_classes)
        handle = _resource(structure, shared_name)
        return iterator_of(handle, None, structure)

    @staticmethod
    def from_string_handle(
        string_handle: Any, output_types: Any, output_shapes: Any = None, output_classes: Any = None
    ) -> Iterator:
        """The iterator that a text, known when a step runs, names."""
        structure = structures.structure_from(output_types, output_shapes, output_classes)
        text = convert_to_tensor(string_handle, dtypes.string)
        handle = ops.iterator_from_string_handle_v2(text, **structures.attributes(structure))
        return iterator_of(handle, None, structure)

    @property
    def initializer(self) -> Operation:
        """The operation that starts it, or starts it again.

        Raises:
            ValueError: it has none.
        """
        if self._initializer is None:
            raise ValueError(
                "the iterator has no initializer: a one-shot iterator needs none, one from a structure gets its own "
                "by make_initializer(dataset)"
            )
        return self._initializer

    def make_initializer(self, dataset: Dataset, name: str | None = None) -> Operation:
        """The operation that starts it on a dataset.

        Raises:
            TypeError: the dataset's elements are not those of the iterator.
        """
        mine, theirs = structures.leaves(self.structure), structures.leaves(dataset.structure)
        if len(mine) != len(theirs) or [leaf.dtype for leaf in mine] != [leaf.dtype for leaf in theirs]:
            raise TypeError(f"the iterator has elements {self.structure!r}, the dataset {dataset.structure!r}")
        for here, there in zip(mine, theirs, strict=True):
            if here.shape.most_specific_common(there.shape) != here.shape:
                raise TypeError(f"the iterator has elements {self.structure!r}, the dataset {dataset.structure!r}")
        with get_default_graph().colocate_with(self.handle):
            return ops.make_iterator(dataset.variant, self.handle, name=name or "make_initializer")

    def get_next(self, name: str | None = None) -> Any:
        """The next element, as tensors; a step at the end fails (OutOfRangeError)."""
        with get_default_graph().colocate_with(self.handle):
            op = create_op("IteratorGetNext", [self.handle], structures.attributes(self.structure), name)
            return structures.unpacked(self.structure, op.outputs)

    def get_next_as_optional(self) -> Any:
        """The variant that holds the next element, or says that there is none."""
        with get_default_graph().colocate_with(self.handle):
            attrs = structures.attributes(self.structure)
            return create_op("IteratorGetNextAsOptional", [self.handle], attrs).outputs[0]

    def string_handle(self, name: str | None = None) -> Tensor:
        """The text by which `from_string_handle` finds it."""
        return self._text if name is None else ops.iterator_to_string_handle(self.handle, name=name)

    @property
    def element_spec(self) -> Any:
        return self.structure

    @property
    def output_types(self) -> Any:
        return structures.shown_types(self.structure)

    @property
    def output_shapes(self) -> Any:
        return structures.shown_shapes(self.structure)

    @property
    def output_classes(self) -> Any:
        return structures.shown_classes(self.structure)


def iterator_of(handle: Tensor, initializer: Operation | None, structure: Any) -> Iterator:
    """The iterator behind a handle."""
    made = Iterator.__new__(Iterator)
    made._hold(handle, initializer, structure)  # pyright: ignore[reportPrivateUsage]  # its constructor
    return made


def _resource(structure: Any, shared_name: str | None) -> Tensor:
    attrs = {"shared_name": shared_name or "", "container": "", **structures.attributes(structure)}
    return create_op("IteratorV2", [], attrs).outputs[0]


def make_initializable_iterator(dataset: Dataset, shared_name: str | None = None) -> Iterator:
    """An iterator with an `initializer`."""
    _same_graph(dataset)
    with get_default_graph().colocate_with(dataset.variant):
        handle = _resource(dataset.structure, shared_name)
        initializer = ops.make_iterator(dataset.variant, handle)
        return iterator_of(handle, initializer, dataset.structure)


def make_one_shot_iterator(dataset: Dataset) -> Iterator:
    """An iterator that starts by itself, once in a session.

    Raises:
        ValueError: the dataset depends on variables, tables or placeholders.
    """
    _same_graph(dataset)
    graph = get_default_graph()
    inner = SelfContainedGraph(function_name(_make_dataset, "").replace("__inference_", ""), graph)
    inner.seed = get_seed(None)[0] or None
    try:
        function = trace(lambda: dataset.variant, [], graph=inner, in_order=False, hand_on=False)
    except GraphError as error:
        raise ValueError(
            "a one-shot iterator needs a dataset of constants, without variables, tables and placeholders: "
            f"{error.message}; use make_initializable_iterator()"
        ) from None
    with graph.colocate_with(dataset.variant):
        attrs = {"dataset_factory": function.ref, **structures.attributes(dataset.structure)}
        handle = create_op("OneShotIterator", [], attrs).outputs[0]
        return iterator_of(handle, None, dataset.structure)


def _make_dataset() -> None:
    """Names the functions that one-shot iterators are made of."""


def _same_graph(dataset: Dataset) -> None:
    """Raise unless a dataset is of the default graph.

    Raises:
        ValueError: it is not.
    """
    if dataset.variant.graph is not get_default_graph():
        raise ValueError("the dataset is of another graph than the default one; make the iterator in its graph")
