# TensorFlow's arguments may be anything, so what they are is for tests to say, not for types.
# pyright: basic
"""tf.io and tf.python_io: records as files, texts and messages taken apart."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from toolkit.client import ops
from toolkit.client.construction.convert import as_dtype
from toolkit.client.sparse.tensor import SparseTensor
from toolkit.formats.records import tfrecord
from toolkit.graph import dtypes


def decode_csv(
    records: Any, record_defaults: Any, field_delim: str = ",", use_quote_delim: bool = True, name: Any = None,
    na_value: str = "", select_cols: Any = None,
) -> Any:  # fmt: skip
    return ops.decode_csv(
        records, record_defaults, field_delim=field_delim, use_quote_delim=use_quote_delim, na_value=na_value,
        select_cols=select_cols or [], name=name,
    )  # fmt: skip


def serialize_sparse(sp_input: Any, name: Any = None, out_type: Any = dtypes.string) -> Any:
    given = SparseTensor.from_value(sp_input)
    return ops.serialize_sparse(given.indices, given.values, given.dense_shape, out_type=out_type, name=name)


def serialize_many_sparse(sp_input: Any, name: Any = None, out_type: Any = dtypes.string) -> Any:
    given = SparseTensor.from_value(sp_input)
    return ops.serialize_many_sparse(given.indices, given.values, given.dense_shape, out_type=out_type, name=name)


def deserialize_many_sparse(serialized_sparse: Any, dtype: Any, rank: Any = None, name: Any = None) -> Any:
    indices, values, shape = ops.deserialize_many_sparse(serialized_sparse, dtype=as_dtype(dtype), name=name)
    indices.set_shape([None, rank])
    shape.set_shape([rank])
    return SparseTensor(indices, values, shape)


# -- records --------------------------------------------------------------------------------------------------------


class TFRecordCompressionType:
    """How records are compressed."""

    NONE = 0
    ZLIB = 1
    GZIP = 2


_COMPRESSIONS = {0: "", 1: "ZLIB", 2: "GZIP", "": "", None: "", "ZLIB": "ZLIB", "GZIP": "GZIP"}


class TFRecordOptions:
    """How a file of records is compressed; the finer settings of zlib are its own."""

    compression_type_map = {0: "", 1: "ZLIB", 2: "GZIP"}  # noqa: RUF012 (a public attribute of TensorFlow's class)

    def __init__(
        self, compression_type: Any = None, flush_mode: Any = None, input_buffer_size: Any = None,
        output_buffer_size: Any = None, window_bits: Any = None, compression_level: Any = None,
        compression_method: Any = None, mem_level: Any = None, compression_strategy: Any = None,
    ):  # fmt: skip
        if compression_type not in _COMPRESSIONS:
            raise ValueError(f"compression_type is NONE, ZLIB or GZIP, not {compression_type!r}")
        self.compression_type = compression_type
        self.flush_mode, self.input_buffer_size = flush_mode, input_buffer_size
        self.output_buffer_size, self.window_bits = output_buffer_size, window_bits
        self.compression_level, self.compression_method = compression_level, compression_method
        self.mem_level, self.compression_strategy = mem_level, compression_strategy

    @property
    def compression_name(self) -> str:
        """What ops and formats call the compression."""
        return _COMPRESSIONS[self.compression_type]

    @classmethod
    def get_compression_type_string(cls, options: Any) -> str:
        return _compression(options)


def _compression(options: Any) -> str:
    if isinstance(options, TFRecordOptions):
        return options.compression_name
    if options not in _COMPRESSIONS:
        raise ValueError(f"compression is NONE, ZLIB or GZIP, not {options!r}")
    return _COMPRESSIONS[options]


class TFRecordWriter(tfrecord.TFRecordWriter):
    """Writes records to a file."""

    def __init__(self, path: Any, options: Any = None):
        super().__init__(path, _compression(options))

    def write(self, record: Any) -> None:
        super().write(record.encode() if isinstance(record, str) else record)


def tf_record_iterator(path: Any, options: Any = None) -> Iterator[bytes]:
    return tfrecord.read_records(path, _compression(options))
