"""What `toolkit.render.absorb` does, over the links of a large model as columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from toolkit.formats.node_tables.columns import ints
from toolkit.render.absorbed import (
    CONSTANTS,
    LEAST_LEFT,
    READS,
    Absorbed,
    Neighbours,
    barriers,
    folds,
    stays_constant,
    take_out,
    variable_handles,
)
from toolkit.render.elements import Model
from toolkit.render.link_table import Beside, columns
from toolkit.render.notes import HAND_ON, Notes

#: elements that are gone on with one by one: arrays cost more for so few, and a long chain has one in each round
_FEW = 16


def data_users(model: Model) -> Beside:
    """For each element those that use what it puts out, in the order of the links."""
    links, _ = columns(model)
    data = ~links.is_control()
    return Beside(links.src[data], links.dst[data], len(model.elements))


def absorb(model: Model, users: Neighbours) -> Absorbed:
    """See `toolkit.render.absorb.absorb`."""
    assert isinstance(users, Beside)
    (links, ops), count = columns(model), len(model.elements)
    is_control = links.is_control()
    inputs = np.bincount(links.dst[~is_control], minlength=count)
    waits = np.bincount(links.dst[is_control], minlength=count)
    is_waited_for = np.zeros(count, np.bool_)
    is_waited_for[links.src[is_control]] = True
    constant = _constant_valued(model, users, inputs, waits)
    into = np.flatnonzero(ops.are(READS | {"_Arg"})[links.dst])
    handles = variable_handles(model, [links[number] for number in ints(into)] if "VarHandleOp" in model.ops else [])
    holds = np.zeros(count, np.bool_)
    holds[list(handles)] = True
    is_single = users.counts == 1
    is_chosen = (users.counts > 0) & ~_is_of_variable(model)
    is_chosen &= (
        constant
        | (holds & ops.are({"_Arg"}))
        | (ops.are(READS) & is_single & (waits == 0))
        | (ops.are({"Identity"}) & is_single & (inputs == 1) & ~is_waited_for)
    )
    chosen = np.flatnonzero(is_chosen)
    further = barriers(model, users, inputs, waits)
    out = Absorbed()
    if count - len(chosen) - len(further) < LEAST_LEFT:
        return out
    following = np.arange(count)
    following[chosen] = users.others[users.begin[chosen]]
    if further:
        waits_for = np.zeros(count, np.int64)
        waits_for[links.dst[is_control]] = links.src[is_control]
        chosen = np.concatenate((chosen, further))
        is_chosen[further] = True
        following[further] = waits_for[further]
    hosts = following[chosen]
    for _ in range(count.bit_length()):  # twice as far along each time; what is on a circle does not get out of it
        if not is_chosen[hosts].any():
            break
        following = following[following]
        hosts = following[chosen]
    is_hosted = ~is_chosen[hosts]
    hosted = chosen[is_hosted]
    out.host = dict(zip(ints(hosted), ints(hosts[is_hosted]), strict=True))
    out.noted = set(ints(hosted[constant[hosted] | holds[hosted]]))
    gone = np.zeros(count, np.uint8)
    gone[hosted] = 1
    out.notes = _NotesByHost(model, gone.view(np.bool_), constant, handles)
    take_out(model, bytearray(gone))
    return out


def _is_of_variable(model: Model) -> NDArray[np.bool_]:
    """Which elements are in the scope of a variable."""
    found = np.zeros(len(model.elements), np.bool_)
    found[[i for scope in model.root.walk() if scope.kind == "variable" for i in scope.elements]] = True
    return found


def _constant_valued(
    model: Model, users: Beside, inputs: NDArray[np.int64], waits: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """Which elements depend on constants only, round by round: those first that need nothing else."""
    _, ops = columns(model)
    may_fold = np.array([folds(op) for op in ops.all], np.bool_)[ops.of] & (waits == 0)
    is_argument = ops.are({"_Arg"}) & (waits == 0)
    pending = inputs.copy()
    constant = ops.are(CONSTANTS) & (inputs == 0)
    ready = np.flatnonzero(constant)
    while len(ready):
        if len(ready) <= _FEW:
            used = [user for i in ints(ready) for user in users[i]]
            for user in used:
                pending[user] -= 1
            chosen = [user for user in dict.fromkeys(used) if pending[user] == 0]
            followed = [i for i in chosen if may_fold[i] or (is_argument[i] and stays_constant(model, i, users))]
        else:
            found, times = np.unique(users.of_all(ready), return_counts=True)
            pending[found] -= times
            found = found[pending[found] == 0]
            followed = ints(found[may_fold[found]])
            followed += [i for i in ints(found[is_argument[found]]) if stays_constant(model, i, users)]
        ready = np.array(followed, np.int64)
        constant[ready] = True
    return constant


class _NotesByHost(Mapping[int, list[str]]):
    """The notes of each element, written when somebody asks for them: most of a large model are never drawn.

    Args:
        is_absorbed: by element.
        constant, handles: see `Notes`.
    """

    def __init__(
        self, model: Model, is_absorbed: NDArray[np.bool_], constant: NDArray[np.bool_], handles: dict[int, int]
    ):
        links, ops = columns(model)
        self._links = links
        data = np.flatnonzero(~links.is_control())
        into_hands = data[ops.are(HAND_ON)[links.dst[data]]][::-1]
        self._sources = np.full(len(model.elements), -1, np.int32)
        self._sources[links.dst[into_hands]] = links.src[into_hands]  # the first of each is written last
        noted = data[is_absorbed[links.src[data]] & ~is_absorbed[links.dst[data]]]
        self._noted = Beside(links.dst[noted], noted.astype(np.int32), len(model.elements))
        self._notes = Notes(model, bytearray(constant), handles, self._source)

    def _source(self, element: int) -> int | None:
        found = int(self._sources[element])
        return None if found < 0 else found

    def __getitem__(self, element: int) -> list[str]:
        found = self._notes.write([self._links[number] for number in self._noted[element]])
        return found[element]  # there is no other

    def __iter__(self) -> Iterator[int]:
        return (element for element in ints(np.flatnonzero(self._noted.counts)) if element in self)

    def __contains__(self, element: object) -> bool:
        return isinstance(element, int) and bool(self._notes.write([self._links[n] for n in self._noted[element]]))

    def __len__(self) -> int:
        return sum(1 for _ in self)
