"""Datasets of tables: the rows of CSV files, and what a query of a database gives."""

from __future__ import annotations

from typing import Any

from toolkit.client.construction.convert import as_dtype, constant, convert_to_tensor
from toolkit.client.construction.create import create_op
from toolkit.client.construction.tensor import Tensor
from toolkit.client.data import structure as structures
from toolkit.client.data.dataset import Dataset
from toolkit.client.data.elements import int64
from toolkit.client.data.leaves import TensorLeaf
from toolkit.client.structures import nest
from toolkit.errors import GraphmillError
from toolkit.graph import dtypes
from toolkit.graph.dtypes import DType
from toolkit.graph.shape import Shape

#: types that a column may have
COLUMN_TYPES = (dtypes.float32, dtypes.float64, dtypes.int32, dtypes.int64, dtypes.string)
_BUFFER = 4 * 1024 * 1024


def column_default(value: Any) -> Any:
    """What stands for a missing field: a value, or, of a type alone, nothing: the field is needed.

    Raises:
        ValueError: a type that no column has.
    """
    if isinstance(value, Tensor):
        return value
    kind: DType | None = None
    if isinstance(value, DType | type):
        try:
            kind = as_dtype(value)
        except GraphmillError:
            kind = None
        if kind not in COLUMN_TYPES:
            names = ", ".join(each.name for each in COLUMN_TYPES)
            raise ValueError(f"record_defaults: columns are of {names}, not {value!r}")
        return constant([], kind)
    return value


class CsvDataset(Dataset):
    """The rows of CSV files, a tuple of scalars each.

    Args:
        record_defaults: for each column a type, when it is needed, or a value for where it is empty.
        select_cols: the numbers of the columns that are wanted, in order.

    Raises:
        ValueError: a type that no column has.
    """

    def __init__(
        self, filenames: Any, record_defaults: Any, compression_type: Any = None, buffer_size: Any = None,
        header: Any = False, field_delim: Any = ",", use_quote_delim: Any = True, na_value: Any = "",
        select_cols: Any = None,
    ):  # fmt: skip
        files = convert_to_tensor(filenames, dtypes.string, name="filenames")
        kind = convert_to_tensor(compression_type or "", dtypes.string, name="compression_type")
        given = [column_default(each) for each in record_defaults]
        defaults = [convert_to_tensor(each, name=f"record_defaults_{i}") for i, each in enumerate(given)]
        structure = tuple(TensorLeaf(each.dtype.base, Shape([])) for each in defaults)
        inputs = [
            files, kind, int64(_BUFFER if buffer_size is None else buffer_size, "buffer_size"),
            convert_to_tensor(header, dtypes.bool_, name="header"),
            convert_to_tensor(field_delim, dtypes.string, name="field_delim"),
            convert_to_tensor(use_quote_delim, dtypes.bool_, name="use_quote_delim"),
            convert_to_tensor(na_value, dtypes.string, name="na_value"),
            constant([] if select_cols is None else select_cols, dtypes.int64, name="select_cols"), defaults,
            constant([], dtypes.int64, name="exclude_cols"),
        ]  # fmt: skip
        attrs = {"output_shapes": structures.carried_shapes(structure)}
        self.hold(create_op("CSVDatasetV2", inputs, attrs).outputs[0], structure)


class SqlDataset(Dataset):
    """The rows that a query gives.

    Args:
        driver_name: "sqlite".
        data_source_name: the file of the database.
        output_types: the types of the columns, in the structure of the elements.
    """

    def __init__(self, driver_name: Any, data_source_name: Any, query: Any, output_types: Any):
        given = [(driver_name, "driver_name"), (data_source_name, "data_source_name"), (query, "query")]
        inputs = [convert_to_tensor(value, dtypes.string, name=name) for value, name in given]

        def column(kind: Any) -> TensorLeaf:
            return TensorLeaf(as_dtype(kind), Shape([]))

        structure = nest.map_structure(column, output_types)
        self.hold(create_op("SqlDataset", inputs, structures.attributes(structure)).outputs[0], structure)
