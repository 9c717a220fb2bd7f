"""What objects of other libraries stand for where they are fetched and fed.

TensorFlow's register_session_run_conversion_functions says so. A library's own
kind of tensor, a random variable, is taken apart into tensors, and made of their values again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Conversion:
    """What becomes of the objects of a class.

    Attributes:
        fetched: of an object, the tensors to fetch, and a function of their values that makes what the caller gets.
        fed: of an object and the value that it is fed, pairs of a tensor and its value; None where none can be fed.
        fed_in_part: of an object, the tensors that a partial run will be fed.
    """

    kind: type
    fetched: Callable[[Any], tuple[Sequence[Any], Callable[[list[Any]], Any]]]
    fed: Callable[[Any, Any], Sequence[tuple[Any, Any]]] | None
    fed_in_part: Callable[[Any], Sequence[Any]] | None


#: the last one that fits an object is taken
_registered: list[Conversion] = []


def register(conversion: Conversion) -> None:
    """Convert objects of a class from now on.

    Raises:
        ValueError: objects of the class are converted already.
    """
    if any(issubclass(each.kind, conversion.kind) for each in _registered):
        raise ValueError(f"objects of class {conversion.kind.__name__} are converted already")
    _registered.append(conversion)


def of(thing: Any) -> Conversion | None:
    """How an object is converted; None where it stands for itself."""
    return next((each for each in reversed(_registered) if isinstance(thing, each.kind)), None)


def fed_in_part(feeds: Sequence[Any]) -> list[Any]:
    """What a partial run will be fed, tensors in place of what stands for some."""
    found: list[Any] = []
    for each in feeds:
        conversion = of(each)
        convert = None if conversion is None else conversion.fed_in_part
        found += [each] if convert is None else convert(each)
    return found
