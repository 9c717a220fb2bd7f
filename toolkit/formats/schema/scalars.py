"""Kinds of single values: truth values, numbers, text, names."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

from toolkit.errors import GraphmillError
from toolkit.formats.schema.definitions import Definitions, Json
from toolkit.formats.schema.kinds import Kind
from toolkit.formats.schema.mistakes import Mistakes
from toolkit.formats.settings.tree import SpecError, YamlItem, dtype_of
from toolkit.graph import dtypes
from toolkit.graph.device import DeviceSpec

_NUMBER = r"^[-+]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][-+]?[0-9]+)?$"


class _Checked(Kind):
    """A kind whose reader raises at the first mistake, as those of `YamlItem` do."""

    @abstractmethod
    def read(self, item: YamlItem) -> Any:
        """The value.

        Raises:
            SpecError: it is of another kind.
        """

    def check(self, item: YamlItem, mistakes: Mistakes) -> None:
        try:
            self.read(item)
        except SpecError as error:
            mistakes.add(error)


@dataclass(frozen=True)
class Anything(Kind):
    """Whatever it is: values of attributes and constants, which their ops check."""

    noun = "a value"
    forms = frozenset({"null", "boolean", "number", "text", "list", "mapping"})

    def check(self, item: YamlItem, mistakes: Mistakes) -> None:
        pass

    def json(self, definitions: Definitions) -> Json:
        return {}


@dataclass(frozen=True)
class Boolean(_Checked):
    noun = "true or false"
    forms = frozenset({"boolean"})

    def read(self, item: YamlItem) -> bool:
        return item.boolean()

    def json(self, definitions: Definitions) -> Json:
        return definitions.value({"type": "boolean"})


@dataclass(frozen=True)
class Integer(_Checked):
    minimum: int | None = None

    noun = "a whole number"
    forms = frozenset({"number"})

    def read(self, item: YamlItem) -> int:
        return item.integer(self.minimum)

    def json(self, definitions: Definitions) -> Json:
        return definitions.value({"type": "integer"} | _given(minimum=self.minimum))


@dataclass(frozen=True)
class Number(_Checked):
    """A number; `1e-3`, which YAML 1.1 takes for text, is one."""

    minimum: float | None = None
    maximum: float | None = None

    noun = "a number"
    forms = frozenset({"number", "text"})

    def read(self, item: YamlItem) -> float:
        return item.number(self.minimum, self.maximum)

    def json(self, definitions: Definitions) -> Json:
        written = definitions.refer("number", lambda _: {"type": "string", "pattern": _NUMBER})
        number: Json = {"type": "number"} | _given(minimum=self.minimum, maximum=self.maximum)
        return definitions.value({"anyOf": [number, written]})


@dataclass(frozen=True)
class Text(_Checked):
    """Text, one of some words where `choices` are given."""

    choices: tuple[str, ...] = ()
    noun: str = "text"

    forms = frozenset({"text"})

    def read(self, item: YamlItem) -> str:
        return item.text(self.choices or None)

    def json(self, definitions: Definitions) -> Json:
        return definitions.value({"enum": list(self.choices)}) if self.choices else {"type": "string"}


@dataclass(frozen=True)
class DTypeName(_Checked):
    noun = "a data type"
    forms = frozenset({"text"})

    def read(self, item: YamlItem) -> Any:
        return dtype_of(item)

    def json(self, definitions: Definitions) -> Json:
        return definitions.refer("dtype", lambda made: made.value({"enum": dtypes.names()}))


@dataclass(frozen=True)
class DeviceName(_Checked):
    noun = "a device name"
    forms = frozenset({"text"})

    def read(self, item: YamlItem) -> DeviceSpec:
        text = item.text()
        try:
            return DeviceSpec.parse(text)
        except GraphmillError as error:
            raise item.error(error.message) from None

    def json(self, definitions: Definitions) -> Json:
        return {"type": "string"}


def _given(**values: Any) -> Json:
    return {key: value for key, value in values.items() if value is not None}
