"""What must hold between the operands of an operation before code is made of it: a table of rules by kind.

Lowering takes sizes from one operand and lets others follow. Where a graph's shapes and types do not go together the
others do not follow, and the node's own kernel says what is wrong with them. So every block is verified once, behind
the last pass and in front of the emission; what breaks its rule keeps its kernel. Kinds that are emitted and have no
rule are refused: a new one needs a rule first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from toolkit.compiler.ir.block import Block
from toolkit.compiler.ir.errors import NotSupportedError
from toolkit.compiler.ir.operation import OPERATIONS, Operation, Untyped
from toolkit.compiler.ir.relations import shapes as _shapes
from toolkit.compiler.ir.relations import text as _text

Rule = Callable[[Operation], Iterable[str]]
#: bytes that a tensor can have at all: more are not in the address space, and sizes in int64 may overflow
MOST = 1 << 46

_rules: dict[str, Rule] = {}


def rule(*kinds: str) -> Callable[[Rule], Rule]:
    """Register what yields the broken relations of operations of these kinds."""

    def register(function: Rule) -> Rule:
        for kind in kinds:
            if kind in _rules:
                raise ValueError(f"two rules for {kind}")
            _rules[kind] = function
        return function

    return register


def kinds() -> frozenset[str]:
    """Those that have a rule: in the table, or as the `verify` of their class."""
    return frozenset(_rules) | {
        mnemonic for mnemonic, kind in OPERATIONS.items() if kind.verify is not Operation.verify
    }


def verify(block: Block, emitted: Callable[[Operation], bool]) -> None:
    """Look at every operation of a block.

    Args:
        emitted: says whether code is made of an operation; of others the node's kernel is called.

    Raises:
        NotSupportedError: an operation breaks the rule of its kind.
    """
    for operation in block.operations:
        if not emitted(operation):
            continue
        for wrong in (*_sizes(operation), *_wrong(operation)):
            raise NotSupportedError(operation, wrong)


def _wrong(operation: Operation) -> Iterable[str]:
    if not isinstance(operation, Untyped):
        return operation.verify()
    found = _rules.get(operation.kind)
    return [f"there is no rule for '{operation.kind}'"] if found is None else found(operation)


def _sizes(operation: Operation) -> Iterator[str]:
    for value in (*operation.inputs, *operation.outputs):
        if value.shape is not None and value.dtype is not None:
            if min(value.shape, default=0) < 0:
                yield f"a shape is {list(value.shape)}"
            elif value.nbytes > MOST:
                yield f"a tensor of {list(value.shape)} cannot be had"


@rule("gru", "lbr_gru", "lstm")
def _layer(operation: Operation) -> Iterator[str]:
    attrs, weights = operation.attrs, operation.attrs["weights"]
    gates = {"lstm": 4, "gru": 3, "lbr_gru": 3}[weights.kind]
    x, *states = operation.inputs
    sequence, *last = operation.outputs
    given, made = ([1, *shape] if len(shape) == 2 else list(shape) for shape in _shapes(x, sequence))
    if len(given) != 3 or len(made) != 3:
        yield f"a layer of {_text(x)} makes {_text(sequence)}"
        return
    if attrs["turned_in"]:
        given[:2] = given[1::-1]
    if attrs["turned_out"]:
        made[:2] = made[1::-1]
    units, batch, length = weights.units, made[1], attrs["length"]
    if given[0] < length or made[0] < length or given[1] != batch or made[2] != units:
        yield f"{length} steps of a layer of {units} units of {_text(x)} make {_text(sequence)}"
    if weights.layer.shape != (given[2], gates, units) or weights.iteration.shape != (units, gates, units):
        yield f"weights {list(weights.layer.shape)} and {list(weights.iteration.shape)} of {units} units"
    for value in (*states, *last):
        if value.size != batch * units or value.dtype != x.dtype:
            yield f"a state of {batch} x {units} is {_text(value)}"
