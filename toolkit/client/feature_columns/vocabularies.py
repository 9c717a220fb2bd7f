"""Tables from words to numbers, as index_table_from_tensor and index_table_from_file make them."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from toolkit.client import ops
from toolkit.client.arrays import array_ops
from toolkit.client.construction.context import get_default_graph
from toolkit.client.construction.convert import constant, convert_to_tensor
from toolkit.client.construction.scopes import device, init_scope, name_scope
from toolkit.client.construction.tensor import Tensor
from toolkit.client.math import math_ops
from toolkit.client.sparse.tensor import SparseTensor
from toolkit.graph import dtypes
from toolkit.graph.dtypes import DType
from toolkit.graph.metagraph import GraphKeys

#: how the op that reads a file names a whole line, and the number of a line
_WHOLE_LINE, _LINE_NUMBER = -2, -1


@dataclass(frozen=True)
class WordTable:
    """Words to their numbers.

    Attributes:
        handle: the table.
        default: what a word gets that is not in it.
        num_oov_buckets: over how many further numbers such words are spread instead.
    """

    handle: Tensor
    default: Tensor
    num_oov_buckets: int

    def lookup(self, words: SparseTensor) -> SparseTensor:
        """Sparse numbers in the places of sparse words."""
        values = words.values
        if self.num_oov_buckets:
            with name_scope(None, "hash_table_Lookup"):
                text = values if values.dtype.base is dtypes.string else ops.as_string(values)
                buckets = ops.string_to_hash_bucket_fast(text, num_buckets=self.num_oov_buckets, name="hash_bucket")
                found = self._found(values)
                with name_scope(None, "hash_table_Size", [self.handle]):
                    size = ops.lookup_table_size_v2(self.handle)
                buckets = math_ops.add(buckets, size)
                found = array_ops.where_v2(ops.not_equal(found, self.default), found, buckets)
        else:
            found = self._found(values)
        return SparseTensor(words.indices, found, words.dense_shape)

    def find(self, values: Tensor) -> Tensor:
        """Numbers of words."""
        return self._found(values)

    def _found(self, values: Tensor) -> Tensor:
        with name_scope(None, "hash_table_Lookup", [self.handle, values, self.default]):
            return ops.lookup_table_find_v2(self.handle, values, self.default)


def of_words(words: tuple[Any, ...], dtype: DType, default: int, num_oov_buckets: int, name: str) -> WordTable:
    """The table of a vocabulary that is given.

    Args:
        words: strings, or integers.
        dtype: of what is looked up.
    """
    with name_scope(name):
        keys = convert_to_tensor(list(words))
        numbers = math_ops.cast(math_ops.range(array_ops.size(keys)), dtypes.int64)
        with name_scope(None, "hash_table"):
            keys = math_ops.cast(keys, dtypes.int64) if keys.dtype.is_integer else keys
            return _table(
                keys.dtype.base, default, num_oov_buckets, "",
                lambda handle: ops.lookup_table_import_v2(handle, keys, numbers),
            )  # fmt: skip


def of_file(path: str, size: int, dtype: DType, default: int, num_oov_buckets: int, name: str) -> WordTable:
    """The table of a file with a word in each line.

    Args:
        size: how many lines count.
    """
    kind = dtypes.int64 if dtype.is_integer else dtype

    shared = f"hash_table_{path}_{size}_{_WHOLE_LINE}_{_LINE_NUMBER}"
    with name_scope(name), name_scope(None, "hash_table"):
        with init_scope(), device("/device:CPU:*"):
            filename = constant(path, dtypes.string, name="asset_path")
        get_default_graph().add_to_collection(GraphKeys.ASSET_FILEPATHS, filename)

        def fill(handle: Tensor) -> Any:
            return ops.initialize_table_from_text_file_v2(
                handle, filename, key_index=_WHOLE_LINE, value_index=_LINE_NUMBER, vocab_size=size, delimiter="\t"
            )

        return _table(kind, default, num_oov_buckets, shared, fill)


def _table(
    key_dtype: DType, default: int, num_oov_buckets: int, shared_name: str, fill: Callable[[Tensor], Any]
) -> WordTable:
    value = constant(default, dtypes.int64)
    handle = ops.hash_table_v2(
        shared_name=shared_name or f"hash_table_{uuid.uuid4()}", key_dtype=key_dtype, value_dtype=dtypes.int64,
        name="hash_table",
    )  # fmt: skip
    with name_scope(None, "table_init", [handle]):
        op = fill(handle)
    get_default_graph().add_to_collection(GraphKeys.TABLE_INITIALIZERS, op)
    return WordTable(handle, value, num_oov_buckets)
