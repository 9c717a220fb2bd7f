"""Code generation for recordings: what numbers of tensors decide becomes conditional nodes (`nodes`)."""

from __future__ import annotations

from collections.abc import Sequence

from toolkit.compiler.backends.cuda.conditionals import arrays, bounded, growing, nodes, stacks
from toolkit.compiler.backends.cuda.conditionals.array_uses import ArrayUses, source_of
from toolkit.compiler.backends.cuda.conditionals.device_numbers import ASSERT, LENGTH, WHOLE, DeviceNumbers, is_reduced
from toolkit.compiler.backends.cuda.conditionals.host_numbers import HostNumber
from toolkit.compiler.backends.cuda.conditionals.list_uses import (
    GET,
    IDENTITIES,
    POP,
    PUSH,
    SET,
    STACK,
    STACK_PUSH,
    enlarges,
)
from toolkit.compiler.backends.cuda.emitter import CudaEmitter
from toolkit.compiler.backends.cuda.operations import UpdatesCall
from toolkit.compiler.backends.cuda.recording.drawing import DRAWS, GENERATORS
from toolkit.compiler.backends.kernels.function import KernelFunction
from toolkit.compiler.ir.block import Block
from toolkit.compiler.ir.effects import CHECKS, may_change_variables
from toolkit.compiler.ir.operation import Operation
from toolkit.compiler.ir.operations.calls import Call, Loop, Select, Test
from toolkit.compiler.ir.value import Value
from toolkit.kernels.cuda.device import CudaDevice
from toolkit.kernels.facts import COPY_IN, COPY_OUT
from toolkit.kernels.gpu.elementwise import nests

#: what does something to other things than variables, or leaves them as they are
_NO_UPDATES = ("TensorArray", "Stack", "Stateless", "ResourceGather", "VarIs", "IsVariable", "Variable", "VarHandle",
               "Assert")  # fmt: skip


class ConditionalEmitter(CudaEmitter):
    """Writes the function that is run while a step is recorded.

    Args:
        numbers: what the device alone knows then.
        arrays: those that the device keeps, where the block is a part of a program.
    """

    def __init__(self, block: Block, device: CudaDevice, numbers: DeviceNumbers, arrays: ArrayUses | None = None):
        super().__init__(block, device, numbers.lists)
        self._numbers = numbers
        self._arrays = ArrayUses(block, numbers) if arrays is None else arrays
        self._repeats = False  # the block is the body of a loop that the device decides
        self._own_states: frozenset[Value] = frozenset()  # arguments that such a loop changes
        self._open: Sequence[tuple[Value, bool]] = ()  # the branch of the operation before
        self._guarded: Sequence[tuple[Value, bool]] | None = None  # likewise, if it changes variables

    def inner(self, body: Block) -> KernelFunction:
        emitter = ConditionalEmitter(body, self._device, self._numbers, self._arrays)
        emitter._repeats = self._repeats
        return emitter.write()

    def _enter(self, predicates: Sequence[tuple[Value, bool]]) -> None:
        updates = self._operation is not None and _updates(self._operation)
        if updates and self._guarded == list(predicates):
            return  # one node for those that stand together
        self._guarded = None
        if any(value in self._numbers.values for value, _ in predicates):
            self._branch(predicates)
        else:
            self._open = ()
            super()._enter(predicates)
        if updates:
            self._guard(predicates)

    def _branch(self, predicates: Sequence[tuple[Value, bool]]) -> None:
        """Open what is done where the device finds predicates to be so; one node for operations that stand together."""
        if list(predicates) != list(self._open):
            self._open = list(predicates)
            self._indent = "    "
            terms = self._fresh("t")
            self.line(f"{terms} = [{', '.join(f'({self.read(value)}, {wanted})' for value, wanted in predicates)}]")
            may, branch = self.share("f", nodes.may), self.share("f", nodes.branch)
            self.line(f"if {may}({terms}):")
            self._indent = "        "
            self.line(f"with {branch}({self.share('d', self._device)}, {terms}):")
        self._indent = "            "

    def _guard(self, predicates: Sequence[tuple[Value, bool]]) -> None:
        """Open what is done where nothing was found to be wrong, on the branch too, before or within its node."""
        self._guarded = list(predicates)
        self.line(f"with {self.share('f', nodes.unless_refused)}({self.share('d', self._device)}):")
        self._indent += "    "

    def write_operation(self, operation: Operation) -> None:
        values = self._numbers.values
        match operation:
            case Call() if operation.op == COPY_OUT:
                keep = self.share("f", nodes.for_host)
                self.line(f"{self.bind(operation.output)} = {keep}({self.read(operation.inputs[0])})")
            case Call() if operation.op == COPY_IN and operation.inputs[0] in values:
                plain, device = self.share("f", nodes.plain), self.share("d", self._device)
                self.line(f"{self.bind(operation.output)} = {plain}({device}, {self.read(operation.inputs[0])})")
            case Call() if operation.op in (GET, SET) and self._is_placed(operation):
                self._element(operation)
            case Call() if operation.op in (WHOLE, LENGTH) and self._numbers.is_grown(operation.inputs[0]):
                self._whole(operation)
            case Call() if operation.op in (PUSH, POP):
                self._end(operation)
            case Call() if self._numbers.keeps_stack(operation):
                self._stack(operation)
            case Call() if self._arrays.takes(operation):
                self._array(operation)
            case Call() if any(value in self._numbers.bounded for value in operation.inputs):
                self._bounded(operation)
            case Call() if any(value in self._numbers.places for value in operation.outputs):
                places = self.share("f", bounded.Places)
                self.line(f"{self.bind(operation.output)} = {places}({self.read(operation.inputs[1])})")
            case Call() if operation.op == ASSERT and self._numbers.given(operation):
                self._assert(operation)
            case Call() if self._numbers.given(operation):
                self._compute(operation)
            case HostNumber() if values.intersection(operation.numbers):
                device = self._device.for_node(operation.name)
                compute = nodes.computed_by(device, operation.op, operation.output.dtype, ())
                given = ", ".join(map(self.read, operation.numbers))
                self.line(f"{self.bind(operation.output)} = {self.share('f', compute)}({given})")
            case Select() if operation.predicate in values:
                given = (operation.predicate, operation.taken, operation.other)
                choose = self.share("f", nodes.choose)
                device = self.share("d", self._device.for_node(operation.name))
                read = ", ".join(map(self.read, given))
                capacity = self.share("k", self._numbers.lists.capacity(operation.output))
                self.line(f"{self.bind(operation.output)} = {choose}({device}, {read}, {capacity})")
            case Test() if operation.condition in values:
                needed = "".join(f"{self.read(value)}, " for value in self._needed_behind(operation))
                self.line(f"yield {self.read(operation.condition)}, ({needed})")
            case Loop() if operation in self._numbers.repeated:
                self._repeat(operation)
            case _:
                super().write_operation(operation)

    def _assert(self, call: Call) -> None:
        """What has to hold, where the device knows whether it does, or alone knows what would be told."""
        require = self.share("f", nodes.require)
        device = self.share("d", self._device.for_node(call.name))
        self.line(f"{require}({device}, {self.read(call.inputs[0])})")

    def _is_placed(self, call: Call) -> bool:
        """Whether the device finds the place of an element."""
        return self._repeats or self._numbers.given(call) or self._numbers.is_grown(call.inputs[0])

    def _whole(self, call: Call) -> None:
        """All elements of a list that grows, or how many they are."""
        device, held = self.share("d", self._device.for_node(call.name)), self.read(call.inputs[0])
        if call.op == LENGTH:
            length, kept = self.share("f", growing.length), self.share("f", nodes.kept)
            self.line(f"{self.bind(call.output)} = {kept}({length}({device}, {held}))")
            return
        stacked = self.share("f", growing.stacked)
        capacity = self.share("k", self._numbers.lists.capacity(call.inputs[0]))
        self.line(f"{self.bind(call.output)} = {stacked}({device}, {held}, {capacity})")

    def _element(self, call: Call) -> None:
        """An element of a list, taken or set."""
        device = self.share("d", self._device.for_node(call.name))
        held, index, *rest = map(self.read, call.inputs)
        number = f"{self.share('f', nodes.as_number)}({device}, {index})"
        if call.op == GET:
            get = self.share("f", nodes.get_item)
            self.line(f"{self.bind(call.output)} = {get}({device}, {number}, {held})")
            return
        place = self.share("f", nodes.set_item)
        capacity = self.share("k", self._numbers.lists.capacity(call.inputs[0]))
        given = f"{device}, {number}, {held}, {rest[0]}, {capacity}, in_place={self._is_over(call)}"
        given += f", enlarges={enlarges(call)}"
        self.line(f"{self.bind(call.output)} = {place}({given})")

    def _end(self, call: Call) -> None:
        """An element at the end of a list, put there or taken away."""
        do = nodes.push if call.op == PUSH else nodes.pop
        device, compute = self.share("d", self._device.for_node(call.name)), self.share("f", call.step.compute)
        capacity = self.share("k", self._numbers.lists.capacity(call.inputs[0]))
        more = f", {capacity}" * (call.op == PUSH) + f", inside={self._repeats or bool(self._open)}"
        more += f", in_place={self._is_over(call)}" if call.op == PUSH else ""
        given = ", ".join(map(self.read, call.inputs))
        made = ", ".join(map(self.bind, call.outputs))
        self.line(f"{made} = {self.share('f', do)}({device}, {compute}, {given}{more})")

    def _stack(self, call: Call) -> None:
        """What is done with a stack that the device keeps."""
        device = self.share("d", self._device.for_node(call.name))
        given = ", ".join(map(self.read, call.inputs))
        if call.op == STACK:
            CudaEmitter.write_operation(self, call)
            capacity = self.share("k", self._numbers.lists.capacity(call.outputs[0]))
            bring = self.share("f", stacks.bring)
            self.line(f"{bring}({device}, R, {self.read(call.outputs[0])}, {capacity})")
            return
        if call.op == STACK_PUSH:
            push = self.share("f", stacks.push)
            self.line(f"{self.bind(call.output)} = {push}({device}, R, {given})")
            return
        pop, is_number = self.share("f", stacks.pop), call.output in self._numbers.values
        self.line(f"{self.bind(call.output)} = {pop}({device}, R, {given}, is_number={is_number})")

    def _array(self, call: Call) -> None:
        """What is done with an array that the device keeps."""
        device = self.share("d", self._device.for_node(call.name))
        if call.op == arrays.MAKE:
            super().write_operation(call)
            shape = self.share("k", self._arrays.shapes[call.outputs[0]])
            bring = self.share("f", arrays.bring)
            sources = self.share("k", sorted(self._arrays.sources[call.outputs[0]]))
            grown = call.outputs[0] if self._numbers.is_grown(call.outputs[0]) else None
            capacity = self.share("k", None if grown is None else self._numbers.lists.capacity(grown))
            self.line(f"{bring}({device}, R, {self.read(call.outputs[0])}, {shape}, {sources}, {capacity})")
            return
        if call.op == arrays.GRADIENT:
            super().write_operation(call)
            note = self.share("f", arrays.gradient)
            self.line(
                f"{note}({device}, R, {self.read(call.outputs[0])}, {self.read(call.inputs[0])}, {source_of(call)!r})"
            )
            return
        given = ", ".join(map(self.read, call.inputs))
        do = arrays.DONE.get(call.op)
        if do is None:
            self.line(f"{self.share('f', arrays.refuse)}({device}, {call.op!r})")
            super().write_operation(call)  # never reached, it binds what is made
            return
        self.line(f"{self.bind(call.output)} = {self.share('f', do)}({device}, R, {given})")

    def _bounded(self, call: Call) -> None:
        """What is done with a tensor whose length the device alone knows."""
        device, given = self.share("d", self._device.for_node(call.name)), ", ".join(map(self.read, call.inputs))
        do = self.share("f", bounded.applied)
        self.line(f"{self.bind(call.output)} = {do}({device}, {self.share('c', call)}, [{given}])")

    def _is_over(self, call: Call) -> bool:
        """Whether nobody looks at the list that a call changes behind it: it is this loop's own, and known to others
        only for elements that they have taken before, which are copies."""
        held = call.inputs[0]
        producer = held.producer
        is_own = held in self._own_states or (isinstance(producer, Call) and producer.op in (SET, PUSH))
        if not self._repeats or not is_own or held.is_result:
            return False
        places = self._block.positions()
        here = places[call]
        return all(
            user is call or (isinstance(user, Call) and user.op == GET and places.get(user, here + 1) < here)
            for user in held.users
        )

    def _compute(self, call: Call) -> None:
        """What the host would compute, by the device."""
        given = ", ".join(map(self.read, call.inputs))
        if call.op in IDENTITIES:
            self.line(f"{self.bind(call.output)} = {given}")
            return
        if self._numbers.is_reshaped(call):
            reshape, device = self.share("f", nodes.reshaped), self.share("d", self._device)
            shape = self.share("k", call.output.shape)
            self.line(f"{self.bind(call.output)} = {reshape}({device}, {self.read(call.inputs[0])}, {shape})")
            return
        if self._numbers.is_filled(call):
            fill, device = self.share("f", nodes.filled), self.share("d", self._device)
            self.line(f"{self.bind(call.output)} = {fill}({device}, {given})")
            return
        if is_reduced(call):
            axes, keep = call.inputs[1].constant, bool(call.step.node.attr("keep_dims"))
            reduce = self.share("f", nodes.reduced_by(self._device.for_node(call.name), call.op, axes, keep))
            self.line(f"{self.bind(call.output)} = {reduce}({self.read(call.inputs[0])})")
            return
        names = nests.wanted_attributes(call.op, [value.dtype.name for value in call.inputs])
        attributes = tuple((name, call.step.node.attr(name)) for name in names)
        device = self._device.for_node(call.name)
        compute = nodes.computed_by(device, call.op, call.output.dtype, attributes)
        self.line(f"{self.bind(call.output)} = {self.share('f', compute)}({given})")

    def _needed_behind(self, test: Operation) -> list[Value]:
        """What was made before a loop's test and is taken behind it."""
        places = self._block.positions()
        here = places[test]
        return [
            value
            for value in self._locals
            if value.producer is not None
            and (
                value.is_result
                or any(places.get(user, -1) > here for user in value.users)
                or any(places.get(decided, -1) > here for decided in value.decides or ())
            )
        ]

    def _repeat(self, loop: Loop) -> None:
        """A loop whose end the device decides."""
        own = loop.body.arguments[: len(loop.states)]
        varies = [after is not argument for argument, after in zip(own, loop.body.results, strict=True)]
        emitter = ConditionalEmitter(loop.body, self._device, self._numbers, self._arrays)
        emitter._repeats = True
        emitter._own_states = frozenset(
            argument for argument, vary in zip(own, varies, strict=True) if vary and argument is not None
        )
        body = emitter.write()
        self._inner.append(body)
        device = self._device.for_node(loop.name)
        capacities = [self._numbers.lists.capacity(output) for output in loop.outputs]
        run = self.share("l", nodes.repeated(device, loop.name, body.run, varies, capacities))  # pyright: ignore[reportArgumentType]  its code yields
        states, invariants = (", ".join(map(self.read, each)) for each in (loop.states, loop.invariants))
        given = f"{run}([{states}], [{invariants}], R)"
        made = ", ".join(map(self.bind, loop.outputs))
        self.line(f"{made}{',' if len(loop.outputs) == 1 else ''} = {given}" if loop.outputs else given)


def _updates(operation: Operation) -> bool:
    """Whether an operation changes variables, but for what is in loops: they say so themselves."""
    if isinstance(operation, UpdatesCall):
        return True
    return (
        isinstance(operation, Call)
        and not operation.op.startswith(_NO_UPDATES)
        and operation.op not in CHECKS
        and operation.op not in DRAWS | GENERATORS
        and may_change_variables(operation)
    )
