"""What a pass is, what it may ask while a block is compiled, and how passes are applied.

A program, the body of a loop of which the interpreter runs each iteration, and the body of a loop that becomes one
compiled function go through the same table; a pass says where it applies and what it needs.
"""

from __future__ import annotations

import enum
import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from toolkit.compiler.backends.cpu.threads import THREADS
from toolkit.compiler.context import RunningStep, compiling
from toolkit.compiler.ir.block import Block
from toolkit.compiler.ir.errors import NotSupportedError, PassFailedError
from toolkit.compiler.ir.operation import Operation
from toolkit.compiler.ir.operations.recurrent import is_recurrent
from toolkit.compiler.ir.operations.sequences import TensorSequence
from toolkit.compiler.settings import Settings
from toolkit.compiler.transforms.elements import SWALLOW_NAN
from toolkit.errors import GraphmillError, InternalError
from toolkit.kernels.cpu.native.compiler import compiler
from toolkit.kernels.cpu.onednn.library import library
from toolkit.kernels.tensors import F32
from toolkit.target.target import Target


class Where(enum.Flag):
    """Attributes:
    PROGRAM: programs, and bodies of loops of which the interpreter runs every iteration.
    LOOP: bodies of loops that become one compiled function each; nothing in them may need the interpreter.
    """

    PROGRAM = enum.auto()
    LOOP = enum.auto()


class Needs(enum.Flag):
    """What must be there for a pass; the user may turn each of them off (`Settings`).

    Attributes:
        ONEDNN: the library is there, and there is work for it.
        NATIVE: chains of operations are compiled.
        COMPILER: LLVM is installed; asked last, because that loads it.
        WINOGRAD, PANELS: as the settings say.
        BF16: the precision of products is bfloat16.
    """

    NOTHING = 0
    ONEDNN = enum.auto()
    NATIVE = enum.auto()
    COMPILER = enum.auto()
    WINOGRAD = enum.auto()
    PANELS = enum.auto()
    BF16 = enum.auto()


class Compilation:
    """What passes ask while one block is compiled, and what they leave for its emission.

    Attributes:
        settings: what the user chose.
        excluded: names of nodes that must run by their own kernels, and why.
        running: the step that the plan is made in; variables that are there are looked up in it.
        where: what the block is.
        states: of a loop's body, how many of its arguments are the loop's state.
        initialises: the program assigns variables, and nothing else.
        sequences: of a compiled loop, the tensor lists in its state.
        done: names of the passes that were applied, in order.
    """

    def __init__(
        self, block: Block, settings: Settings, excluded: dict[str, str], running: RunningStep,
        where: Where = Where.PROGRAM, states: int = 0,
    ):  # fmt: skip
        self.block = block
        self.settings = settings
        self.excluded = excluded
        self.running = running
        self.where = where
        self.states = states
        self.initialises = False
        self.sequences: list[TensorSequence] = []
        self.done: list[str] = []

    @functools.cached_property
    def onednn(self) -> bool:
        """Whether oneDNN is there and has work in the block."""
        is_worth = self.where is Where.LOOP or _has_work(self.block, self.target.primitives.library)
        return self.settings.onednn and is_worth and library() is not None

    @property
    def target(self) -> Target:
        """The processor that code is made for."""
        return self.settings.target

    @property
    def threads(self) -> int:
        return self.settings.threads or THREADS.available()

    def refused(self, operation: Operation) -> bool:
        """Whether an operation must stay as it is: by name, or because a NaN in it must be seen."""
        return (self.block.keeps_nan and operation.op in SWALLOW_NAN) or self.excluded_by_name(operation)

    def hides_nan(self, operation: Operation) -> bool:
        """By themselves these are as fast in NumPy, and TensorFlow hides NaN in none but those behind products."""
        return self.refused(operation) or operation.op in SWALLOW_NAN

    def excluded_by_name(self, operation: Operation) -> bool:
        return bool(self.excluded) and operation.step.node.name in self.excluded

    def offers(self, needs: Needs) -> bool:
        """Whether everything is there that a pass needs, but for LLVM."""
        settings = self.settings
        return (
            (Needs.ONEDNN not in needs or self.onednn)
            and (Needs.NATIVE not in needs or settings.native)
            and (Needs.WINOGRAD not in needs or settings.winograd)
            and (Needs.PANELS not in needs or settings.panels)
            and (Needs.BF16 not in needs or settings.precision == "bf16")
        )


def _always(block: Block, to: Compilation) -> bool:
    return True


@dataclass(frozen=True, slots=True)
class Pass:
    """One rewriting of a block.

    Attributes:
        name: in reports and files.
        apply: changes the block; it may raise NotSupportedError.
        needs: what must be there.
        where: which blocks it is for.
        finds: whether there may be anything to do for it, asked before what it needs is loaded.
    """

    name: str
    apply: Callable[[Block, Compilation], object]
    needs: Needs = Needs.NOTHING
    where: Where = Where.PROGRAM
    finds: Callable[[Block, Compilation], bool] = _always

    def applies(self, block: Block, to: Compilation) -> bool:
        """Whether it is for this block, here."""
        if to.where not in self.where or not to.offers(self.needs) or not self.finds(block, to):
            return False
        return Needs.COMPILER not in self.needs or compiler() is not None


def apply_passes(block: Block, to: Compilation, passes: Sequence[Pass]) -> None:
    """Apply those passes of a table that are for this block.

    Raises:
        NotSupportedError: a node turned out to need its own kernel.
        PassFailedError: a pass raised what no pass should.
        InternalError: a pass left a block that is not well-formed; it is named, with those before it. Or its text
            form is not read as the same program.
    """
    stages = None
    if to.settings.stages and to.where.name:
        from toolkit.compiler.stages import StageWriter

        stages = StageWriter(to.settings.stages, to.where.name.lower())
        stages.write("import", block)
    if to.settings.round_trip:
        _require_round_trip(block)
    for each in passes:
        if each.applies(block, to):
            try:
                with compiling(to.running, each.name):
                    each.apply(block, to)
            except (NotSupportedError, GraphmillError, MemoryError):
                raise
            except Exception as error:
                raise PassFailedError(each.name, error) from error
            to.done.append(each.name)
            if stages is not None:
                stages.write(each.name, block)
            if to.settings.verify:
                require_well_formed(block, to.done)
    if to.settings.strict and not to.settings.verify:
        require_well_formed(block, to.done)
    if to.settings.round_trip:
        _require_round_trip(block)


def _require_round_trip(block: Block) -> None:
    from toolkit.compiler.ir.text.round_trip import require_round_trip

    require_round_trip(block)


def require_well_formed(block: Block, done: Sequence[str]) -> None:
    """Make sure that a block is well-formed.

    Args:
        done: the passes that were applied to it, the last one last.

    Raises:
        InternalError: it is not.
    """
    from toolkit.compiler.ir.structure import broken

    wrong = next(broken(block), None)
    if wrong is not None:
        who = f"the pass '{done[-1]}'" if done else "the importer"
        after = f", after {', '.join(done[:-1])}," if len(done) > 1 else ""
        raise InternalError(f"{who}{after} broke the program; this is a bug: {wrong}")


def _has_work(block: Block, least: int) -> bool:
    """Whether there is anything that oneDNN would do better, on tensors of so many elements: loading it takes 30 ms."""
    return any(
        is_recurrent(operation)
        or any(
            value.dtype in _WORTHY and value.shape is not None and value.size >= least
            for value in (*operation.inputs, *operation.outputs)
        )
        for operation in block.operations
    )


_WORTHY = (F32, np.dtype(np.int8), np.dtype(np.uint8))
