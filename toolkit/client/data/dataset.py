"""Dataset: the class, with a method for each way to make one of another."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NoReturn

from toolkit.client.construction.context import get_default_graph
from toolkit.client.construction.create import create_op
from toolkit.client.construction.tensor import Tensor
from toolkit.client.data import structure as structures
from toolkit.client.data.options import Options
from toolkit.errors import UsageError
from toolkit.graph import dtypes

if TYPE_CHECKING:
    from toolkit.client.data.iterators import Iterator as DatasetIterator


def _part(name: str) -> Any:
    """The module of this package that makes datasets of a kind, loaded on first use: all of them make Datasets."""
    return importlib.import_module(f"{__package__}.{name}")


class Dataset:
    """A recipe for elements, each a structure of tensors.

    Attributes:
        variant: the tensor that stands for the dataset in the graph.
        structure: what one element is (`toolkit.client.data.structure`).
        given_options: what `with_options` said.
    """

    variant: Tensor
    structure: Any

    def __init__(self) -> None:
        raise UsageError("a Dataset is made by its functions, such as Dataset.from_tensor_slices(...)")

    def hold(self, variant: Tensor, structure: Any, options: Options | None = None) -> None:
        """Make this the dataset that a tensor stands for."""
        self.variant = variant
        self.structure = structure
        self.given_options = options or Options()

    # -- looking ------------------------------------------------------------------------------------------------

    @property
    def element_spec(self) -> Any:
        """What one element is."""
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

    def options(self) -> Options:
        return self.given_options

    def cardinality(self) -> Tensor:
        """How many elements there are: -1 without end, -2 when it is not known."""
        return create_op("DatasetCardinality", [self.variant]).outputs[0]

    def __repr__(self) -> str:
        return f"<Dataset element_spec={self.structure!r}>"

    def __iter__(self) -> Iterator[Any]:
        self._no_values()

    def __len__(self) -> int:
        self._no_values()

    def __bool__(self) -> bool:
        return True

    def as_numpy_iterator(self) -> NoReturn:
        self._no_values()

    def _no_values(self) -> NoReturn:
        raise RuntimeError(
            "a Dataset has no elements while the graph is built; take them from make_one_shot_iterator().get_next()"
        )

    # -- going through it ---------------------------------------------------------------------------------------

    def make_one_shot_iterator(self) -> DatasetIterator:
        """An iterator that needs no initializer. Raises ValueError where the dataset depends on a state or a feed."""
        return _part("iterators").make_one_shot_iterator(self)

    def make_initializable_iterator(self, shared_name: str | None = None) -> DatasetIterator:
        return _part("iterators").make_initializable_iterator(self, shared_name)

    # -- from other things --------------------------------------------------------------------------------------

    @staticmethod
    def from_tensors(tensors: Any, name: str | None = None) -> Dataset:
        return _part("sources").from_tensors(tensors)

    @staticmethod
    def from_tensor_slices(tensors: Any, name: str | None = None) -> Dataset:
        return _part("sources").from_tensor_slices(tensors)

    @staticmethod
    def from_sparse_tensor_slices(sparse_tensor: Any) -> Dataset:
        return _part("sources").from_sparse_tensor_slices(sparse_tensor)

    @staticmethod
    def from_generator(
        generator: Callable[..., Any], output_types: Any = None, output_shapes: Any = None, args: Any = None,
        output_signature: Any = None, name: str | None = None,
    ) -> Dataset:  # fmt: skip
        return _part("generator").from_generator(generator, output_types, output_shapes, args, output_signature)

    @staticmethod
    def range(*args: Any, **kwargs: Any) -> Dataset:
        return _part("sources").number_range(*args, **kwargs)

    @staticmethod
    def counter(start: Any = 0, step: Any = 1, dtype: Any = dtypes.int64, name: str | None = None) -> Dataset:
        return _part("mapping").counter(start, step, dtype)

    @staticmethod
    def random(seed: Any = None, rerandomize_each_iteration: bool | None = None, name: str | None = None) -> Dataset:
        return _part("sources").random_numbers(seed, rerandomize_each_iteration)

    @staticmethod
    def zip(*args: Any, datasets: Any = None, name: str | None = None) -> Dataset:
        return _part("elements").zipped(args, datasets)

    @staticmethod
    def list_files(file_pattern: Any, shuffle: Any = None, seed: Any = None, name: str | None = None) -> Dataset:
        return _part("files").list_files(file_pattern, shuffle, seed)

    @staticmethod
    def sample_from_datasets(
        datasets: Any, weights: Any = None, seed: Any = None, stop_on_empty_dataset: bool = False,
        rerandomize_each_iteration: bool | None = None,
    ) -> Dataset:  # fmt: skip
        return _part("choosing").sample_from_datasets(
            datasets, weights, seed, stop_on_empty_dataset, rerandomize_each_iteration
        )

    @staticmethod
    def choose_from_datasets(datasets: Any, choice_dataset: Any, stop_on_empty_dataset: bool = True) -> Dataset:
        return _part("choosing").choose_from_datasets(datasets, choice_dataset, stop_on_empty_dataset)

    # -- elements -----------------------------------------------------------------------------------------------

    def apply(self, transformation_func: Callable[[Dataset], Dataset]) -> Dataset:
        """What a function of datasets makes of this one."""
        made = transformation_func(self)
        if not isinstance(made, Dataset):
            raise TypeError(f"the function given to apply must return a Dataset, not {made!r}")
        return made

    def with_options(self, options: Options, name: str | None = None) -> Dataset:
        return _part("elements").with_options(self, options)

    def repeat(self, count: Any = None, name: str | None = None) -> Dataset:
        return _part("elements").repeat(self, count)

    def take(self, count: Any, name: str | None = None) -> Dataset:
        return _part("elements").take(self, count)

    def skip(self, count: Any, name: str | None = None) -> Dataset:
        return _part("elements").skip(self, count)

    def shard(self, num_shards: Any, index: Any, name: str | None = None) -> Dataset:
        return _part("elements").shard(self, num_shards, index)

    def cache(self, filename: Any = "", name: str | None = None) -> Dataset:
        return _part("elements").cache(self, filename)

    def prefetch(self, buffer_size: Any, name: str | None = None) -> Dataset:
        return _part("elements").prefetch(self, buffer_size)

    def shuffle(
        self, buffer_size: Any, seed: Any = None, reshuffle_each_iteration: bool | None = True, name: str | None = None
    ) -> Dataset:
        return _part("elements").shuffle(self, buffer_size, seed, reshuffle_each_iteration)

    def concatenate(self, dataset: Dataset, name: str | None = None) -> Dataset:
        return _part("elements").concatenate(self, dataset)

    def enumerate(self, start: Any = 0, name: str | None = None) -> Dataset:
        return _part("elements").enumerated(self, start)

    def unique(self, name: str | None = None) -> Dataset:
        return made_of(self, "UniqueDataset")

    def ignore_errors(self, log_warning: bool = False, name: str | None = None) -> Dataset:
        return made_of(self, "IgnoreErrorsDataset", attrs={"log_warning": log_warning})

    # -- batches ------------------------------------------------------------------------------------------------

    def batch(
        self, batch_size: Any, drop_remainder: Any = False, num_parallel_calls: Any = None, deterministic: Any = None,
        name: str | None = None,
    ) -> Dataset:  # fmt: skip
        return _part("batching").batch(self, batch_size, drop_remainder, num_parallel_calls, deterministic)

    def padded_batch(
        self, batch_size: Any, padded_shapes: Any = None, padding_values: Any = None, drop_remainder: Any = False,
        name: str | None = None,
    ) -> Dataset:  # fmt: skip
        return _part("batching").padded_batch(self, batch_size, padded_shapes, padding_values, drop_remainder)

    def window(
        self, size: Any, shift: Any = None, stride: Any = 1, drop_remainder: Any = False, name: str | None = None
    ) -> Dataset:
        return _part("batching").window(self, size, shift, stride, drop_remainder)

    def unbatch(self, name: str | None = None) -> Dataset:
        return _part("batching").unbatch(self)

    def sparse_batch(self, batch_size: Any, row_shape: Any, name: str | None = None) -> Dataset:
        return _part("batching").sparse_batch(self, batch_size, row_shape)

    def get_single_element(self, name: str | None = None) -> Any:
        return _part("elements").single_element(self)

    # -- functions of elements ----------------------------------------------------------------------------------

    def map(
        self, map_func: Callable[..., Any], num_parallel_calls: Any = None, deterministic: Any = None,
        synchronous: Any = None, use_unbounded_threadpool: bool = False, name: str | None = None,
        num_threads: Any = None, output_buffer_size: Any = None,
    ) -> Dataset:  # fmt: skip
        """`num_threads` and `output_buffer_size` are those of tf.contrib.data before release 1.4: calls at the same
        time, and elements that are made ahead."""
        calls = num_threads if num_parallel_calls is None else num_parallel_calls
        made = _part("mapping").map_elements(
            self, map_func, calls, deterministic, bool(synchronous), use_unbounded_threadpool
        )
        return made if output_buffer_size is None else made.prefetch(output_buffer_size)

    def map_with_legacy_function(
        self, map_func: Callable[..., Any], num_parallel_calls: Any = None, deterministic: Any = None,
        use_unbounded_threadpool: bool = False,
    ) -> Dataset:  # fmt: skip
        return self.map(map_func, num_parallel_calls, deterministic, None, use_unbounded_threadpool)

    def filter(self, predicate: Callable[..., Any], name: str | None = None) -> Dataset:
        return _part("mapping").filtered(self, predicate)

    def filter_with_legacy_function(self, predicate: Callable[..., Any]) -> Dataset:
        return self.filter(predicate)

    def take_while(self, predicate: Callable[..., Any], name: str | None = None) -> Dataset:
        return _part("mapping").take_while(self, predicate)

    def flat_map(self, map_func: Callable[..., Any], name: str | None = None) -> Dataset:
        return _part("mapping").flat_map(self, map_func)

    def interleave(
        self, map_func: Callable[..., Any], cycle_length: Any = None, block_length: Any = None,
        num_parallel_calls: Any = None, deterministic: Any = None, name: str | None = None,
    ) -> Dataset:  # fmt: skip
        return _part("mapping").interleave(
            self, map_func, cycle_length, block_length, num_parallel_calls, deterministic
        )

    def scan(self, initial_state: Any, scan_func: Callable[..., Any], name: str | None = None) -> Dataset:
        return _part("mapping").scan(self, initial_state, scan_func)

    def reduce(self, initial_state: Any, reduce_func: Callable[..., Any], name: str | None = None) -> Any:
        return _part("mapping").reduce(self, initial_state, reduce_func)

    def group_by_window(
        self, key_func: Callable[..., Any], reduce_func: Callable[..., Any], window_size: Any = None,
        window_size_func: Callable[..., Any] | None = None, name: str | None = None,
    ) -> Dataset:  # fmt: skip
        return _part("grouping").group_by_window(self, key_func, reduce_func, window_size, window_size_func)

    def bucket_by_sequence_length(
        self, element_length_func: Callable[..., Any], bucket_boundaries: Any, bucket_batch_sizes: Any,
        padded_shapes: Any = None, padding_values: Any = None, pad_to_bucket_boundary: bool = False,
        no_padding: bool = False, drop_remainder: bool = False, name: str | None = None,
    ) -> Dataset:  # fmt: skip
        return _part("grouping").bucket_by_sequence_length(
            self, element_length_func, bucket_boundaries, bucket_batch_sizes, padded_shapes, padding_values,
            pad_to_bucket_boundary, no_padding, drop_remainder,
        )  # fmt: skip


def dataset_of(variant: Tensor, structure: Any, options: Options | None = None) -> Dataset:
    """The dataset that a tensor stands for."""
    made = Dataset.__new__(Dataset)
    made.hold(variant, structure, options)
    return made


def made_of(source: Dataset | None, op: str, inputs: Any = (), attrs: Any = None, structure: Any = None) -> Dataset:
    """The dataset that an op makes of another; its elements are the other's unless `structure` says otherwise.

    Raises:
        UsageError: the other one is of another graph.
    """
    if (
        source is not None
        and source.variant.graph is not get_default_graph()
        and not (get_default_graph().building_function)
    ):
        raise UsageError("the dataset is of another graph than the default one; make both in one graph")
    elements = structure if structure is not None else source.structure  # type: ignore[union-attr]
    first = [] if source is None else [source.variant]
    described = {} if op == "ReduceDataset" else structures.attributes(elements)
    variant = create_op(op, [*first, *inputs], {**described, **(attrs or {})}).outputs[0]
    return dataset_of(variant, elements, None if source is None else source.given_options)
