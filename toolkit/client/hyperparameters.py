"""Hyperparameters: named values with types, which texts such as "rate=0.1,layers=[3,4]" and JSON override."""

from __future__ import annotations

import json
import numbers
import re
from collections.abc import Mapping
from typing import Any, cast

#: one assignment: a name, an index in brackets, and a value or a list in brackets
_ASSIGNMENT = re.compile(
    r"(?P<name>[a-zA-Z][\w.]*)(\[\s*(?P<index>\d+)\s*\])?\s*=\s*((?P<value>[^,\[]*)|\[(?P<values>[^\]]*)\])($|,\s*)"
)
_TRUTHS = {"true": True, "True": True, "false": False, "False": False}


def parse_values(values: str, type_map: Mapping[str, Any], ignore_unknown: bool = False) -> dict[str, Any]:
    """A text of assignments as a dictionary.

    Args:
        type_map: the type of each name; of lists, of their elements.
        ignore_unknown: leave out names that are not in `type_map`.

    Returns:
        Name to value; for `name[index]=value`, name to {index: value}.

    Raises:
        ValueError: an unknown name, a value of another type, the same name twice, or what is no assignment.
    """
    found: dict[str, Any] = {}
    position = 0
    while position < len(values):
        match = _ASSIGNMENT.match(values, position)
        if match is None:
            raise ValueError(f"expected NAME=VALUE, NAME[INDEX]=VALUE or NAME=[VALUES], got {values[position:]!r}")
        position = match.end()
        name = match["name"]
        if name not in type_map:
            if ignore_unknown:
                continue
            raise ValueError(f"there is no hyperparameter '{name}'")
        kind = type_map[name]
        if match["values"] is not None:
            if match["index"] is not None:
                raise ValueError(f"{name}: an element of a list cannot be a list")
            value: Any = [_parsed(name, kind, part, values) for part in re.split(r"[\s,]+", match["values"]) if part]
        else:
            value = _parsed(name, kind, match["value"].strip(), values)
        if match["index"] is not None:
            elements: Any = found.setdefault(name, {})
            if not isinstance(elements, dict) or int(match["index"]) in elements:
                raise ValueError(f"{name} is given twice in {values}")
            elements[int(match["index"])] = value
        elif name in found:
            raise ValueError(f"{name} is given twice in {values}")
        else:
            found[name] = value
    return found


def _parsed(name: str, kind: Any, text: str, whole: str) -> Any:
    try:
        if kind is bool:
            return _TRUTHS[text] if text in _TRUTHS else bool(int(text))
        return kind(text)
    except ValueError:
        wanted = getattr(kind, "__name__", kind)
        raise ValueError(f"{name}: expected a value of type {wanted}, got {text!r} in {whole}") from None


def _cast(name: str, kind: type, value: Any) -> Any:
    """A value as another of the type that a hyperparameter has.

    Raises:
        ValueError: it would lose what it says.
    """
    message = f"{name}: expected a value of type {kind.__name__}, got {value!r}"
    if value is None or kind is type(None):
        return value
    if issubclass(kind, bool) != isinstance(value, bool) and (
        issubclass(kind, bool) or issubclass(kind, numbers.Number)
    ):
        raise ValueError(message)
    if issubclass(kind, numbers.Integral) and not isinstance(value, numbers.Integral):
        raise ValueError(message)
    if issubclass(kind, numbers.Number) and not isinstance(value, numbers.Number):
        raise ValueError(message)
    if issubclass(kind, str) and not isinstance(value, str | bytes):
        raise ValueError(message)
    return cast("Any", kind)(value)


class HParams:
    """Hyperparameters, each an attribute: `HParams(rate=0.1).rate`.

    A list may hold elements of one type only, and its first says which.

    Raises:
        ValueError: a name that is taken, an empty list, a value of another type than the first.
    """

    def __init__(self, hparam_def: Any = None, model_structure: Any = None, **kwargs: Any):
        self._types: dict[str, tuple[type, bool]] = {}
        self._model_structure = model_structure
        if hparam_def is not None:
            raise NotImplementedError("HParams from an HParamDef; give the values as arguments, or use parse_json")
        for name, value in kwargs.items():
            self.add_hparam(name, value)

    def add_hparam(self, name: str, value: Any) -> None:
        """Add one more."""
        if getattr(self, name, None) is not None:
            raise ValueError(f"there is something called '{name}' already")
        if isinstance(value, list | tuple):
            elements: list[Any] = list(cast("Any", value))
            if not elements:
                raise ValueError(f"{name}: a list needs a value, which says what type the others have")
            self._types[name] = (type(elements[0]), True)
        else:
            self._types[name] = (type(value), False)
        setattr(self, name, value)

    def set_hparam(self, name: str, value: Any) -> None:
        """Give one another value, of its type."""
        kind, is_list = self._types[name]
        if isinstance(value, list):
            if not is_list:
                raise ValueError(f"{name} is one value, not a list")
            setattr(self, name, [_cast(name, kind, each) for each in cast("list[Any]", value)])
        elif is_list:
            raise ValueError(f"{name} is a list, not one value")
        else:
            setattr(self, name, _cast(name, kind, value))

    def del_hparam(self, name: str) -> None:
        """Remove one; nothing if there is none."""
        if hasattr(self, name):
            delattr(self, name)
            self._types.pop(name, None)

    def parse(self, values: str) -> HParams:
        """Override by a text of assignments, "a=1,b=[2,3],c[0]=4".

        Raises:
            ValueError: see `parse_values`.
        """
        types = {name: kind for name, (kind, _) in self._types.items()}
        changed: dict[str, Any] = {}
        for name, value in parse_values(values, types).items():
            if isinstance(value, dict):
                elements: list[Any] = list(getattr(self, name))
                for index, element in cast("dict[int, Any]", value).items():
                    if index >= len(elements):
                        raise ValueError(f"hparam '{name}' has {len(elements)} elements; there is no index {index}")
                    elements[index] = element
                value = elements
            changed[name] = value
        return self.override_from_dict(changed)

    def override_from_dict(self, values_dict: Mapping[str, Any]) -> HParams:
        """Override by a dictionary."""
        for name, value in values_dict.items():
            self.set_hparam(name, value)
        return self

    set_from_map = override_from_dict

    def parse_json(self, values_json: str) -> HParams:
        """Override by a JSON object."""
        return self.override_from_dict(json.loads(values_json))

    def to_json(self, indent: Any = None, separators: Any = None, sort_keys: bool = False) -> str:
        """All as a JSON object; functions are left out."""
        plain = {name: value for name, value in self.values().items() if not callable(value)}
        return json.dumps(plain, indent=indent, separators=separators, sort_keys=sort_keys)

    def values(self) -> dict[str, Any]:
        """Name to value, in the order in which they were added."""
        return {name: getattr(self, name) for name in self._types}

    def get(self, key: str, default: Any = None) -> Any:
        """The value of a name, or `default`, which must be of its type."""
        if key not in self._types:
            return default
        kind, is_list = self._types[key]
        if default is not None:
            if is_list != isinstance(default, list):
                raise ValueError(f"Hparam '{key}' is {'a list' if is_list else 'no list'}; default={default!r}")
            _cast(key, kind, default[0] if is_list and default else default)
        return getattr(self, key)

    def get_model_structure(self) -> Any:
        return self._model_structure

    def set_model_structure(self, model_structure: Any) -> None:
        self._model_structure = model_structure

    def __contains__(self, key: object) -> bool:
        return key in self._types

    def __str__(self) -> str:
        return ",".join(f"{name}={value!s}" for name, value in self.values().items())

    def __repr__(self) -> str:
        return f"HParams({sorted(self.values().items())!r})"
