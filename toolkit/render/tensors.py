"""What the tensors of a graph hold, for the details of the HTML page: constants, and variables of a checkpoint."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from toolkit.errors import FormatError, GraphmillError
from toolkit.formats.bundle.source import TensorSource
from toolkit.formats.bundle.stats import Statistics
from toolkit.formats.models.model import Model as ModelFile
from toolkit.render.describe import VARIABLE_OPS
from toolkit.render.elements import Model

Rows = list[tuple[str, str]]
#: constants and variables of fewer elements are written in their boxes
_LEAST_ELEMENTS = 7
#: elements that are not in the file, but repeat one that is, are looked at up to so many
_MOST_REPEATED = 1_000_000


@dataclass(slots=True)
class Weights:
    """The checkpoint that belongs to a graph.

    Attributes:
        keys: the tensor of a variable, by the variable's node, where their names differ.
    """

    source: TensorSource
    keys: Mapping[str, str] = field(default_factory=dict[str, str])


def weights_of(model: ModelFile, prefix: str | None) -> Weights | None:
    """The checkpoint at a prefix, else the one that belongs to the model; None when there is neither.

    Raises:
        NotFoundError, DataLossError, FormatError: the checkpoint at `prefix` is missing or damaged, or holds no
            variable of the model.
    """
    from toolkit.formats.bundle import open_checkpoint
    from toolkit.formats.models.model import variables_prefix
    from toolkit.formats.models.object_variables import variable_keys

    found = prefix or variables_prefix(model)
    if found is None:
        return None
    source = open_checkpoint(found)
    weights = Weights(source, variable_keys(model.meta, source))
    names = [node.name for node in model.meta.graph.nodes if node.op in VARIABLE_OPS]
    if prefix is not None and names and not any(weights.keys.get(name, name) in source for name in names):
        raise FormatError(
            f"none of the graph's {len(names)} variables, such as '{names[0]}', is in it; "
            f"it holds {len(source)} tensors, such as '{next(iter(source), '')}'",
            file=prefix,
        )
    return weights


def tensor_rows(model: Model, weights: Weights | None) -> dict[int, Rows]:
    """Statistics by element: of constants with several elements, and of variables that are in the checkpoint.

    Raises:
        DataLossError: the checkpoint is damaged.
    """
    found: dict[int, Rows] = {}
    for element in model.elements:
        node = element.node
        if node.op in ("Const", "HostConst") and "value" in node.attrs:
            rows = _constant(element.node.attrs.proto("value").tensor)
        elif weights is not None and node.op in VARIABLE_OPS:
            rows = _variable(weights, node.name)
        else:
            continue
        if rows:
            found[element.id] = rows
    return found


def _constant(tensor: object) -> Rows:
    from schemas.tensor_pb2 import TensorProto
    from toolkit.formats.arrays.tensor import dtype_of, shape_of, to_array
    from toolkit.formats.bundle.stats import summarize

    assert isinstance(tensor, TensorProto)
    try:
        count = 1
        for size in shape_of(tensor):
            count *= size
        if count < _LEAST_ELEMENTS:
            return []
        if count > _MOST_REPEATED and count > tensor.ByteSize():
            return [("elements", f"{count:,}")]  # a few bytes that stand for a tensor that nobody wants in memory
        return _rows(summarize([to_array(tensor)], dtype_of(tensor).kind), count)
    except GraphmillError:
        return []  # `validate` says what is wrong with it


def _variable(weights: Weights, name: str) -> Rows:
    from toolkit.formats.bundle.stats import statistics

    key = weights.keys.get(name, name)
    if key not in weights.source:
        return []
    entry = weights.source.entry(key)
    rows = _rows(statistics(weights.source, entry), entry.shape.num_elements or 0)
    return [("stored as", key), *rows] if key != name else rows


def _rows(found: Statistics, count: int) -> Rows:
    rows: Rows = [("elements", f"{count:,}")]
    for name, value in (("minimum", found.minimum), ("maximum", found.maximum), ("mean", found.mean)):
        if value is not None:
            rows.append((name, f"{value:.6g}"))
    for name, number in (("zeros", found.zeros), ("NaN", found.nan), ("infinite", found.infinite)):
        if number:
            rows.append((name, f"{number:,} ({number / max(1, count):.1%})"))
    return rows
