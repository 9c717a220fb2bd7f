"""What a kind of edit is: a frozen dataclass whose fields are its arguments, with `apply(draft) -> what it did`."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, runtime_checkable

from toolkit.formats.settings.tree import YamlItem
from toolkit.graph.shape import Shape

if TYPE_CHECKING:
    from toolkit.passes.edit.draft import Draft


@runtime_checkable
class Edit(Protocol):
    """One edit of a model."""

    name: ClassVar[str]

    def apply(self, draft: Draft) -> str:
        """Change the draft; returns what was done, as a sentence without an end.

        An edit that fails leaves the draft as it was.

        Raises:
            GraphmillError: the model and the arguments do not fit.
        """
        ...


@dataclass(frozen=True)
class ArgumentKind:
    """How an argument is written in YAML.

    Attributes:
        schema: as JSON Schema.
        read: its value, from YAML; raises SpecError.
        shown: for people.
    """

    schema: Mapping[str, Any]
    read: Callable[[YamlItem], Any]
    shown: str


def _patterns(item: YamlItem) -> tuple[str, ...]:
    return tuple(each.text() for each in item.texts())


def _values(item: YamlItem) -> tuple[Any, ...]:
    return tuple(each.plain() for each in item.items()) if isinstance(item.value, list) else (item.plain(),)


def _shape(item: YamlItem) -> Shape:
    if item.value == "unknown":
        return Shape(None)
    if not isinstance(item.value, list):
        raise item.error(f"expected a list of sizes, null for unknown ones, or unknown; found {item.describe()}")
    return Shape(item.sizes())


def _size(item: YamlItem) -> int | None:
    return None if item.value is None else item.integer(1)


def _table(item: YamlItem) -> dict[str, str]:
    return {key: value.text() for key, value in item.section()}


def _plain_table(item: YamlItem) -> dict[str, Any]:
    return {key: value.plain() for key, value in item.section()}


def _index(item: YamlItem) -> int:
    return item.integer(0)


_TEXT = {"type": "string"}
_TEXTS = {"oneOf": [_TEXT, {"type": "array", "items": _TEXT}]}
TEXT = ArgumentKind(_TEXT, YamlItem.text, "text")
PATTERNS = ArgumentKind(_TEXTS, _patterns, "a name or pattern, or a list of them")
FLAG = ArgumentKind({"type": "boolean"}, YamlItem.boolean, "true or false")
INDEX = ArgumentKind({"type": "integer", "minimum": 0}, _index, "a number from 0")
SIZE = ArgumentKind({"type": ["integer", "null"], "minimum": 1}, _size, "a number, or null for any")
SHAPE = ArgumentKind(
    {"oneOf": [{"type": "array", "items": {"type": ["integer", "null"], "minimum": 0}}, {"const": "unknown"}]},
    _shape,
    "a list of sizes, null for unknown ones, or unknown",
)
VALUE = ArgumentKind({}, YamlItem.plain, "any value")
VALUES = ArgumentKind({}, _values, "a value or a list of them")
TABLE = ArgumentKind({"type": "object", "additionalProperties": _TEXT}, _table, "a mapping of names to texts")
ATTRIBUTES = ArgumentKind({"type": "object"}, _plain_table, "a mapping of attributes to values")


def argument(kind: ArgumentKind, help: str, default: Any = dataclasses.MISSING) -> Any:
    """A field of an edit; required unless it has a default."""
    metadata = {"kind": kind, "help": help}
    if isinstance(default, dict):
        made: dict[str, Any] = default  # pyright: ignore[reportUnknownVariableType] -- always an empty one
        return dataclasses.field(default_factory=lambda: dict(made), metadata=metadata)
    return dataclasses.field(default=default, metadata=metadata)


def arguments(kind: type[Edit]) -> dict[str, tuple[ArgumentKind, str, bool]]:
    """The arguments of a kind of edit: how each is written, its help, whether it is required."""
    found: dict[str, tuple[ArgumentKind, str, bool]] = {}
    for field in dataclasses.fields(kind):  # pyright: ignore[reportArgumentType] -- they are dataclasses
        required = field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
        found[field.name] = (field.metadata["kind"], field.metadata["help"], required)
    return found
