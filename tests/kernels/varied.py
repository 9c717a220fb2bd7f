"""Cases of the op suite with something changed: types, sizes, ranks, values, attributes.

What comes out need not be valid. Two kernels of one op must give the same, or refuse it the same way
(`tests.kernels.beside_cpu --varied`): a row of the suite says what an op takes, so that most cases go through.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import ml_dtypes
import numpy as np

from toolkit.graph import dtypes, opdefs
from toolkit.graph.dtypes import DType
from toolkit.graph.opdefs import ArgDef, OpDef
from toolkit.kernels import facts

#: numbers of a tensor, at most: the machine that runs kernels takes a millisecond for a thousand
MOST_NUMBERS = 3000
MOST_RANK = 6
#: tries for a case whose node can be made
_TRIES = 20
_SIZES = (0, 0, 1, 1, 2, 3, 5, 9, 33)
_PLACES = (-3, -2, -1, 0, 1, 2, 3, 7)


#: words in the names of arguments that sizes of results follow from
_OF_SIZES = ("shape", "size", "dims", "length", "num_", "depth", "multiples", "paddings", "limit", "axes")


def varied(case: Any, device: str, seed: int, is_fit: Callable[[Any], bool]) -> Iterator[Any]:
    """Cases made of one, without end, or none where no change gives a node that is fit.

    Args:
        device: a type, whose kernels' types are taken.
        is_fit: whether a case takes part.
    """
    number = 0
    while True:
        for _ in range(_TRIES):
            number += 1
            dice = random.Random(f"{case.label} {seed} {number}")
            made = _changed(dice, case, device)
            if made is not None and is_fit(made):
                yield replace(made, id=_label(made, f"{case.label}~{seed}.{number}"))
                break
        else:
            return


def _label(made: Any, first: str) -> str:
    shapes = [f"{each.dtype}{list(each.shape)}".replace(" ", "") for value in made.inputs for each in _arrays(value)]
    return " ".join([first, *shapes, *(f"{key}={value}" for key, value in made.attrs.items())])


def _changed(dice: random.Random, case: Any, device: str) -> Any:
    op_def = opdefs.get(case.op)
    attrs = dict(case.attrs)
    inputs = [_copied(value) for value in case.inputs]
    if any(not _is_plain(value) for value in inputs):
        return None  # handles and variants
    on_host = _on_host(case.op, device)
    steps = [_other_types, _other_sizes, _other_ranks, _other_values, _other_attributes]
    done = False
    for step in dice.sample(steps, k=dice.choice((1, 1, 2, 3))):
        done |= step(dice, op_def, attrs, inputs, on_host)
        if any(np.size(each) > MOST_NUMBERS for value in inputs for each in _arrays(value)):
            return None
    if not done:
        return None
    return replace(case, inputs=inputs, attrs=attrs, error=None)


def _on_host(op: str, device: str) -> frozenset[str]:
    """Arguments that stay in host memory whatever the types, and others that are sizes by their names."""
    found = [frozenset(each.get("host_memory", ())) for each in facts.registrations(op, device)]
    always = frozenset[str].intersection(*found) if found else frozenset[str]()
    return always | {arg.name for arg in opdefs.get(op).inputs if any(word in arg.name for word in _OF_SIZES)}


# -- inputs of suites ------------------------------------------------------------------------------------


def _is_variable(value: Any) -> bool:
    return type(value).__name__ == "Var"


def _is_plain(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return all(map(_is_plain, value))
    if _is_variable(value):
        return value.value is not None
    if isinstance(value, np.ndarray):
        return value.dtype != object
    return isinstance(value, np.generic | bool | int | float | complex)


def _copied(value: Any) -> Any:
    return list(value) if isinstance(value, list | tuple) else value


def _arrays(value: Any) -> list[Any]:
    """The tensors of an argument."""
    if isinstance(value, list | tuple):
        return [each for one in value for each in _arrays(one)]
    return [np.asarray(value.value if _is_variable(value) else value)]


def _mapped(value: Any, change: Callable[[Any], Any]) -> Any:
    if isinstance(value, list | tuple):
        return [_mapped(each, change) for each in value]
    if _is_variable(value):
        return replace(value, value=change(np.asarray(value.value)))
    return change(np.asarray(value)) if isinstance(value, np.ndarray | np.generic) else value


# -- types -----------------------------------------------------------------------------------------------


def _types_of(op_def: OpDef, attr: str, on_host: frozenset[str]) -> list[DType]:
    """The types that TensorFlow's kernels for GPUs, or the op, take for an attribute."""
    wheres: list[dict[str, Any]] = [each.get("where") or {} for each in facts.registrations(op_def.name, "GPU")]
    names = {str(name) for where in wheres for name in where.get(attr, ())}
    known = [dtypes.from_name(name) for name in sorted(names) if name.startswith("DT_")]
    allowed = op_def.attrs[attr].allowed
    found = [dtype for dtype in known or allowed or () if allowed is None or dtype in allowed]
    return [dtype for dtype in found if dtype.kind not in "srv" and not dtype.is_quantized]


def _other_types(
    dice: random.Random, op_def: OpDef, attrs: dict[str, Any], inputs: list[Any], on_host: frozenset[str]
) -> bool:
    names = [name for name, attr in op_def.attrs.items() if attr.type == "type" and _types_of(op_def, name, on_host)]
    if not names:
        return False
    done = False
    for name in dice.sample(names, k=dice.randint(1, len(names))):
        users = [at for at, arg in enumerate(op_def.inputs) if arg.type_attr == name]
        users += [at for at, arg in enumerate(op_def.inputs) if name in ("T", "dtype") and _is_variable(inputs[at])]
        if not users and name not in attrs:
            continue
        dtype = dice.choice(_types_of(op_def, name, on_host))
        if name in attrs:
            attrs[name] = dtype.name
        for at in users:
            inputs[at] = _mapped(inputs[at], lambda x, dtype=dtype: cast(x, dtype.numpy))
        done = True
    return done


def cast(x: Any, type: Any) -> Any:
    """The numbers of an array in another type, as far as it has them."""
    if x.dtype == type:
        return x
    with np.errstate(all="ignore"):
        if type.kind == "c" and x.dtype.kind != "c":
            wide = x.astype(np.float64)
            return (wide + 1j * np.roll(wide.reshape(-1), 1).reshape(x.shape)).astype(type)
        if x.dtype.kind == "c" and type.kind != "c":
            x = x.real
        if type.kind in "iu":
            info = np.iinfo(type)
            return np.clip(np.nan_to_num(x.astype(np.float64)), max(info.min, -100), min(info.max, 100)).astype(type)
        return x.astype(type)


# -- shapes ----------------------------------------------------------------------------------------------


def _is_data(arg: ArgDef, on_host: frozenset[str]) -> bool:
    return arg.name not in on_host


def _other_sizes(
    dice: random.Random, op_def: OpDef, attrs: dict[str, Any], inputs: list[Any], on_host: frozenset[str]
) -> bool:
    """One size in place of another, wherever it is; or one axis of one tensor."""
    places = [at for at, arg in enumerate(op_def.inputs) if _is_data(arg, on_host)]
    sizes = sorted({size for at in places for each in _arrays(inputs[at]) for size in each.shape})
    if not sizes:
        return False
    old, new = dice.choice(sizes), dice.choice(_SIZES)
    if old == new:
        return False
    axis = dice.choice((None, None, 0, -1, -2))
    if dice.random() < 0.15:
        places = [dice.choice(places)]

    def change(x: Any) -> Any:
        for each in range(x.ndim):
            if x.size > MOST_NUMBERS:
                return x
            if x.shape[each] == old and (axis is None or each == axis % x.ndim):
                x = np.take(x, np.arange(new) % old, axis=each) if old else np.ones(_with(x.shape, each, new), x.dtype)
        return x

    for at in places:
        inputs[at] = _mapped(inputs[at], change)
    return True


def _with(shape: Sequence[int], axis: int, size: int) -> tuple[int, ...]:
    return (*shape[:axis], size, *shape[axis + 1 :])


def _other_ranks(
    dice: random.Random, op_def: OpDef, attrs: dict[str, Any], inputs: list[Any], on_host: frozenset[str]
) -> bool:
    """An axis more in front or behind, or one less, of all tensors of the largest rank, or of all."""
    places = [at for at, arg in enumerate(op_def.inputs) if _is_data(arg, on_host)]
    ranks = [each.ndim for at in places for each in _arrays(inputs[at])]
    if not ranks:
        return False
    least = dice.choice((max(ranks), max(ranks), 0))
    how, more = dice.choice(("front", "front", "back", "less")), dice.choice((1, 1, 2, 0))
    times = dice.randint(1, max(1, MOST_RANK - max(ranks)))

    def change(x: Any) -> Any:
        if x.ndim < least:
            return x
        if how == "less":
            return x[0] if x.ndim and x.shape[0] else x
        for _ in range(times):
            x = np.repeat(x[None] if how == "front" else x[..., None], more, axis=0 if how == "front" else -1)
        return x

    if how != "less" and max(ranks) + times > MOST_RANK:
        return False
    for at in places:
        inputs[at] = _mapped(inputs[at], change)
    return True


# -- values and attributes -------------------------------------------------------------------------------


def _other_values(
    dice: random.Random, op_def: OpDef, attrs: dict[str, Any], inputs: list[Any], on_host: frozenset[str]
) -> bool:
    """A few borders of its type among an argument's numbers; small places among those of integers."""
    done = False
    for at in dice.sample(range(len(inputs)), k=min(len(inputs), dice.choice((1, 1, 2)))):
        is_host = op_def.inputs[at].name in on_host

        def change(x: Any, is_host: bool = is_host) -> Any:
            x = x.copy()
            for _ in range(dice.randint(1, 3) if x.size else 0):
                x.reshape(-1)[dice.randrange(x.size)] = border(dice, x.dtype, is_host)
            return x

        inputs[at] = _mapped(inputs[at], change)
        done |= any(each.size for each in _arrays(inputs[at]))
    return done


def border(dice: random.Random, type: Any, is_small: bool) -> Any:
    """A number at the edge of a type."""
    if type == np.bool_:
        return dice.random() < 0.5
    if type.kind in "iu" or type.name in ("int4", "uint4"):
        info = ml_dtypes.iinfo(type)
        wide = () if is_small else (int(info.min), int(info.max))
        return type.type(min(max(dice.choice((*_PLACES, *wide)), int(info.min)), int(info.max)))
    if type.kind == "c":
        part = np.zeros((), type).real.dtype
        return complex(border(dice, part, is_small), border(dice, part, is_small))
    if type.kind == "f" or type.name.startswith(("bfloat", "float")):
        info = ml_dtypes.finfo(type)
        big, tiny = float(info.max), float(info.tiny)
        known = (0.0, -0.0, 1.0, -1.0, 0.5, np.nan, np.inf, -np.inf, big, -big, tiny)
        with np.errstate(all="ignore"):
            return np.float64(dice.choice(known)).astype(type)
    return np.zeros((), type)[()]


def _other_attributes(
    dice: random.Random, op_def: OpDef, attrs: dict[str, Any], inputs: list[Any], on_host: frozenset[str]
) -> bool:
    counted = {arg.number_attr for arg in (*op_def.inputs, *op_def.outputs)}
    done = False
    for name, attr in op_def.attrs.items():
        if name in counted or dice.random() < 0.5:
            continue
        if attr.type == "bool":
            attrs[name] = dice.random() < 0.5
        elif attr.type == "string" and attr.allowed:
            attrs[name] = dice.choice(attr.allowed)
        elif attr.type == "int" and "seed" not in name:
            attrs[name] = dice.choice((-2, -1, 0, 1, 2, 3))
        elif attr.type == "float":
            attrs[name] = dice.choice((0.0, 0.5, 1.0, 2.0, -1.0))
        else:
            continue
        done = True
    return done
