"""YAML with positions: every value knows its file and line, so that every mistake can be pointed at."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from toolkit.errors import FormatError, GraphmillError, did_you_mean
from toolkit.formats.settings.documents import Yaml
from toolkit.graph import dtypes
from toolkit.graph.dtypes import DType


class SpecError(GraphmillError):
    """A mistake in a spec, at a line of it."""


@dataclass(frozen=True, slots=True)
class YamlItem:
    """One value of the file.

    Attributes:
        value: None, bool, int, float, str, list of Items, or dict of Items.
        where: what it is, for messages: "nodes[2].filters".
        file, line: where it stands; lines count from 1.
        column: likewise; 0 where messages do not tell it.
    """

    value: Any
    where: str
    file: str
    line: int
    column: int = 0

    def error(self, message: str) -> SpecError:
        place = f"{self.where}: " if self.where else ""
        return SpecError(place + message, file=self.place)

    @property
    def place(self) -> str:
        """Where it stands: "file:line", "file:line:column"."""
        return f"{self.file}:{self.line}:{self.column}" if self.column else f"{self.file}:{self.line}"

    def plain(self) -> Any:
        """The value without positions."""
        if isinstance(self.value, list):
            return [item.plain() for item in self.items()]
        if isinstance(self.value, dict):
            return {key: item.plain() for key, item in self.value.items()}  # type: ignore[misc]
        return self.value

    # -- typed access ----------------------------------------------------------------------------------------

    def items(self) -> list[YamlItem]:
        """The elements of a list.

        Raises:
            SpecError: it is no list.
        """
        if not isinstance(self.value, list):
            raise self.error(f"expected a list, found {self.describe()}")
        return self.value  # type: ignore[return-value]

    def section(self, known: Iterable[str] | None = None, required: Iterable[str] = ()) -> Section:
        """The value as a mapping, its keys checked.

        Raises:
            SpecError: it is no mapping, has a key that is not known, or lacks one that is required.
        """
        if not isinstance(self.value, dict):
            raise self.error(f"expected a mapping, found {self.describe()}")
        section = Section(self, self.value)  # type: ignore[arg-type]
        if known is not None:
            section.check(known)
        for key in required:
            if key not in section:
                raise self.error(f"the key '{key}' is missing")
        return section

    def text(self, choices: Iterable[str] | None = None) -> str:
        """The value as a string.

        Raises:
            SpecError: it is none, or not one of `choices`.
        """
        if not isinstance(self.value, str):
            raise self.error(f"expected text, found {self.describe()}")
        if choices is not None:
            options = list(choices)
            if self.value not in options:
                hint = did_you_mean(self.value, options)
                raise self.error(f"'{self.value}' is unknown{hint} (expected one of: {', '.join(options)})")
        return self.value

    def integer(self, minimum: int | None = None) -> int:
        """The value as an int.

        Raises:
            SpecError: it is none, or below the minimum.
        """
        if isinstance(self.value, bool) or not isinstance(self.value, int):
            raise self.error(f"expected a whole number, found {self.describe()}")
        if minimum is not None and self.value < minimum:
            raise self.error(f"expected at least {minimum}, found {self.value}")
        return self.value

    def number(self, minimum: float | None = None, maximum: float | None = None) -> float:
        """The value as a float. YAML 1.1 takes 1e-3 for text; it is meant as a number here.

        Raises:
            SpecError: it is none, or outside the bounds.
        """
        value = self.value
        if isinstance(value, str):
            try:
                value = float(value)
            except ValueError:
                raise self.error(f"expected a number, found {self.describe()}") from None
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self.error(f"expected a number, found {self.describe()}")
        if minimum is not None and value < minimum:
            raise self.error(f"expected at least {minimum}, found {value}")
        if maximum is not None and value > maximum:
            raise self.error(f"expected at most {maximum}, found {value}")
        return float(value)

    def boolean(self) -> bool:
        """The value as a bool.

        Raises:
            SpecError: it is none.
        """
        if not isinstance(self.value, bool):
            raise self.error(f"expected true or false, found {self.describe()}")
        return self.value

    def integers(self, minimum: int | None = None) -> int | list[int]:
        """One int, or a list of them."""
        if isinstance(self.value, list):
            return [item.integer(minimum) for item in self.items()]
        return self.integer(minimum)

    def sizes(self) -> list[int | None]:
        """A shape: a list of sizes, null for unknown ones.

        Raises:
            SpecError: it is none.
        """
        return [None if item.value is None else item.integer(0) for item in self.items()]

    def texts(self) -> list[YamlItem]:
        """One name or a list of names, as Items."""
        found: list[YamlItem] = self.items() if isinstance(self.value, list) else [self]
        for item in found:
            item.text()
        return found

    def describe(self) -> str:
        """What the value is, for messages."""
        match self.value:
            case None:
                return "nothing"
            case bool():
                return "true" if self.value else "false"
            case str():
                return f"'{self.value}'"
            case list():
                return "a list"
            case dict():
                return "a mapping"
            case _:
                return str(self.value)


class Section:
    """A mapping of the file."""

    def __init__(self, item: YamlItem, values: dict[str, YamlItem]):
        self.item = item
        self.values = values

    def __contains__(self, key: str) -> bool:
        return key in self.values

    def __iter__(self) -> Iterator[tuple[str, YamlItem]]:
        return iter(self.values.items())

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, key: str) -> YamlItem:
        """The value of a key.

        Raises:
            SpecError: it is missing.
        """
        try:
            return self.values[key]
        except KeyError:
            raise self.item.error(f"the key '{key}' is missing") from None

    def get(self, key: str) -> YamlItem | None:
        """The value of a key; None when it is missing or null."""
        found = self.values.get(key)
        return None if found is None or found.value is None else found

    def check(self, known: Iterable[str]) -> None:
        """Refuse keys that are not known.

        Raises:
            SpecError: there is one; close names are suggested.
        """
        options = list(known)
        for key, item in self.values.items():
            if key not in options:
                place = f"{self.item.where}: " if self.item.where else ""
                hint = did_you_mean(key, options)
                message = f"{place}unknown key '{key}'{hint} (expected: {', '.join(options)})"
                raise SpecError(message, file=item.place)

    def integer(self, key: str, default: int | None = None, minimum: int | None = None) -> int:
        found = self.get(key)
        if found is None and default is not None:
            return default
        return self[key].integer(minimum)

    def number(
        self, key: str, default: float | None = None, minimum: float | None = None, maximum: float | None = None
    ) -> float:
        found = self.get(key)
        if found is None and default is not None:
            return default
        return self[key].number(minimum, maximum)

    def boolean(self, key: str, default: bool) -> bool:
        found = self.get(key)
        return default if found is None else found.boolean()

    def text(self, key: str, default: str | None = None, choices: Iterable[str] | None = None) -> str:
        found = self.get(key)
        if found is None and default is not None:
            return default
        return self[key].text(choices)


def parse(text: str, file: str, *, columns: bool = False) -> YamlItem:
    """Read a YAML document.

    Args:
        columns: tell columns in messages too.

    Raises:
        SpecError: bad YAML, a key given twice, several documents, or none.
    """
    try:
        document = Yaml(text, file, columns=columns)
        if document.root is None:
            raise SpecError("the spec is empty", file=file)
        return _Reader(document, file, columns).read(document.root, "")
    except FormatError as error:
        raise SpecError(error.message, file=error.file) from None


class _Reader:
    def __init__(self, document: Yaml, file: str, columns: bool):
        self.document = document
        self.file = file
        self.columns = columns

    def column(self, node: Any) -> int:
        return node.start_mark.column + 1 if self.columns else 0

    def place(self, node: Any) -> str:
        return YamlItem(None, "", self.file, node.start_mark.line + 1, self.column(node)).place

    def read(self, node: Any, where: str) -> YamlItem:
        line = node.start_mark.line + 1
        value: Any
        if node.id == "mapping":
            self._check_keys(node, where)
            self.document.merge(node)
            value = self._mapping(node, where)
        elif node.id == "sequence":
            value = [self.read(child, f"{where}[{i}]") for i, child in enumerate(node.value)]
        else:
            value = self.document.construct(node)
            if not isinstance(value, str | int | float | bool | None):
                value = str(node.value)  # dates and the like are meant as text
        return YamlItem(value, where, self.file, line, self.column(node))

    def _check_keys(self, node: Any, where: str) -> None:
        seen: set[str] = set()
        for key_node, _ in node.value:
            place = f"{where}: " if where else ""
            if key_node.id != "scalar":
                raise SpecError(f"{place}a key must be a word", file=self.place(key_node))
            if key_node.value in seen:
                raise SpecError(f"{place}the key '{key_node.value}' is given twice", file=self.place(key_node))
            seen.add(key_node.value)

    def _mapping(self, node: Any, where: str) -> dict[str, YamlItem]:
        out: dict[str, YamlItem] = {}
        for key_node, child in node.value:
            line = key_node.start_mark.line + 1
            key = str(key_node.value)
            item = self.read(child, f"{where}.{key}" if where else key)
            out[key] = YamlItem(item.value, item.where, item.file, line, self.column(key_node))
        return out


def dtype_of(item: YamlItem) -> DType:
    """A data type by name.

    Raises:
        SpecError: there is none of that name.
    """
    try:
        return dtypes.from_name(item.text())
    except SpecError:
        raise
    except GraphmillError as error:
        raise item.error(error.message) from None
