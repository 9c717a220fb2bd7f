"""LSTM and GRU cells, told from the forms of a loop's next state, with their weights as oneDNN orders them."""

# numpy's overloads answer arrays typed Any with Unknown
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from toolkit.compiler.ir.operations.recurrent import (
    CellWeights,
    GruLayer,
    LinearBeforeResetGruLayer,
    LstmLayer,
    RecurrentLayer,
)
from toolkit.compiler.transforms.forms import Atom, AtomKind, Form, NotRecurrentError, Product

_INPUT, _STATE, _NEXT = AtomKind.INPUT, AtomKind.STATE, AtomKind.NEXT
_SIGMOID, _TANH = AtomKind.SIGMOID, AtomKind.TANH


@dataclass(frozen=True, slots=True)
class Cell:
    """Attributes:
    source: its input: an atom INPUT, or NEXT of the state of another cell.
    hidden, memory: the indices of its states h and c; a GRU has no c.
    layer: what layers of such cells are.
    """

    source: Atom
    hidden: int
    memory: int | None
    layer: type[RecurrentLayer]
    weights: CellWeights

    @property
    def reads(self) -> bool:
        """Whether its input comes from outside the loop."""
        return self.source.kind is _INPUT


@dataclass(frozen=True, slots=True)
class _Gate:
    """source @ layer + state @ iteration + bias (+ memory * peephole)."""

    source: Atom
    layer: Any
    iteration: Any
    bias: Any
    peephole: Any = None
    inner_bias: Any = None  # of state @ iteration alone


def find_cells(after: dict[int, Form]) -> list[Cell]:
    """The cells that make up the next states of a loop, each after those whose output it takes.

    Args:
        after: the form of each state behind the iteration, by its index.

    Raises:
        NotRecurrentError: some of it is something else.
    """
    if not after:
        raise NotRecurrentError("it has no state that cells could have")
    cells: list[Cell] = []
    for index, form in after.items():
        memory = _memory_behind(form)
        if memory is not None and memory in after:
            cells.append(_lstm(index, memory, form, after[memory]))
    taken = {index for cell in cells for index in (cell.hidden, cell.memory)}
    cells += [_gru(index, form) for index, form in after.items() if index not in taken]
    return _in_order(cells)


def _in_order(cells: list[Cell]) -> list[Cell]:
    done: list[Cell] = []
    waiting = list(cells)
    while waiting:
        made = {cell.hidden for cell in done}
        ready = [cell for cell in waiting if cell.reads or cell.source.what in made]
        if not ready:
            raise NotRecurrentError("its cells wait for each other")
        done += ready
        waiting = [cell for cell in waiting if cell not in ready]
    return done


def _memory_behind(form: Form) -> int | None:
    """m of sigmoid(...) * tanh(next state m)."""
    kinds = _by_kind(form.product)
    if kinds.keys() != {_SIGMOID, _TANH}:
        return None
    inner = kinds[_TANH].what.product
    return inner[0].what if inner is not None and len(inner) == 1 and inner[0].kind is _NEXT else None


def _by_kind(product: Product | None) -> dict[AtomKind, Atom]:
    """The atoms of a product of different kinds; of any other none."""
    kinds = {atom.kind: atom for atom in product or ()}
    return kinds if len(kinds) == len(product or ()) else {}


def _lstm(hidden: int, memory: int, output: Form, form: Form) -> Cell:
    """c = sigmoid(f) * c + sigmoid(i) * tanh(g), h = sigmoid(o) * tanh(c)."""
    terms = [_by_kind(factors) for factors, coefficient in _products(form) if coefficient == 1]
    if len(terms) != 2 or len(form.terms) != 2:
        raise NotRecurrentError("the memory of the cell is not what it kept and what is new")
    kept, new = sorted(terms, key=lambda kinds: _TANH in kinds)
    if kept.keys() != {_SIGMOID, _STATE} or new.keys() != {_SIGMOID, _TANH} or kept[_STATE].what != memory:
        raise NotRecurrentError("the gates of the cell are not those of an LSTM")
    atoms = [new[_SIGMOID], kept[_SIGMOID], new[_TANH], _by_kind(output.product)[_SIGMOID]]
    seen = [(_STATE, memory), (_STATE, memory), None, (_NEXT, memory)]
    gates = [_gate(atom.what, hidden, peephole) for atom, peephole in zip(atoms, seen, strict=True)]
    return Cell(_source(gates), hidden, memory, LstmLayer, _joined(gates, [gate.bias for gate in gates]))


def _products(form: Form) -> list[tuple[Product, float]]:
    """The terms without a source that have one coefficient for all columns."""
    found: list[tuple[Product, float]] = []
    for (factors, source), constant in form.terms.items():
        if source is None and np.size(constant) and np.all(constant == np.reshape(constant, -1)[0]):
            found.append((factors, float(np.reshape(constant, -1)[0])))
    return found


def _gru(index: int, form: Form) -> Cell:
    """h = u * h + (1 - u) * c, or with u and 1 - u exchanged, with c = tanh(...)."""
    alone: dict[AtomKind, float] = {}
    gated: dict[AtomKind, float] = {}
    atoms: dict[AtomKind, Atom] = {}
    for factors, coefficient in _products(form):
        kinds = _by_kind(factors)
        update = kinds.pop(_SIGMOID, None)
        if len(kinds) != 1 or (update is not None and atoms.setdefault(_SIGMOID, update) is not update):
            raise NotRecurrentError("the state is not that of a GRU or an LSTM")
        ((kind, atom),) = kinds.items()
        if atoms.setdefault(kind, atom) is not atom:
            raise NotRecurrentError("the state is not that of a GRU or an LSTM")
        (alone if update is None else gated)[kind] = coefficient
    keeps = (alone, gated) == ({_TANH: 1}, {_STATE: 1, _TANH: -1})
    if len(form.terms) != 3 or not (keeps or (alone, gated) == ({_STATE: 1}, {_STATE: -1, _TANH: 1})):
        raise NotRecurrentError("the state is not that of a GRU or an LSTM")
    if atoms[_STATE].what != index:
        raise NotRecurrentError("the state of a GRU is made from another state")
    update = _gate(atoms[_SIGMOID].what, index)
    if not keeps:  # 1 - sigmoid(a) = sigmoid(-a)
        update = replace(update, layer=-update.layer, iteration=-update.iteration, bias=-update.bias)
    reset, new = _reset(atoms[_TANH].what, index)
    gates = [update, _gate(reset.what, index), new]
    biases = [gate.bias for gate in gates]
    if new.inner_bias is None:
        return Cell(_source(gates), index, None, GruLayer, _joined(gates, biases))
    return Cell(_source(gates), index, None, LinearBeforeResetGruLayer, _joined(gates, [*biases, new.inner_bias]))


def _reset(form: Form, hidden: int) -> tuple[Atom, _Gate]:
    """The reset gate of a GRU's new state, and that state without it."""
    found: set[tuple[Atom, bool]] = set()  # gates, and whether they come after the product
    plain: dict[tuple[Product, Product | None], Any] = {}
    inner_bias: Any = np.float32(0)
    for (factors, source), constant in form.terms.items():
        behind = _by_kind(source)
        if len(factors) == 1 and (source is None or behind.keys() == {_STATE}):  # r * (h @ U + b)
            found.add((factors[0], True))
        elif not factors and behind.keys() == {_SIGMOID, _STATE}:  # (r * h) @ U
            found.add((behind[_SIGMOID], False))
            source = (behind[_STATE],)
        elif factors or behind.keys() == {_STATE}:
            raise NotRecurrentError("the reset gate is not that of a GRU")
        if factors and source is None:
            inner_bias = constant
        else:
            plain[(), source] = constant
    reset, is_after = found.pop() if len(found) == 1 else (None, False)
    if reset is None or reset.kind is not _SIGMOID:
        raise NotRecurrentError("the reset gate is not that of a GRU")
    gate = _gate(Form(plain), hidden)
    return reset, replace(gate, inner_bias=inner_bias if is_after else None)


def _gate(form: Form, hidden: int, memory: tuple[AtomKind, int] | None = None) -> _Gate:
    """The parts of what goes into an activation.

    Args:
        memory: kind and index of the state that the gate may have a peephole to.
    """
    source = layer = iteration = peephole = None
    bias: Any = np.float32(0)
    for (factors, product), constant in form.terms.items():
        atom = product[0] if product is not None and len(product) == 1 else None
        if product is None and len(factors) == 1 and (factors[0].kind, factors[0].what) == memory:
            peephole = constant
            continue
        if factors or (product is not None and atom is None):
            raise NotRecurrentError("a gate depends on more than input and state")
        if atom is None:
            bias = constant
        elif atom.kind is _STATE and atom.what == hidden:
            iteration = constant
        elif atom.kind in (_INPUT, _NEXT) and layer is None:
            source, layer = atom, constant
        else:
            raise NotRecurrentError("a gate takes another state than its cell's")
    if source is None or iteration is None:
        raise NotRecurrentError("a gate does not depend on both input and state")
    return _Gate(source, layer, iteration, bias, peephole)


def _source(gates: Sequence[_Gate]) -> Atom:
    if any(gate.source is not gates[0].source for gate in gates):
        raise NotRecurrentError("the gates of a cell have different inputs")
    return gates[0].source


def _joined(gates: Sequence[_Gate], biases: Sequence[Any]) -> CellWeights:
    """The gates side by side."""
    units = gates[0].layer.shape[1]
    peepholes = [gate.peephole for gate in gates if gate.peephole is not None]
    if peepholes and len(peepholes) != 3:
        raise NotRecurrentError("only some gates of an LSTM have peepholes")
    square = all(gate.iteration.shape == (units, units) for gate in gates)
    if not square or any(gate.layer.shape != gates[0].layer.shape for gate in gates):
        raise NotRecurrentError("the gates of a cell have different sizes")
    return CellWeights(
        np.stack([gate.layer for gate in gates], axis=1),
        np.stack([gate.iteration for gate in gates], axis=1),
        _rows(biases, units),
        _rows(peepholes, units) if peepholes else None,
    )


def _rows(constants: Sequence[Any], units: int) -> Any:
    return np.stack([np.broadcast_to(constant, (units,)) for constant in constants]).astype(np.float32)
