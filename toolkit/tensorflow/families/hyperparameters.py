# TensorFlow's arguments may be anything, so what they are is for tests to say, not for types.
# pyright: basic
"""tf.contrib.training.HParams: hyperparameters with types, from keywords, texts and JSON."""

from __future__ import annotations

import json
import numbers
import re
from collections.abc import Callable, Iterable
from typing import Any

#: one assignment of a text: name, name[index] or name=[list]; what follows is a comma or the end
_ASSIGNMENT = re.compile(
    r"(?P<name>[a-zA-Z]\w*)(?:\[\s*(?P<index>\d+)\s*\])?\s*=\s*(?:\[(?P<list>[^\]]*)\]|(?P<value>[^,\[]*))(?:,|$)"
)
_WORDS = {"true": True, "True": True, "false": False, "False": False}


def _parsed(name: str, kind: Any, text: str, whole: str) -> Any:
    """A text as a value of a type.

    Raises:
        ValueError: it is none.
    """
    try:
        if kind is bool:
            return _WORDS[text] if text in _WORDS else bool(int(text))
        return kind(text)
    except (TypeError, ValueError):
        kind = getattr(kind, "__name__", kind)
        raise ValueError(f"Could not parse hparam '{name}' of type '{kind}' with value '{text}' in {whole}") from None


def parse_values(values: str, type_map: dict[str, Any], ignore_unknown: bool = False) -> dict[str, Any]:
    """The assignments of a text, "a=1,b=[x,y],c[2]=0.5": name to a value, a list, or a dict of indexes.

    Args:
        type_map: name to the type of its values, or of the values of its list.
        ignore_unknown: pass over names that are not in `type_map`.

    Raises:
        ValueError: the text is malformed, a name is unknown or assigned twice, a value is not of its type.
    """
    found: dict[str, Any] = {}
    place = 0
    while place < len(values):
        match = _ASSIGNMENT.match(values, place)
        if match is None:
            raise ValueError(f"Malformed hyperparameter value: {values[place:]}")
        place = match.end()
        name, index = match["name"].strip(), match["index"]
        if name not in type_map:
            if ignore_unknown:
                continue
            raise ValueError(f"Unknown hyperparameter type for {name}")
        kind = type_map[name]
        if index is not None:
            if match["list"] is not None:
                raise ValueError(f"Assignment of a list to a list index: {match[0]}")
            slots = found.setdefault(name, {})
            if not isinstance(slots, dict) or int(index) in slots:
                raise ValueError(f"Multiple assignments to variable '{name}[{index}]' in {values}")
            slots[int(index)] = _parsed(name, kind, match["value"], values)
            continue
        if name in found:
            raise ValueError(f"Multiple assignments to variable '{name}' in {values}")
        if match["list"] is not None:
            items = [item.strip() for item in match["list"].split(",")] if match["list"].strip() else []
            found[name] = [_parsed(name, kind, item, values) for item in items]
        else:
            found[name] = _parsed(name, kind, match["value"], values)
    return found


def _cast(name: str, kind: Any, value: Any) -> Any:
    """A value as one of a type, where nothing is lost by it.

    Raises:
        ValueError: something would be.
    """
    if value is None or kind is type(None):
        return value
    wrong = ValueError(f"Could not cast hparam '{name}' of type '{kind}' from value {value!r}")
    if issubclass(kind, bool) != isinstance(value, bool):
        raise wrong
    if issubclass(kind, str | bytes) and not isinstance(value, str | bytes):
        raise wrong
    if issubclass(kind, numbers.Integral) and not isinstance(value, numbers.Integral):
        raise wrong
    if issubclass(kind, numbers.Number) and not isinstance(value, numbers.Number):
        raise wrong
    plain: Any = value  # the checks above have narrowed its type
    try:
        return kind(plain)
    except (TypeError, ValueError):
        raise wrong from None


class HParams:
    """Hyperparameters as attributes, each of the type of its first value.

    Args:
        hparam_def: an HParamDef message to take them from.
        model_structure: anything; kept.
        kwargs: names and values; a list has to have a value, which says what type the others have.
    """

    def __init__(self, hparam_def: Any = None, model_structure: Any = None, **kwargs: Any):
        self._hparam_types: dict[str, tuple[Any, bool]] = {}
        self._model_structure = model_structure
        if hparam_def is not None:
            raise ValueError("HParams: give names and values; messages of type HParamDef are not read")
        for name, value in kwargs.items():
            self.add_hparam(name, value)

    def add_hparam(self, name: str, value: Any) -> None:
        """Add one.

        Raises:
            ValueError: the name is taken, or the value is an empty list.
        """
        if getattr(self, name, None) is not None:
            raise ValueError(f"Hyperparameter name is reserved: {name}")
        if isinstance(value, list | tuple):
            if not value:
                raise ValueError(f"Multi-valued hyperparameters cannot be empty: {name}")
            self._hparam_types[name] = (type(value[0]), True)
        else:
            self._hparam_types[name] = (type(value), False)
        setattr(self, name, value)

    def set_hparam(self, name: str, value: Any) -> None:
        """Give one that is there another value.

        Raises:
            KeyError: it is not there.
            ValueError: the value is not of its type.
        """
        kind, is_list = self._hparam_types[name]
        if isinstance(value, list):
            if not is_list:
                raise ValueError(f"Must not pass a list for single-valued parameter: {name}")
            setattr(self, name, [_cast(name, kind, item) for item in value])
        else:
            if is_list:
                raise ValueError(f"Must pass a list for multi-valued parameter: {name}.")
            setattr(self, name, _cast(name, kind, value))

    def del_hparam(self, name: str) -> None:
        """Take one away, if it is there."""
        if hasattr(self, name):
            delattr(self, name)
            del self._hparam_types[name]

    def parse(self, values: str) -> HParams:
        """Take values from a text (`parse_values`).

        Raises:
            ValueError: as there; or an index is given that a list does not have.
        """
        kinds = {name: kind for name, (kind, _) in self._hparam_types.items()}
        return self.override_from_dict(parse_values(values, kinds))

    def override_from_dict(self, values_dict: dict[str, Any]) -> HParams:
        """Take values by name; a dict sets places of a list."""
        for name, value in values_dict.items():
            if isinstance(value, dict) and self._hparam_types.get(name, (None, False))[1]:
                items = list(getattr(self, name))
                for index, item in value.items():
                    if index >= len(items):
                        raise ValueError(f"{name} has {len(items)} values, so there is no {name}[{index}]")
                    items[index] = item
                value = items
            self.set_hparam(name, value)
        return self

    def set_from_map(self, values_map: dict[str, Any]) -> HParams:
        """As `override_from_dict`."""
        return self.override_from_dict(values_map)

    def set_model_structure(self, model_structure: Any) -> None:
        self._model_structure = model_structure

    def get_model_structure(self) -> Any:
        return self._model_structure

    def to_json(self, indent: Any = None, separators: Any = None, sort_keys: bool = False) -> str:
        """All of them as JSON."""

        def no_function(value: Any) -> Any:
            return None if isinstance(value, Callable) else value

        shown = {name: no_function(value) for name, value in self.values().items()}
        return json.dumps(shown, indent=indent, separators=separators, sort_keys=sort_keys)

    def parse_json(self, values_json: str) -> HParams:
        """Take values from a JSON object."""
        return self.override_from_dict(json.loads(values_json))

    def values(self) -> dict[str, Any]:
        """Name to value."""
        return {name: getattr(self, name) for name in self._hparam_types}

    def get(self, key: str, default: Any = None) -> Any:
        """The value of a name, or the default.

        Raises:
            ValueError: the default could not be a value of it.
        """
        if key not in self._hparam_types:
            return default
        if default is not None:
            kind, is_list = self._hparam_types[key]
            shown = f"list<{kind}>" if is_list else str(kind)
            start = f"Hparam '{key}' of type '{shown}' is incompatible with default={default}"
            if is_list != isinstance(default, list):
                raise ValueError(start)
            try:
                for item in default if is_list else [default]:
                    _cast(key, kind, item)
            except ValueError as error:
                raise ValueError(f"{start}. {error}") from None
        return getattr(self, key)

    def __contains__(self, key: str) -> bool:
        return key in self._hparam_types

    def __str__(self) -> str:
        return ",".join(f"{name}={value}" for name, value in self.values().items())

    def __repr__(self) -> str:
        return f"{type(self).__name__}({sorted(self.values().items())})"

    def __iter__(self) -> Iterable[Any]:
        raise TypeError("an HParams is no sequence; values() is a dict")
