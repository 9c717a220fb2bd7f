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
from toolkit.compiler.ir.fields import Declared, conditional, listed
from toolkit.compiler.ir.traits import Trait
from toolkit.compiler.ir.value import Value
from toolkit.compiler.steps import Step

if TYPE_CHECKING:
    from toolkit.compiler.ir.block import Block

P = ParamSpec("P")
T = TypeVar("T", bound="Operation")

#: every class by its mnemonic
OPERATIONS: dict[str, type[Operation]] = {}


class Operation(Declared):
    """Something that is executed.

    Attributes:
        op: of a `Call`, the graph's op; no other operation has one.
        outputs: what it makes.
        steps: the program's steps that it does the work of, the one that errors are reported for last.
        conditions: the branches it is on.
        block: where it is; None where it was taken out or not yet put in.
        previous, next: its neighbours there.
    """

    mnemonic: ClassVar[str] = ""
    traits: ClassVar[Trait] = Trait.NONE
    _traits: ClassVar[int] = 0
    op = ""

    outputs: list[Value] = listed(default=())
    steps: list[Step] = listed(default=())
    conditions: Conditions = conditional(default=NONE)

    def __init_subclass__(cls, mnemonic: str = "", traits: Trait | None = None, **more: Any) -> None:
        super().__init_subclass__(**more)
        if traits is not None:
            cls.traits, cls._traits = traits, traits.value
        if mnemonic:
            if mnemonic in OPERATIONS:
                raise ValueError(f"two operations are called {mnemonic}")
            cls.mnemonic = mnemonic
            OPERATIONS[mnemonic] = cls

    def __init__(self, **given: Any):
        self.block: Block | None = None
        self.previous: Operation | None = None
        self.next: Operation | None = None
        given["outputs"] = outputs = list(given.get("outputs", ()))
        given["steps"] = list(given.get("steps", ()))
        self._fill(given)
        for value in outputs:
            value.producer = self
        if self.conditions is not NONE:
            self.conditions.bind(self)

    # -- what it takes and makes -----------------------------------------------------------------------------------

    @property
    def inputs(self) -> tuple[Value, ...]:
        """All values that it takes, in the order of its fields."""
        state = self.__dict__
        return tuple([value for field in self.operand_fields for value in field.values(state[field.name])])

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
        return list(self.conditions.terms)

    def has(self, trait: Trait) -> bool:
        """Whether a trait is among its own."""
        return bool(self._traits & trait.value)

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
        """Take nothing any more, and be on nobody's branch: for what is about to go."""
        state = self.__dict__
        self.conditions.release(self)
        for field in self.operand_fields:
            held = state[field.name]
            for value in field.values(held):
                value.lose(self)
            state[field.name] = () if isinstance(held, tuple) else None

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
        given: dict[str, Any] = {"outputs": self.outputs, "steps": self.steps, "conditions": self.conditions, **fields}
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
        """What people know it by: of a call the graph's op, else its word in the text form."""
        return self.op or self.mnemonic
