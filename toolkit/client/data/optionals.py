"""Values that may be missing: what an iterator says at its end instead of failing."""

from __future__ import annotations

from typing import Any

from toolkit.client import ops
from toolkit.client.construction.create import create_op
from toolkit.client.construction.scopes import name_scope
from toolkit.client.construction.tensor import Tensor
from toolkit.client.data import structure as structures
from toolkit.client.data.iterators import Iterator


class Optional:
    """A value, or none; which of both is known when a step runs.

    Attributes:
        variant: the tensor that holds it.
        structure: what the value is.
    """

    variant: Tensor
    structure: Any

    def has_value(self, name: str | None = None) -> Tensor:
        """Whether there is one."""
        return ops.optional_has_value(self.variant, name=name)

    def get_value(self, name: str | None = None) -> Any:
        """The value; a step that runs it fails where there is none."""
        with name_scope(name, "OptionalGetValue", [self.variant]) as scope:
            op = create_op("OptionalGetValue", [self.variant], structures.attributes(self.structure), scope)
            return structures.unpacked(self.structure, op.outputs)

    @property
    def value_structure(self) -> Any:
        return self.structure

    element_spec = value_structure

    @staticmethod
    def from_value(value: Any) -> Optional:
        """One that holds a value."""
        with name_scope("optional") as scope:
            with name_scope("value"):
                element = structures.normalized(value)
            structure = structures.structure_of(element)
            packed = structures.packed(structure, element)
            return _holding(ops.optional_from_value(packed, name=f"{scope}OptionalFromValue"), structure)

    @staticmethod
    def none_from_structure(value_structure: Any) -> Optional:
        """One that holds none."""
        return _holding(ops.optional_none(), value_structure)


def _holding(variant: Tensor, structure: Any) -> Optional:
    made = Optional()
    made.variant, made.structure = variant, structure
    return made


def get_next_as_optional(iterator: Iterator) -> Optional:
    """The next element, or none at the end."""
    return _holding(iterator.get_next_as_optional(), iterator.structure)
