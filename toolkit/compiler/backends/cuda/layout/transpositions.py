"""Transpositions taken into products: the heads of attention are split and joined by strides instead of copies.

A library's product goes through its matrices by strides, so that a factor may lie as it was before a transposition, and
the result may be written as it is wanted behind one. A transposition goes into who takes it where all of them are
products, and into the product that it takes where nobody else does; each product stays one call.
"""

from __future__ import annotations

from collections.abc import Callable

from toolkit.compiler.backends.cuda.fusion.chains import next_of, times_of
from toolkit.compiler.backends.cuda.layout.moved_axes import is_of_axes, is_turned, through
from toolkit.compiler.backends.cuda.layout.placed_products import PlacedProduct, placed
from toolkit.compiler.backends.cuda.layout.stored_axes import packed
from toolkit.compiler.backends.cuda.layout.strided_operations import StridedProduct
from toolkit.compiler.ir.block import Block
from toolkit.compiler.ir.operation import Operation

Refused = Callable[[Operation], bool]


def fold_transpositions(block: Block, refused: Refused, changes_variables: Refused) -> None:
    """Take transpositions into the products before or behind them, in loops too.

    Args:
        refused: whether an operation must stay a call.
        changes_variables: whether arrays that were read may hold something else behind an operation: nothing is moved
            beyond it.
    """
    for operation in block.operations:
        for region in operation.regions():
            fold_transpositions(region, refused, changes_variables)
    if any(is_turned(operation) and not refused(operation) for operation in block):
        _Folding(block, refused, changes_variables).run()


class _Folding:
    def __init__(self, block: Block, refused: Refused, changes_variables: Refused):
        self._block = block
        self._refused = refused
        self._times = times_of(block, changes_variables)
        self._known: dict[Operation, PlacedProduct] = {}

    def run(self) -> None:
        """Into those who take them first: so the products before stay large ones."""
        for operation in self._block.operations:
            if operation.block is self._block and is_turned(operation) and not self._refused(operation):
                self._into_users(operation)
        for operation in self._block.operations:
            while operation.block is self._block and (made := self._into_producer(operation)) is not None:
                operation = made

    def _product(self, operation: Operation) -> PlacedProduct | None:
        if self._refused(operation):
            return None
        found = self._known.get(operation)
        return placed(operation) if found is None else found

    # -- into those who take it

    def _into_users(self, turn: Operation) -> None:
        """Let all that take a transposition read what it is made of, if these are products."""
        before = self._before(turn)
        root = before[0].inputs[0] if before else turn.inputs[0]
        changed: dict[Operation, PlacedProduct] = {}
        waiting: list[list[Operation]] = [[*before, turn]]
        views: list[Operation] = [turn]
        while waiting:
            path = waiting.pop()
            value = path[-1].output
            if value.is_result or value.is_predicate:
                return
            for user in value.users:
                if not self._is_beside(user, turn):
                    return
                if is_of_axes(user) and not self._refused(user):
                    views.append(user)
                    waiting.append([*path, user])
                    continue
                product = changed.get(user) or self._product(user)
                axes = through(path, packed(root.shape or ()))
                if product is None or axes is None or product.bias is value:
                    return
                if product.a is value:
                    product = product.with_a(root, axes)
                if product.b is value:
                    product = product.with_b(root, axes)
                changed[user] = product
        if all(product.of.layout() is not None for product in changed.values()):
            for user, product in changed.items():
                self._put(user, product, [user])
            self._block.remove(views[::-1])
            for view in reversed(before):
                if not view.output.is_needed:
                    self._block.erase(view)

    def _before(self, turn: Operation) -> list[Operation]:
        """The operations before a transposition that only give axes another order or shape, the first one first."""
        found: list[Operation] = []
        producer = turn.inputs[0].producer
        while producer is not None and is_of_axes(producer) and self._is_beside(producer, turn):
            if self._refused(producer):
                break
            found.insert(0, producer)
            producer = producer.inputs[0].producer
        return found

    def _is_beside(self, operation: Operation, turn: Operation) -> bool:
        """Whether it is computed where a transposition is, and sees the same variables."""
        if operation.block is not self._block or operation.conditions != turn.conditions:
            return False
        return self._times.get(operation) == self._times.get(turn)

    # -- into the product that it takes

    def _into_producer(self, operation: Operation) -> Operation | None:
        """Let a product write its result as the next transposition has it; the product that does, or None."""
        product = self._product(operation)
        if product is None:
            return None
        path: list[Operation] = []
        at = operation
        while (user := next_of(at, self._refused, self._times)) is not None and is_of_axes(user):
            path.append(user)
            at = user
            if is_turned(user):
                found = product.with_result(path)
                if found is None or found.of.layout() is None:
                    return None
                return self._put(operation, found, [operation, *path])
        return None

    def _put(self, operation: Operation, product: PlacedProduct, chain: list[Operation]) -> Operation:
        """Put a product into the place of a chain that begins with it."""
        layout = product.of.layout()
        assert layout is not None
        a, b = (product.b, product.a) if layout.exchanged else (product.a, product.b)
        last = chain[-1]
        steps = [step for each in chain for step in each.steps]
        time = self._times[last]
        self._known.pop(operation, None)
        made = last.become(
            StridedProduct, a=a, b=b, bias=product.bias, activation=product.activation, sizes=layout.sizes,
            count=layout.count, turn_a=layout.a.turned, turn_b=layout.b.turned,
            leads=(layout.a.lead, layout.b.lead, layout.out.lead), strides=layout.steps, outputs=last.outputs[:1],
            steps=steps,
        )  # fmt: skip
        for each in reversed(chain[:-1]):
            self._block.erase(each)
        self._known[made], self._times[made] = product, time
        return made


def goes_into_product(turn: Operation, refused: Refused, times: dict[Operation, int]) -> bool:
    """Whether a transposition goes into the product that it takes."""
    path = [turn]
    producer = turn.inputs[0].producer
    while producer is not None and is_of_axes(producer) and not is_turned(producer):
        path.insert(0, producer)
        producer = producer.inputs[0].producer
    if producer is None or refused(producer) or (product := placed(producer)) is None:
        return False
    if any(next_of(one, refused, times) is not other for one, other in zip([producer, *path], path, strict=False)):
        return False
    found = product.with_result(path)
    return found is not None and found.of.layout() is not None
