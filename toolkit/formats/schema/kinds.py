"""What every kind of value has: how it is checked, and how it is told as JSON Schema."""

from __future__ import annotations

from abc import ABC, abstractmethod

from toolkit.formats.schema.definitions import Definitions, Json
from toolkit.formats.schema.mistakes import Mistakes
from toolkit.formats.settings.tree import YamlItem


class Kind(ABC):
    """What a value may be.

    Attributes:
        noun: how messages call it, "a whole number".
        forms: of which forms a value is: "null", "boolean", "number", "text", "list", "mapping".
    """

    noun: str
    forms: frozenset[str]

    @abstractmethod
    def check(self, item: YamlItem, mistakes: Mistakes) -> None:
        """Note what is wrong with a value."""

    @abstractmethod
    def json(self, definitions: Definitions) -> Json:
        """The kind as JSON Schema."""


def form_of(item: YamlItem) -> str:
    """The form of a value: "null", "boolean", "number", "text", "list" or "mapping"."""
    match item.value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int() | float():
            return "number"
        case str():
            return "text"
        case list():
            return "list"
        case _:
            return "mapping"


def is_mapping(item: YamlItem, mistakes: Mistakes, noun: str = "a mapping") -> bool:
    """Whether a value is a mapping; a mistake is noted where it is none."""
    if isinstance(item.value, dict):
        return True
    mistakes.add(item.error(f"expected {noun}, found {item.describe()}"))
    return False
