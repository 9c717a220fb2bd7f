"""Sums of products by their indices: `einsum("ij,jk->ik", a, b)`."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

from toolkit.client import ops
from toolkit.client.construction.convert import convert_to_tensor
from toolkit.client.construction.scopes import name_scope
from toolkit.client.construction.tensor import Tensor, TensorLike
from toolkit.errors import UsageError

#: stands for an ellipsis while equations are taken apart
_REST = "0"


def einsum(equation: str, *inputs: TensorLike, name: str | None = None, optimize: str = "greedy") -> Tensor:
    """The sum of products that an equation describes; "..." stands for the axes that it does not name.

    More than two tensors are contracted two at a time, in the order that NumPy's `einsum_path` finds.

    Args:
        optimize: how the order is looked for: "greedy" or "optimal".

    Raises:
        UsageError: the equation is malformed, or does not fit the number or the ranks of the tensors.
    """
    with name_scope(name, "einsum", [equation, inputs]):
        tensors = [each if hasattr(each, "dtype") else convert_to_tensor(each) for each in inputs]
        terms, result = _parse(equation, len(tensors))
        if len(tensors) <= 2:
            return ops.einsum(tensors, equation=_written(terms, result))
        tensors = [convert_to_tensor(each) for each in tensors]
        for places, step in _path(equation, terms, result, tensors, optimize):
            taken = [tensors.pop(place) for place in places]
            tensors.append(ops.einsum(taken, equation=step.replace(_REST, "...")))
        return tensors[0]


def _parse(equation: str, count: int) -> tuple[list[str], str]:
    """The labels of each input and of the result, with `_REST` for an ellipsis."""
    plain = equation.replace(" ", "")
    if _REST in plain:
        raise UsageError(f"einsum: '{equation}' holds '{_REST}'; labels are letters")
    plain = plain.replace("...", _REST)
    match = re.fullmatch(f"([a-zA-Z{_REST},]*)(->[a-zA-Z{_REST}]*)?", plain)
    if match is None:
        raise UsageError(f"einsum: '{equation}' is no equation; expected letters and commas, then -> and letters")
    terms = match[1].split(",")
    if len(terms) != count:
        raise UsageError(f"einsum: '{equation}' is about {len(terms)} tensor(s), got {count}")
    if match[2] is None:
        counts = Counter(match[1])
        result = "".join(sorted(label for label, times in counts.items() if label != "," and times == 1))
    else:
        result = match[2][2:]
    twice = [label for label, times in Counter(result).items() if times > 1]
    unknown = sorted({*result} - {*match[1], _REST})
    if twice or unknown:
        what = f"has '{twice[0]}' twice" if twice else f"has '{unknown[0]}', which no tensor has"
        raise UsageError(f"einsum: the result of '{equation}' {what.replace(_REST, '...')}")
    return terms, result


def _written(terms: Sequence[str], result: str) -> str:
    return f"{','.join(terms)}->{result}".replace(_REST, "...")


def _path(
    equation: str, terms: list[str], result: str, tensors: list[Tensor], optimize: str
) -> list[tuple[tuple[int, ...], str]]:
    """Which tensors to contract, by their places, and how: steps in order, each puts its result at the end."""
    import numpy as np

    letter = next(label for label in "ZYXWVUTSRQPONMLKJIHGFEDCBA" if label not in equation)
    sizes: dict[str, int] = {}
    for term, tensor in zip(terms, tensors, strict=True):
        for label, size in zip(term, _sizes(equation, term, tensor), strict=True):
            sizes[label] = max(sizes.get(label, 1), size)
    # views of one number: as large as the tensors, without their memory
    views = [np.broadcast_to(np.zeros(()), [sizes[label] for label in term]) for term in terms]
    named = f"{','.join(terms)}->{result}".replace(_REST, letter)
    found: Any = np.einsum_path(named, *views, optimize=optimize)[0]
    left, steps = list(terms), list[tuple[tuple[int, ...], str]]()
    for chosen in found[1:]:
        places = tuple(sorted(chosen, reverse=True))
        taken = [left.pop(place) for place in places]
        needed = {*result, *"".join(left)}
        kept = "".join(dict.fromkeys("".join(taken)))  # in the order of their first use
        made = "".join(label for label in kept if label in needed) if left else result
        steps.append((places, f"{','.join(taken)}->{made}"))
        left.append(made)
    return steps


def _sizes(equation: str, term: str, tensor: Tensor) -> list[int]:
    """The size of each label's axis, 1 where it is not known; that of an ellipsis is the number of its elements."""
    shape = tensor.static_shape
    if shape.rank is None:
        return [1] * len(term)
    known = [1 if size is None else size for size in list(shape)]
    place = term.find(_REST)
    if place >= 0 and len(term) - 1 <= len(known):
        stop = place + len(known) - len(term) + 1
        rest = 1
        for size in known[place:stop]:
            rest *= size
        known[place:stop] = [rest]
    if len(known) != len(term):
        raise UsageError(f"einsum: '{term.replace(_REST, '...')}' of '{equation}' does not fit the shape {shape}")
    return known
