"""Sums of products over the iterations of a loop are one product behind it.

The gradient of a weight that every iteration takes is a sum of a product for each, a state that each iteration reads,
adds to and writes: more bytes than all its other operations move. Behind the loop one product of all rows of the one
factors with all rows of the others adds up while it multiplies; so does one sum over rows for a bias. Loops whose end
the device decides keep theirs: the host does not know what their iterations give.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from toolkit.compiler.backends.cuda.conditionals.device_numbers import DeviceNumbers, copies_numbers_out
from toolkit.compiler.backends.cuda.conditionals.list_uses import ListUses
from toolkit.compiler.backends.cuda.layout.moved_axes import number_of, numbers_of
from toolkit.compiler.backends.cuda.loops.collected import Collect, CollectedProduct, CollectedSum, Collection
from toolkit.compiler.backends.cuda.loops.collected_stacks import collect_pushed
from toolkit.compiler.ir.block import Block
from toolkit.compiler.ir.effects import changes_variables
from toolkit.compiler.ir.operation import Operation
from toolkit.compiler.ir.operations.calls import Call, Dereference, Loop, ReadVariable, call_of
from toolkit.compiler.ir.value import Value
from toolkit.compiler.transforms.elements import ADDS
from toolkit.kernels.tensors import F32

Refused = Callable[[Operation], bool]
#: axes of a matrix
_MATRIX = 2


@dataclass
class _Total:
    """A state that only adds up.

    Attributes:
        place: of the state.
        addition: what adds.
        term: what gives what is added, a product or a sum over rows.
        reshaped: what gives the term another shape; None where nothing does.
        collected: what has to be kept of each iteration: both factors, the first one perhaps in parts that are put
            side by side for the product alone, or what is summed.
    """

    place: int
    addition: Call
    term: Call
    reshaped: Call | None
    collected: tuple[Value, ...]


def sum_behind_loops(block: Block, refused: Refused) -> None:
    """Take sums of products and of rows out of loops, the innermost first.

    Args:
        refused: whether an operation must stay a call.
    """
    decided = decided_loops(block)
    _sum_behind(block, refused, decided)
    collect_pushed(block, decided)


def decided_loops(block: Block) -> set[Loop]:
    """The loops whose end the device may decide, so that the host keeps nothing of their iterations."""
    # whole numbers that come from outside may be others in each step, as lengths of sequences are
    fed = [each for each in block.arguments if each is not None and each.dtype is not None and each.dtype.kind in "iub"]
    return DeviceNumbers(block, ListUses(block), fed).repeated if fed or copies_numbers_out(block) else set[Loop]()


def _sum_behind(block: Block, refused: Refused, decided: set[Loop]) -> None:
    for operation in block.operations:
        for region in operation.regions():
            _sum_behind(region, refused, decided)
        if isinstance(operation, Loop) and operation not in decided and not operation.predicates:
            if changes_variables(operation.body):
                continue  # what is kept may hold something else at the end
            totals = [_total(operation, place, refused) for place in range(len(operation.states))]
            found = [each for each in totals if each is not None]
            if any(each.term.op == "MatMul" for each in found):
                _take_out(block, operation, found)


def _total(loop: Loop, place: int, refused: Refused) -> _Total | None:
    """The sum that a state is; None where it is something else, or cheaper as it is."""
    body = loop.body
    argument, after = body.arguments[place], body.results[place]
    addition = after.producer
    if argument is None or not isinstance(addition, Call) or addition.block is not body or not _is_single(addition):
        return None
    if addition.op not in (*ADDS, "AddN") or len(addition.inputs) != 2 or refused(addition):
        return None
    others = [value for value in addition.inputs if value is not argument]
    if len(others) != 1 or list(argument.users) != [addition] or argument.is_result or after.users:
        return None
    if after.is_predicate or sum(result is after for result in body.results) != 1:
        return None
    if others[0].sole_user is not addition or argument.shape != others[0].shape or after.dtype != F32:
        return None
    reshaped = call_of(others[0], "Reshape")
    if reshaped is not None and (reshaped.block is not body or not reshaped.is_plain or refused(reshaped)):
        return None
    term = others[0].producer if reshaped is None else reshaped.inputs[0].producer
    if not isinstance(term, Call) or term.block is not body or not _is_single(term) or refused(term):
        return None
    if reshaped is not None and (term.op != "Sum" or term.output.sole_user is not reshaped):
        return None
    node = term.step.node
    if term.op == "MatMul" and node.attr("transpose_a") and not node.attr("transpose_b"):
        collected = (*_side_by_side(term, refused), term.inputs[1])
        # what is kept of an iteration is less than what its product would be written and read for
        if argument.shape is None or sum(value.size for value in collected if value.shape) > argument.size:
            return None
    elif _is_of_rows(term, argument.shape):
        collected = term.inputs[:1]
    else:
        return None
    is_kept = all(_is_kept(loop, value) for value in collected)
    return _Total(place, addition, term, reshaped, collected) if is_kept else None


def _side_by_side(product: Call, refused: Refused) -> tuple[Value, ...]:
    """The parts that are joined for the first factor of a product and for nothing else; itself where there are none."""
    first = product.inputs[0]
    joined = call_of(first, "ConcatV2")
    if joined is None or not joined.is_plain or refused(joined) or first.sole_user is not product:
        return (first,)
    *parts, axis = joined.inputs
    number = number_of(axis)
    is_wide = number is not None and first.shape is not None and number % len(first.shape) == 1
    return tuple(parts) if is_wide and joined.block is product.block else (first,)


def _is_of_rows(term: Call, shape: tuple[int, ...] | None) -> bool:
    """Whether it sums the rows of a matrix."""
    if term.op == "BiasAddGrad":  # channels are the columns of a matrix in either format
        return True
    columns = (term.inputs[0].shape or ())[1:]
    return term.op == "Sum" and numbers_of(term.inputs[1]) == (0,) and shape in (columns, (1, *columns))


def _is_single(call: Call) -> bool:
    return call.is_plain and len(call.outputs) == 1


def _is_kept(loop: Loop, value: Value) -> bool:
    """Whether it is a matrix that each iteration has one of its own of."""
    if value.dtype != F32 or value.shape is None or len(value.shape) != _MATRIX or 0 in value.shape:
        return False
    producer = value.producer
    if producer is None:
        return value in loop.body.arguments[: len(loop.states)]
    return producer.block is loop.body and not isinstance(producer, Dereference | ReadVariable)


def _take_out(block: Block, loop: Loop, totals: list[_Total]) -> None:
    """Collect in a loop what its sums are of, and add it up behind it."""
    body, count = loop.body, len(loop.states)
    factors = {value for total in totals if total.term.op == "MatMul" for value in total.collected}
    outer: dict[Value, Value] = {}  # of what is collected, all of it behind the loop
    for value in dict.fromkeys(value for total in totals for value in total.collected):
        first = next(total.addition for total in totals if value in total.collected)
        begin = Collection(outputs=[Value(None, None)], steps=[loop.step])
        block.insert_before(loop, [begin])
        held, made = Value(None, None), Value(None, None)
        collect = Collect(held=held, item=value, multiplied=value in factors, outputs=[made], steps=[first.step])
        body.append(collect)  # behind all that is computed: between them it would end a kernel
        loop.states = (*loop.states, begin.output)
        body.arguments.insert(count, held)
        body.results.append(made)
        made.is_result = True
        outer[value] = Value(None, None)
        loop.set_outputs([*loop.outputs, outer[value]])
        count += 1
    for total in sorted(
        totals, key=lambda total: total.term.op == "MatMul"
    ):  # products stand first: sums take their rows
        last, start = loop.outputs[total.place], loop.states[total.place]
        argument = body.arguments[total.place]
        assert argument is not None
        body.results[total.place] = argument
        argument.is_result = True
        total.addition.output.is_result = False
        step, given = [total.term.step], [outer[value] for value in total.collected]
        made = Value(F32, last.shape or start.shape)
        summed = (
            CollectedProduct(firsts=tuple(given[:-1]), second=given[-1], added=start, outputs=[made], steps=step)
            if total.term.op == "MatMul"
            else CollectedSum(held=given[0], added=start, outputs=[made], steps=step)
        )
        block.insert_after(loop, [summed])
        block.replace_value(last, made)
        body.remove([total.addition])
        body.remove([] if total.reshaped is None else [total.reshaped])
        joined = total.term.inputs[0].producer if total.term.op == "MatMul" else None
        body.remove([total.term])
        if joined is not None and joined.block is body and not any(value.is_needed for value in joined.outputs):
            body.erase(joined)
