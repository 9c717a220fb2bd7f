"""The entries `dataset` and `queue` of `nodes`: where examples come from when nothing feeds them.

    - dataset: {records: "train-*.tfrecord"}     # or lines: FILES, arrays: {x: [...]}, tensors: {x: NAME}, range: 100
      name: train
      features: {image: {shape: [64]}, label: {dtype: int64, shape: []}}     # of records: what is in each Example
      shuffle: {buffer: 1000, seed: 3}
      repeat: 5                                  # null: for ever
      batch: 32

    - queue: [image, label]                      # it collects single examples
      name: batches
      size: 32
      shuffle: {min_after_dequeue: 100}

The components are `train/image`, `train/label`, `batches/image`; those of lines and ranges `NAME/line`, `NAME/number`.
The iterator of a dataset is made again by the operation `NAME/make`, which is in the collection `table_initializer`, as
TensorFlow's initializable iterators are where a session is to start them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from toolkit.client import ops
from toolkit.client.arrays import array_ops
from toolkit.client.construction.tensor import Tensor
from toolkit.client.inputs import pipelines
from toolkit.client.random.seeds import get_seed
from toolkit.client.spec.builder import SpecBuilder
from toolkit.client.spec.entries import entry, full_name, named
from toolkit.client.spec.inputs import type_of
from toolkit.client.spec.values import NAME, NAMES
from toolkit.formats.schema.choices import ByKey, one_or_more
from toolkit.formats.schema.containers import Key, ListOf, MapOf, Record
from toolkit.formats.schema.scalars import Anything, Boolean, DTypeName, Integer, Text
from toolkit.formats.settings.tree import Section, YamlItem
from toolkit.graph import dtypes
from toolkit.graph.dtypes import DType
from toolkit.graph.metagraph import GraphKeys
from toolkit.graph.shape import Shape

#: types that an Example has
_FEATURE_TYPES = (dtypes.float32, dtypes.int64, dtypes.string)

_FILES = one_or_more(Text(noun="a file"))
_COMPRESSION = Key(Text(("", "GZIP", "ZLIB")), "of the files", default="")

_SOURCES: dict[str, Record] = {
    "records": Record({
        "records": Key(_FILES, "TFRecord files of Examples, patterns included", required=True),
        "compression": _COMPRESSION,
    }),
    "lines": Record({"lines": Key(_FILES, "text files, with patterns", required=True), "compression": _COMPRESSION}),
    "arrays": Record({"arrays": Key(MapOf(Anything()), "values; the first dimension counts examples", required=True)}),
    "tensors": Record({"tensors": Key(MapOf(NAME), "tensors; the first dimension counts examples", required=True)}),
    "range": Record({"range": Key(Integer(0), "the numbers below this one", required=True)}),
}  # fmt: skip

_SHUFFLE = Record({
    "buffer": Key(Integer(1), "examples among which the next is drawn", required=True),
    "seed": Key(Integer(0), "of the order"),
    "reshuffle": Key(Boolean(), "another order in each repetition", default=True),
})  # fmt: skip

_FEATURE = Record({
    "dtype": Key(DTypeName(), "float32, int64 or string", default="float32"),
    "shape": Key(ListOf(Integer(0)), "its sizes", default=[]),
    "default": Key(Anything(), "what holds for Examples without it; else they are mistakes"),
})  # fmt: skip


@dataclass
class _Dataset:
    """A dataset so far: its variant, and the keys, types and shapes of an element's components."""

    variant: Tensor
    keys: list[str]
    types: list[DType]
    shapes: list[Shape]

    def through(self, function: Callable[..., Any], *arguments: Any, name: str, **attrs: Any) -> None:
        """Put another dataset behind it whose elements have the types and shapes that are set now."""
        self.variant = function(
            self.variant, *arguments, output_types=self.types, output_shapes=self.shapes, name=name, **attrs
        )


@entry(
    "dataset",
    named(
        {
            "features": Key(MapOf(_FEATURE), "of records: what is in each Example"),
            "skip": Key(Integer(0), "examples that are left out at the start"),
            "take": Key(Integer(0), "examples at most"),
            "cache": Key(Boolean(), "keep what was read in memory", default=False),
            "shuffle": Key(_SHUFFLE, "in random order"),
            "repeat": Key(Integer(0), "how often; null: for ever", default=1),
            "batch": Key(Integer(1), "examples in a batch"),
            "drop_remainder": Key(Boolean(), "leave a smaller last batch out", default=False),
            "prefetch": Key(Integer(1), "elements that are made ahead"),
        },
        ("dataset", Key(ByKey(_SOURCES), "where examples come from", required=True)),
    ),
    "examples from files, arrays or tensors",
)
def _dataset(spec: SpecBuilder, item: YamlItem, section: Section, scope: str) -> None:
    name, full = full_name(section, "dataset", scope)
    with spec.graph.name_scope(name):
        made = _source(spec, section["dataset"], scope)
        features = section.get("features")
        if features is not None and "records" not in section["dataset"].section():
            raise features.error("only records have features")
        _order(made, section)
        size = section.get("batch")
        if features is not None and size is None:
            _batch(made, 1, section)  # what parses Examples takes batches
            _parse(made, features)
            made.shapes = [shape.slice(1) for shape in made.shapes]
            made.through(ops.unbatch_dataset, name="unbatch")
        elif size is not None:
            _batch(made, size.integer(), section)
            if features is not None:
                _parse(made, features)
        if (ahead := section.get("prefetch")) is not None:
            made.through(ops.prefetch_dataset, _number(ahead.integer()), name="prefetch")
        components = _iterate(spec, made)
        for key, tensor in zip(made.keys, components, strict=True):
            spec.declare(f"{full}/{key}", array_ops.identity(tensor, name=key), item)
    spec.last = components[0] if len(components) == 1 else None


def _number(value: int) -> Tensor:
    return array_ops.constant(value, dtypes.int64)


def _source(spec: SpecBuilder, item: YamlItem, scope: str) -> _Dataset:
    section = item.section()
    if "range" in section:
        stop = _number(section.integer("range"))
        made = _Dataset(stop, ["number"], [dtypes.int64], [Shape([])])
        made.variant = ops.range_dataset(
            _number(0), stop, _number(1), output_types=made.types, output_shapes=made.shapes, name="range"
        )
        return made
    if "arrays" in section or "tensors" in section:
        named_parts = section["arrays" if "arrays" in section else "tensors"].section()
        if "arrays" in section:
            parts = {key: array_ops.constant(value.plain(), name=f"{key}_values") for key, value in named_parts}
        else:
            parts = {key: spec.tensor(value, scope) for key, value in named_parts}
        return _slices(item, parts)
    is_records = "records" in section
    files = [each.text() for each in section["records" if is_records else "lines"].texts()]
    names = (
        ops.matching_files(files, name="files")
        if any(c in f for f in files for c in "*?[")
        else array_ops.constant(files, dtypes.string)
    )
    compression = array_ops.constant(section.text("compression", ""), dtypes.string)
    make = ops.tf_record_dataset if is_records else ops.text_line_dataset
    variant = make(names, compression, _number(0), name="records" if is_records else "lines")
    return _Dataset(variant, ["record" if is_records else "line"], [dtypes.string], [Shape([])])


def _slices(item: YamlItem, parts: dict[str, Tensor]) -> _Dataset:
    """A dataset of the rows of tensors."""
    if not parts:
        raise item.error("give at least one component")
    counts = {key: tensor.static_shape.dims[0] if tensor.static_shape.dims else None for key, tensor in parts.items()}
    for key, tensor in parts.items():
        if tensor.static_shape.rank == 0:
            raise item.error(f"'{key}' is one number; expected an array, whose first dimension counts examples")
    known = {count for count in counts.values() if count is not None}
    if len(known) > 1:
        told = ", ".join(f"{key} has {count}" for key, count in counts.items())
        raise item.error(f"the components have different numbers of examples: {told}")
    types = [tensor.dtype.base for tensor in parts.values()]
    shapes = [tensor.static_shape.slice(1) for tensor in parts.values()]
    variant = ops.tensor_slice_dataset(list(parts.values()), output_shapes=shapes, name="slices")
    return _Dataset(variant, list(parts), types, shapes)


def _order(made: _Dataset, section: Section) -> None:
    """Which examples there are, and in which order."""
    if (count := section.get("skip")) is not None:
        made.through(ops.skip_dataset, _number(count.integer()), name="skip")
    if (count := section.get("take")) is not None:
        made.through(ops.take_dataset, _number(count.integer()), name="take")
    if section.boolean("cache", False):
        made.through(ops.cache_dataset, array_ops.constant("", dtypes.string), name="cache")
    if (found := section.get("shuffle")) is not None:
        shuffle = found.section()
        given = shuffle.get("seed")
        first, second = get_seed(None if given is None else given.integer())
        made.through(
            ops.shuffle_dataset, _number(shuffle.integer("buffer")), _number(first), _number(second), name="shuffle",
            reshuffle_each_iteration=shuffle.boolean("reshuffle", True),
        )  # fmt: skip
    if "repeat" in section:
        count = section.get("repeat")
        made.through(ops.repeat_dataset, _number(-1 if count is None else count.integer()), name="repeat")


def _batch(made: _Dataset, size: int, section: Section) -> None:
    dropped = section.boolean("drop_remainder", False)
    made.shapes = [Shape(None) if s.dims is None else Shape([size if dropped else None, *s.dims]) for s in made.shapes]
    made.through(ops.batch_dataset_v2, _number(size), array_ops.constant(dropped, dtypes.bool_), name="batch")


def _parse(made: _Dataset, features: YamlItem) -> None:
    """Take the features out of a batch of serialized Examples."""
    keys = sorted(key for key, _ in features.section())
    sections = {key: item.section() for key, item in features.section()}
    types: list[DType] = []
    shapes: list[Shape] = []
    defaults: list[Tensor] = []
    for key in keys:
        dtype = type_of(sections[key])
        if dtype not in _FEATURE_TYPES:
            raise sections[key]["dtype"].error(f"Examples have no {dtype}; expected float32, int64 or string")
        shape = sections[key].get("shape")
        default = sections[key].get("default")
        types.append(dtype)
        shapes.append(Shape([] if shape is None else shape.plain()))
        value = np.zeros(0, dtype.numpy) if default is None else array_ops.tensor_array(default.plain(), dtype)
        if default is not None and tuple(value.shape) != tuple(shapes[-1].dims or ()):
            raise default.error(f"expected a value of shape {shapes[-1]}, found one of {list(value.shape)}")
        defaults.append(array_ops.constant(value, dtype, name=f"{key}_default"))
    rows = made.shapes[0].dims[0] if made.shapes[0].dims else None
    made.keys, made.types = keys, types
    made.shapes = [Shape([rows, *(shape.dims or ())]) for shape in shapes]
    made.through(
        ops.parse_example_dataset_v2, _number(1), defaults, name="parse",
        sparse_keys=[], dense_keys=keys, sparse_types=[], dense_shapes=shapes, ragged_keys=[],
        ragged_value_types=[], ragged_split_types=[],
    )  # fmt: skip


def _iterate(spec: SpecBuilder, made: _Dataset) -> list[Tensor]:
    iterator = ops.iterator_v2(
        shared_name="", container="", output_types=made.types, output_shapes=made.shapes, name="iterator"
    )
    make = ops.make_iterator(made.variant, iterator, name="make")
    spec.graph.add_to_collection(GraphKeys.TABLE_INITIALIZERS, make)
    found: Any = ops.iterator_get_next(iterator, output_types=made.types, output_shapes=made.shapes, name="get_next")
    return cast("list[Tensor]", [*found] if isinstance(found, list | tuple) else [found])


# -- queues ----------------------------------------------------------------------------------------------------


@entry(
    "queue",
    named(
        {
            "size": Key(Integer(1), "examples in a batch", required=True),
            "capacity": Key(Integer(1), "examples that the queue holds", default=32),
            "threads": Key(Integer(1), "threads that fill it", default=1),
            "shuffle": Key(
                Record({
                    "min_after_dequeue": Key(Integer(0), "examples that stay, to be drawn among", required=True),
                    "seed": Key(Integer(0), "of the order"),
                }),
                "in random order",
            ),
            "allow_smaller_final_batch": Key(Boolean(), "hand out what is left at the end", default=False),
            "enqueue_many": Key(Boolean(), "each tensor holds several examples", default=False),
        },
        ("queue", Key(NAMES, "tensors of single examples", required=True)),
    ),
    "a queue that makes batches of single examples",
)  # fmt: skip
def _queue(spec: SpecBuilder, item: YamlItem, section: Section, scope: str) -> None:
    name, full = full_name(section, "queue", scope)
    named_items = section["queue"].texts()
    tensors = [spec.tensor(each, scope) for each in named_items]
    options: dict[str, Any] = {
        "batch_size": section.integer("size"),
        "capacity": section.integer("capacity", 32),
        "num_threads": section.integer("threads", 1),
        "allow_smaller_final_batch": section.boolean("allow_smaller_final_batch", False),
        "enqueue_many": section.boolean("enqueue_many", False),
    }
    with spec.graph.name_scope(name):
        if (found := section.get("shuffle")) is not None:
            shuffle = found.section()
            seed = shuffle.get("seed")
            made: Any = pipelines.shuffle_batch(
                tensors, min_after_dequeue=shuffle.integer("min_after_dequeue"),
                seed=None if seed is None else seed.integer(), **options,
            )  # fmt: skip
        else:
            made = pipelines.batch(tensors, **options)
        results = cast("list[Tensor]", [*made] if isinstance(made, list | tuple) else [made])
        for each, tensor in zip(named_items, results, strict=True):
            key = each.text().rpartition("/")[2].replace(":", "_")
            spec.declare(f"{full}/{key}", array_ops.identity(tensor, name=key), item)
    spec.last = results[0] if len(results) == 1 else None
