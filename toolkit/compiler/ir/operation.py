"""Operations: what is executed.

Each kind is a class that declares its operands by name and what else it needs (`fields`), says what must hold between
them (`verify`), and has its word in the text form (`mnemonic`):

    class Copy(Operation, mnemonic="copy", traits=Trait.IN_ARENA):
        input: Value = operand()

    operation.become(Copy, input=x)   # in the place of another, with its outputs

What the graph brought and no pass has recognised is a `Call` of its node's kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, ParamSpec, TypeVar

from toolkit.compiler.ir.conditions import NONE, Conditions
from toolkit.compiler.ir.fields import Declared, listed
from toolkit.compiler.ir.traits import Trait
from toolkit.compiler.ir.value import Value
from toolkit.compiler.program import Step

if TYPE_CHECKING:
    from toolkit.compiler.ir.block import Block

P = ParamSpec("P")
T = TypeVar("T", bound="Operation")

#: every class by its mnemonic
OPERATIONS: dict[str, type[Operation]] = {}


class Operation(Declared):
    """Something that is executed.

    Attributes:
        outputs: what it makes.
        steps: the program's steps that it does the work of, the one that errors are reported for last.
        guard: the branches it is on.
        block: where it is; None where it was taken out or not yet put in.
        previous, next: its neighbours there.
    """

    mnemonic: ClassVar[str] = ""
    traits: ClassVar[Trait] = Trait.NONE

    outputs: list[Value] = listed(default=())
    steps: list[Step] = listed(default=())
    guard: Conditions = NONE

    def __init_subclass__(cls, mnemonic: str = "", traits: Trait | None = None, **more: Any) -> None:
        super().__init_subclass__(**more)
        if traits is not None:
            cls.traits = traits
        if mnemonic:
            if mnemonic in OPERATIONS:
                raise ValueError(f"two operations are called {mnemonic}")
            cls.mnemonic = mnemonic
            OPERATIONS[mnemonic] = cls

    def __init__(self, **given: Any):
        self.block: Block | None = None
        self.previous: Operation | None = None
        self.next: Operation | None = None
        self._fill({**given, "outputs": list(given.get("outputs", ())), "steps": list(given.get("steps", ()))})
        for value in self.outputs:
            value.producer = self

    # -- what it takes and makes -----------------------------------------------------------------------------------

    @property
    def inputs(self) -> list[Value]:
        """All values that it takes, in the order of its fields."""
        state = self.__dict__
        return [value for field in self.operand_fields for value in field.values(state.get(field.name))]

    @property
    def output(self) -> Value:
        return self.outputs[0]

    @property
    def step(self) -> Step:
        return self.steps[-1]

    @property
    def name(self) -> str:
        return self.step.node.name

    @property
    def predicates(self) -> list[tuple[Value, bool]]:
        """What must hold for it to run: values and what they must be."""
        return list(self.guard.terms)

    @property
    def op(self) -> str:
        """The graph's op, of a `Call`; no other operation has one."""
        return ""

    def has(self, trait: Trait) -> bool:
        """Whether a trait is among its own."""
        return bool(self.traits & trait)

    def regions(self) -> Sequence[Block]:
        """The blocks inside it."""
        return ()

    def computed_by(self) -> str | None:
        """What computes it, for reports; None where that follows from its traits, or it is a kernel."""
        return None

    def verify(self) -> Iterator[str]:
        """What is wrong with its shapes, types and fields, a sentence each."""
        return iter(())

    # -- rewriting -------------------------------------------------------------------------------------------------

    def replace_operands(self, moved: Mapping[Value, Value]) -> None:
        """Take other values in the place of some, wherever they stand."""
        state = self.__dict__
        for field in self.operand_fields:
            held = state[field.name]
            if any(value in moved for value in field.values(held)):
                setattr(self, field.name, field.mapped(held, moved))

    def drop_operands(self) -> None:
        """Take nothing any more: for what is about to go."""
        for field in self.operand_fields:
            for value in field.values(self.__dict__.get(field.name)):
                value.lose(self)
            self.__dict__[field.name] = () if isinstance(self.__dict__.get(field.name), tuple) else None

    def set_outputs(self, outputs: Iterable[Value]) -> None:
        """Make these from now on."""
        self.outputs = list(outputs)
        for value in self.outputs:
            value.producer = self

    def become(self, kind: Callable[P, T], *args: P.args, **fields: P.kwargs) -> T:
        """Put another operation in the place of this one: with its outputs, steps and branches, if not said otherwise.

        Returns:
            the other operation; this one takes nothing any more and is in no block.
        """
        given: dict[str, Any] = {"outputs": self.outputs, "steps": self.steps, "guard": self.guard, **fields}
        made = kind(*args, **given)
        if self.block is not None:
            self.block.replace(self, made)
        else:
            self.drop_operands()
        return made

    def own_fields(self) -> dict[str, Any]:
        """What its class declares, by name: for an operation of another class that needs the same."""
        return {name: getattr(self, name) for name in self.fields if name not in Operation.fields}

    def release(self) -> None:
        """Let go of large constants, when code has been made of it and they are packed."""

    def __repr__(self) -> str:
        return f"<{self.kind} {self.name if self.steps else ''}>"

    @property
    def kind(self) -> str:
        """Its word in the text form; of a call the graph's op."""
        return self.mnemonic

    # -- until every kind has a class ------------------------------------------------------------------------------

    @property
    def attrs(self) -> dict[str, Any]:
        return {}

    @kind.setter
    def kind(self, kind: str) -> None:
        raise AssertionError(f"{type(self).__name__} cannot become {kind}")

    def set_inputs(self, inputs: Iterable[Value]) -> None:
        raise AssertionError(f"{type(self).__name__} has fields")


class Untyped(Operation):
    """An operation of a kind that has no class yet.

    Attributes:
        attrs: what it needs besides inputs, by kind.
    """

    def __init__(
        self, kind: str, inputs: Iterable[Value], outputs: Iterable[Value], steps: Sequence[Step], **attrs: Any
    ):
        self._kind = kind
        self._inputs: list[Value] = []
        super().__init__(outputs=outputs, steps=steps)
        self._attrs: dict[str, Any] = attrs
        self.set_inputs(inputs)

    @property
    def attrs(self) -> dict[str, Any]:
        return self._attrs

    @property
    def kind(self) -> str:
        return self._kind

    @kind.setter
    def kind(self, kind: str) -> None:
        self._kind = kind

    @property
    def inputs(self) -> list[Value]:
        return self._inputs

    def set_inputs(self, inputs: Iterable[Value]) -> None:
        """Take other inputs from now on."""
        for value in self._inputs:
            value.users.pop(self, None)
        self._inputs = list(inputs)
        for value in self._inputs:
            value.gain(self)

    def regions(self) -> Sequence[Block]:
        body = self._attrs.get("body")
        return () if body is None else (body,)

    def like(self, inputs: Iterable[Value], outputs: Iterable[Value]) -> Untyped:
        """The same operation over other values."""
        return Untyped(self.kind, inputs, outputs, self.steps, **self.attrs)

    def release(self) -> None:
        for name in ("filter", "weights"):
            self._attrs.pop(name, None)

    def replace_operands(self, moved: Mapping[Value, Value]) -> None:
        self.set_inputs([moved.get(value, value) for value in self._inputs])

    def drop_operands(self) -> None:
        self.set_inputs(())
