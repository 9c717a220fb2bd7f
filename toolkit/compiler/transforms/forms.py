"""What one iteration of a loop computes from its state, as sums of products: however a cell is spelled, it is one form.

A form is a sum of terms. Each is a product of atoms (what is read, a state, a sigmoid or a tanh of a form) times a
constant for each column, or such a product times the rows of a matrix product: r * (h @ U) has the factor r, the
source h and the constant U.
"""

# numpy's overloads answer arrays typed Any with Unknown
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from toolkit.compiler.ir.operation import Operation
from toolkit.compiler.ir.operations.calls import call_of
from toolkit.compiler.ir.value import Value
from toolkit.compiler.steps import as_outputs
from toolkit.compiler.transforms.elements import ADDS, is_float
from toolkit.kernels.tensors import F32

_MAX_TERMS = 16  # of a form: cells have four at most
_MAX_DEPTH = 64  # of operations that take each other's outputs: cells have a dozen
_MAX_ELEMENTS = 1 << 24  # of a tensor that is cut: float32 counts so far
_CUTS = {"Split": 1, "SplitV": 0, "Slice": 0, "StridedSlice": 0}  # and which input is cut


class NotRecurrentError(Exception):
    """A loop is not a recurrent cell; the message says what is in the way."""


class AtomKind(enum.Enum):
    """What an atom is."""

    INPUT = enum.auto()  # the part of a tensor that the iteration reads
    STATE = enum.auto()  # of the loop, before the iteration
    NEXT = enum.auto()  # the same behind it
    SIGMOID = enum.auto()
    TANH = enum.auto()


@dataclass(eq=False, slots=True)
class Atom:
    """What a form does not look into.

    Attributes:
        number: in the order in which they are met.
        what: the tensor that is read, the index of the state, the argument of the function.
    """

    number: int
    kind: AtomKind
    what: Any


Product = tuple[Atom, ...]


@dataclass(eq=False, slots=True)
class Form:
    """Terms by factors and source; the constants are scalars or [columns], with a source [rows, columns]."""

    terms: dict[tuple[Product, Product | None], Any]

    @property
    def product(self) -> Product | None:
        """The product that this is, if it is nothing else."""
        if len(self.terms) != 1:
            return None
        (((factors, source), constant),) = self.terms.items()
        return factors if factors and source is None and np.all(constant == 1) else None


_FUNCTIONS = {"Sigmoid": AtomKind.SIGMOID, "Tanh": AtomKind.TANH}


class IterationForms:
    """The forms of the values in a loop's body.

    Args:
        read: the tensor of which an operation reads an iteration's part; raises NotRecurrentError if it does not.
    """

    def __init__(self, read: Callable[[Operation], Value]):
        self._source = read
        self._forms: dict[Value, Form] = {}
        self._atoms: dict[Any, Atom] = {}
        self._depth = 0

    def name(self, value: Value, kind: AtomKind, index: int) -> None:
        """Let a value be an atom from now on."""
        self._forms[value] = _of(self._atom(kind, index, (kind, index)))

    def of(self, value: Value) -> Form:
        """The form of a value."""
        found = self._forms.get(value)
        if found is None:
            self._depth += 1
            if self._depth > _MAX_DEPTH:
                raise NotRecurrentError("too much is computed in an iteration for a cell")
            found = self._forms[value] = self.definition(value)
            self._depth -= 1
        return found

    def definition(self, value: Value) -> Form:
        """The form of a value from what it is computed from."""
        if value.is_constant:
            return _constant(value)
        operation = value.producer
        if operation is None:
            raise NotRecurrentError("a state is used that no cell has")
        if operation.predicates:
            raise NotRecurrentError(f"{operation.name} is on a branch")
        if not is_float(value) or len(value.shape or ()) not in (1, 2):
            raise NotRecurrentError(f"{operation.name} is not a float32 matrix of known shape")
        form = self._operation(operation, value)
        if len(form.terms) > _MAX_TERMS:
            raise NotRecurrentError(f"{operation.name} is no part of a cell")
        return form

    def _operation(self, operation: Operation, value: Value) -> Form:
        rule = self._rules.get(operation.op)
        if rule is None:
            raise NotRecurrentError(f"{operation.kind} ({operation.name}) is no part of a cell")
        return rule(self, operation, value)

    def _input(self, operation: Operation, value: Value) -> Form:
        tensor = self._source(operation)
        return _of(self._atom(AtomKind.INPUT, tensor, (AtomKind.INPUT, tensor)))

    def _function(self, operation: Operation, value: Value) -> Form:
        (x,) = operation.inputs
        kind, argument = _FUNCTIONS[operation.op], self.of(x)
        return _of(self._atom(kind, argument, (kind, argument.product or x)))

    def _negated(self, operation: Operation, value: Value) -> Form:
        return _scaled(self.of(operation.inputs[0]), -1)

    def _reshaped(self, operation: Operation, value: Value) -> Form:
        if not _is_row(operation.inputs[0]) or not _is_row(value):
            raise NotRecurrentError(f"{operation.kind} ({operation.name}) is no part of a cell")
        return self.of(operation.inputs[0])

    def _sum(self, operation: Operation, value: Value) -> Form:
        return _added(*self._operands(operation, value))

    def _difference(self, operation: Operation, value: Value) -> Form:
        first, second = self._operands(operation, value)
        return _added(first, _scaled(second, -1))

    def _product(self, operation: Operation, value: Value) -> Form:
        return _multiplied(*self._operands(operation, value), operation)

    def _operands(self, operation: Operation, value: Value) -> tuple[Form, Form]:
        first, second = operation.inputs
        for each in (first, second):
            if not each.is_constant and (each.shape is None or each.size != value.size):
                raise NotRecurrentError(f"{operation.name} broadcasts what is not constant")
        return self.of(first), self.of(second)

    def _matmul(self, operation: Operation, value: Value) -> Form:
        x, k = operation.inputs
        node = operation.step.node
        if not k.is_constant or node.attr("transpose_a", False):
            raise NotRecurrentError(f"the weights of {operation.name} are not constant")
        weights = k.constant.T if node.attr("transpose_b", False) else k.constant
        parts = [x]
        joined = call_of(x, "ConcatV2")
        if joined is not None:
            *parts, axis = joined.inputs
            if not axis.is_constant or int(axis.constant) not in (1, -1):
                raise NotRecurrentError(f"{joined.name} does not join columns")
        form, row = Form({}), 0
        for part in parts:
            source = self.of(part).product
            if source is None or part.shape is None:
                raise NotRecurrentError(f"{operation.name} multiplies what is neither input nor state")
            rows = part.shape[1]
            form = _added(form, Form({((), source): weights[row : row + rows]}))
            row += rows
        return form

    def _part(self, operation: Operation, value: Value) -> Form:
        start, stop = _columns(operation, value)
        return self._cut(self.of(operation.inputs[_CUTS[operation.op]]), start, stop)

    def _cut(self, form: Form, start: int, stop: int) -> Form:
        return Form(
            {
                (self._cut_product(factors, start, stop), source): _cut_constant(constant, start, stop)
                for (factors, source), constant in form.terms.items()
            }
        )

    def _cut_product(self, factors: Product, start: int, stop: int) -> Product:
        atoms: list[Atom] = []
        for atom in factors:
            if not isinstance(atom.what, Form):
                raise NotRecurrentError("a part of a state or of the input is taken")
            atoms.append(self._atom(atom.kind, self._cut(atom.what, start, stop), (atom, start, stop)))
        return _sorted(atoms)

    def _atom(self, kind: AtomKind, what: Any, key: Any) -> Atom:
        """The same atom for the same key."""
        return self._atoms.setdefault(key, Atom(len(self._atoms), kind, what))

    #: what gives the form of an op's output; of every other op none is part of a cell
    _rules: ClassVar[dict[str, Callable[[IterationForms, Operation, Value], Form]]] = {
        **dict.fromkeys(("TensorListGetItem", "TensorArrayReadV3"), _input),
        "MatMul": _matmul,
        **dict.fromkeys(_CUTS, _part),
        **dict.fromkeys(_FUNCTIONS, _function),
        "Neg": _negated,
        **dict.fromkeys(("ExpandDims", "Reshape", "Squeeze"), _reshaped),
        **dict.fromkeys((*ADDS, "BiasAdd"), _sum),
        "Sub": _difference,
        "Mul": _product,
    }


def _is_row(value: Value) -> bool:
    """Whether it has but one row: TensorFlow's layers drop that dimension and add it again as they please."""
    return value.shape is not None and value.shape[-1:] == (value.size,)


def _of(atom: Atom) -> Form:
    return Form({((atom,), None): np.float32(1)})


def _sorted(atoms: list[Atom]) -> Product:
    return tuple(sorted(atoms, key=lambda atom: atom.number))


def _constant(value: Value) -> Form:
    array = np.asarray(value.constant)
    if array.dtype != F32 or (array.size != 1 and array.shape not in ((array.size,), (1, array.size))):
        raise NotRecurrentError("a constant is neither a number nor a row of float32")
    return Form({((), None): array.reshape(()) if array.size == 1 else array.reshape(-1)})


def _scaled(form: Form, number: int) -> Form:
    return Form({key: constant * np.float32(number) for key, constant in form.terms.items()})


def _added(first: Form, second: Form) -> Form:
    terms = dict(first.terms)
    for key, constant in second.terms.items():
        terms[key] = terms[key] + constant if key in terms else constant
    return Form(terms)


def _multiplied(first: Form, second: Form, operation: Operation) -> Form:
    product = Form({})
    for (factors, source), constant in first.terms.items():
        for (others, another), number in second.terms.items():
            if source is not None and another is not None:
                raise NotRecurrentError(f"{operation.name} multiplies products")
            key = (_sorted([*factors, *others]), source if source is not None else another)
            product = _added(product, Form({key: constant * number}))
    return product


def _cut_constant(constant: Any, start: int, stop: int) -> Any:
    return constant[..., start:stop] if np.ndim(constant) else constant


def _columns(operation: Operation, value: Value) -> tuple[int, int]:
    """Which columns an operation takes: it is asked to cut the positions of the elements."""
    given = operation.inputs[_CUTS[operation.op]]
    others_known = all(each.is_constant for each in operation.inputs if each is not given)
    if not others_known or given.shape is None or len(given.shape) != 2 or given.size > _MAX_ELEMENTS:
        raise NotRecurrentError(f"{operation.name} cuts at a place that is not known")
    positions = np.arange(given.size, dtype=np.float32).reshape(given.shape)
    parts = operation.step.compute(*[positions if each is given else each.constant for each in operation.inputs])
    part = as_outputs(operation.step, parts)[operation.outputs.index(value)]
    start = int(part.reshape(-1)[0])
    stop = start + part.shape[-1]
    if not np.array_equal(part, positions[:, start:stop]):
        raise NotRecurrentError(f"{operation.name} takes something else than columns")
    return start, stop
