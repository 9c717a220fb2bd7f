# TensorFlow's arguments may be anything, so what they are is for tests to say, not for types.
# pyright: basic
"""tf.strings: what gives sparse or ragged tensors, by choice."""

from __future__ import annotations

from typing import Any

from toolkit.client.arrays import array_ops
from toolkit.client.construction.scopes import name_scope
from toolkit.client.ragged import strings
from toolkit.client.ragged.tensor import RaggedTensor, convert_to_tensor_or_ragged_tensor
from toolkit.graph import dtypes
from toolkit.tensorflow.families.arguments import needed, renamed

_SPARSE, _RAGGED = "SparseTensor", "RaggedTensor"


def _check(result_type: str) -> None:
    if result_type not in (_SPARSE, _RAGGED):
        raise ValueError(f"result_type: expected '{_SPARSE}' or '{_RAGGED}', got {result_type!r}")


def string_split(
    source: Any, sep: Any = None, skip_empty: bool = True, delimiter: Any = None, result_type: str = _SPARSE,
    name: Any = None,
) -> Any:  # fmt: skip
    _check(result_type)
    delimiter = renamed("sep", sep, "delimiter", delimiter)
    with name_scope(name, "StringSplit", [source]):
        found = strings.split_sparse(source, " " if delimiter is None else delimiter, skip_empty)
        if result_type == _SPARSE:
            return found
        rows = found.indices[:, 0]
        return RaggedTensor.from_value_rowids(found.values, rows, found.dense_shape[0], validate=False)


def split(
    input: Any = None, sep: Any = None, maxsplit: int = -1, result_type: str = _SPARSE, source: Any = None,
    name: Any = None,
) -> Any:  # fmt: skip
    _check(result_type)
    texts = needed("input", renamed("input", input, "source", source))
    with name_scope(name, "StringSplit"):
        texts = convert_to_tensor_or_ragged_tensor(texts, dtypes.string, name="input")
        if texts.static_shape.rank == 0:
            texts = array_ops.expand_dims(texts, 0)
        if result_type == _RAGGED:
            return strings.split(texts, sep, maxsplit)
        if texts.static_shape.rank == 1:
            return strings.split_whole_sparse(texts, sep, maxsplit)
        return strings.split(texts, sep, maxsplit).to_sparse()
