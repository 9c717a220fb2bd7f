"""The values of a graph's variables, from the checkpoint that belongs to it or another one."""

from __future__ import annotations

from collections.abc import Iterator

from schemas.tensor_pb2 import TensorProto
from toolkit.errors import InvalidArgumentError, NotFoundError, did_you_mean
from toolkit.formats.arrays import tensor
from toolkit.formats.bundle.slices import TensorSlice
from toolkit.formats.bundle.source import Array, TensorSource
from toolkit.formats.models.checkpoint_graph import Expected, resolve, restored_variables, variables
from toolkit.formats.models.model import Model
from toolkit.graph import shape as shapes
from toolkit.graph.node import Node
from toolkit.graph.shape import Shape


class VariableValues:
    """What a checkpoint has for the variables of a model.

    A variable is looked for under the name from which the graph restores it, then as the object that it is in the
    model (2.x), then under its own name, also as a full name in checkpoints of objects.

    Args:
        source: the open checkpoint.
    """

    def __init__(self, model: Model, source: TensorSource):
        self._source = source
        self._expected: dict[str, Expected] = {item.node: item for item in variables(model.meta)}
        self._restored = {node: item for node, item in restored_variables(model.meta).items() if item.name in source}
        self._found = resolve(source, self._expected.values(), model)

    def key(self, node: Node) -> tuple[str, TensorSlice | None] | None:
        """The name of a variable's value in the checkpoint, and the part of that it is; None where there is none."""
        restored = self._restored.get(node.name)
        if restored is not None:
            return restored.name, restored.part
        expected = self._expected.get(node.name)
        found = self._found.get(expected) if expected is not None else None
        if found is not None:
            return found, expected.part if expected is not None else None
        shared = node.text("shared_name", b"") or node.name
        return (shared, None) if shared in self._source else None

    def read(self, node: Node) -> Array:
        """The value of a variable.

        Raises:
            NotFoundError: the checkpoint has none.
            InvalidArgumentError: it is of another type or shape than the variable.
            DataLossError: the checkpoint is damaged.
        """
        source = self._source
        name, part = self.check(node)
        if part is None:
            return source.read(name)
        return source.read_slice(name, [start for start, _ in part.extents], [size for _, size in part.extents])

    def check(self, node: Node) -> tuple[str, TensorSlice | None]:
        """The name of a variable's value and the part of that it is, where it fits.

        Raises:
            NotFoundError, InvalidArgumentError: as `read`.
        """
        source = self._source
        key = self.key(node)
        if key is None:
            shared = node.text("shared_name", b"") or node.name
            raise NotFoundError(
                f"the checkpoint has no value for the variable '{node.name}'"
                + did_you_mean(shared, source, then="keep it a variable, or give another checkpoint"),
                file=source.prefix,
            )
        name, part = key
        entry, dtype = source.entry(name), node.attr("dtype").base
        if entry.dtype is not dtype:
            raise InvalidArgumentError(
                f"the variable '{node.name}' is of type {dtype}, and '{name}' in the checkpoint of {entry.dtype}",
                file=source.prefix,
            )
        found = Shape(part.shape(entry.dims) if part is not None else entry.dims)
        wanted = node.attr("shape", shapes.UNKNOWN)
        if not wanted.is_compatible_with(found):
            raise InvalidArgumentError(
                f"the variable '{node.name}' has the shape {wanted}, and '{name}' in the checkpoint {found}",
                file=source.prefix,
            )
        return key

    def proto(self, node: Node) -> TensorProto:
        """The value of a variable as a message; see `read`."""
        return tensor.from_array(self.read(node), node.attr("dtype").base)

    def names(self) -> Iterator[str]:
        """The variables of the graph."""
        yield from self._expected
