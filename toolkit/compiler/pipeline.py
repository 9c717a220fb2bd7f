"""The pipeline: the table of passes over a block, in order, and the emission of what they leave.

A program, the body of a loop of which the interpreter runs each iteration, and the body of a loop that becomes one
compiled function go through the same table; a pass says where it applies and what it needs.
"""

from __future__ import annotations

import enum
import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from toolkit.compiler.backends.base import Executable
from toolkit.compiler.backends.cpu.elementwise.nests import gather_nests, has_nests
from toolkit.compiler.backends.cpu.elementwise.parts import lower_parts
from toolkit.compiler.backends.cpu.elementwise.sums import lower_sums
from toolkit.compiler.backends.cpu.elementwise.ufuncs import lower_ufuncs
from toolkit.compiler.backends.cpu.elementwise.views import lower_views
from toolkit.compiler.backends.cpu.emission.arena import plan_arena
from toolkit.compiler.backends.cpu.emission.calls import write_kernel
from toolkit.compiler.backends.cpu.emission.donation import find_donated
from toolkit.compiler.backends.cpu.emission.emit import Emitter
from toolkit.compiler.backends.cpu.emission.instance import Emitted
from toolkit.compiler.backends.cpu.emission.staging import alias_of, may_expose, reusable, stage_inputs
from toolkit.compiler.backends.cpu.emission.writers import WRITERS, is_emitted
from toolkit.compiler.backends.cpu.learning.pools import lower_pool_gradients, lower_pools
from toolkit.compiler.backends.cpu.networks.activations import split_activations
from toolkit.compiler.backends.cpu.networks.depthwise import lower_depthwise
from toolkit.compiler.backends.cpu.networks.hosts import lower_hosts
from toolkit.compiler.backends.cpu.networks.norms import lower_batch_norms
from toolkit.compiler.backends.cpu.networks.panels import lower_panels
from toolkit.compiler.backends.cpu.networks.strips import join_strips
from toolkit.compiler.backends.cpu.networks.windows import lower_windows
from toolkit.compiler.backends.cpu.threads import THREADS
from toolkit.compiler.context import RunningStep, compiling
from toolkit.compiler.importer.order import delay
from toolkit.compiler.ir.block import Block, clone
from toolkit.compiler.ir.effects import has_effect, may_change_variables
from toolkit.compiler.ir.errors import NotSupportedError, PassFailedError
from toolkit.compiler.ir.operation import Operation
from toolkit.compiler.ir.operations.calls import Loop
from toolkit.compiler.ir.operations.products import ConvolutionInputGradient
from toolkit.compiler.ir.operations.recurrent import RecurrentLayer, is_recurrent
from toolkit.compiler.ir.operations.sequences import TensorSequence
from toolkit.compiler.ir.traits import Trait
from toolkit.compiler.ir.value import Value
from toolkit.compiler.ir.verifier import verify
from toolkit.compiler.program import Program
from toolkit.compiler.settings import Settings
from toolkit.compiler.transforms.common_subexpressions import merge_common_subexpressions
from toolkit.compiler.transforms.elements import SWALLOW_NAN
from toolkit.compiler.transforms.fuse import fuse_epilogues, lower_elementwise
from toolkit.compiler.transforms.layout import turn_channels_last
from toolkit.compiler.transforms.padding import merge_padding
from toolkit.compiler.transforms.patterns import find_patterns
from toolkit.compiler.transforms.precision import lower_precision
from toolkit.compiler.transforms.scales import scale_filters
from toolkit.compiler.transforms.strides import push_strides
from toolkit.errors import GraphmillError, InternalError
from toolkit.kernels.cpu.native.compiler import compiler
from toolkit.kernels.cpu.native.operations import OPERATORS
from toolkit.kernels.cpu.onednn.library import library, offered
from toolkit.kernels.tensors import F32
from toolkit.target.target import Target

if TYPE_CHECKING:
    from toolkit.compiler.backends.kernels.function import KernelFunction


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


# -- passes that are more than a call, or whose family is imported only for programs that need it ----------------------


def _delay(block: Block, to: Compilation) -> None:
    to.initialises = delay(block)


def _find_test(block: Block, to: Compilation) -> None:
    from toolkit.compiler.backends.cpu.loops.whole import check_test

    check_test(block)


def _find_sequences(block: Block, to: Compilation) -> None:
    from toolkit.compiler.backends.cpu.loops.sequences import find_sequences
    from toolkit.compiler.backends.cpu.loops.whole import check_states

    to.sequences = find_sequences(block, to.states)
    check_states(block, to.sequences)


def _merge_common_subexpressions(block: Block, to: Compilation) -> None:
    merge_common_subexpressions(block, to.excluded_by_name)


def _find_accumulations(block: Block, to: Compilation) -> None:
    from toolkit.compiler.backends.cpu.loops.accumulation import find_accumulations

    find_accumulations(block, to.states, to.target.loops)


def _narrow_products(block: Block, to: Compilation) -> None:
    from toolkit.compiler.transforms.narrow import narrow_products

    narrow_products(block, to.states)


def _spread_joins(block: Block, to: Compilation) -> None:
    from toolkit.compiler.backends.cpu.loops.joins import spread_joins

    spread_joins(block)


def _separate_results(block: Block, to: Compilation) -> None:
    from toolkit.compiler.backends.cpu.loops.whole import separate_results

    separate_results(block)


def _may_be_recurrent(block: Block, to: Compilation) -> bool:
    """Whether there are loops that may be layers, and what computes layers: oneDNN, or code of our own for all."""
    if not any(map(is_recurrent, block.operations)):
        return False
    return to.onednn or (to.offers(_NATIVE) and to.target.recurrent.pays and compiler() is not None)


def _lower_recurrent(block: Block, to: Compilation) -> None:
    from toolkit.compiler.backends.cpu.recurrent.replace import lower_recurrent

    lower_recurrent(block, to.refused, has_effect)


def _has_layers(block: Block, to: Compilation) -> bool:
    return any(isinstance(operation, RecurrentLayer) for operation in block.operations)


def _compile_layers(block: Block, to: Compilation) -> None:
    from toolkit.compiler.backends.cpu.recurrent.compiled import compile_layers

    compile_layers(block, to.threads, to.target)


def _has_quantized(block: Block, to: Compilation) -> bool:
    """Whether there is a node that takes or makes quantized numbers."""
    return any(
        dtype.is_quantized
        for operation in block.operations
        for step in operation.steps
        for dtype in (*step.node.input_types, *step.node.output_types)
    )


def _lower_quantized(block: Block, to: Compilation) -> None:
    from toolkit.compiler.backends.cpu.integers.rules import lower_quantized

    lower_quantized(block, to.refused, to.target)


def _has_round_trips(block: Block, to: Compilation) -> bool:
    """Whether there is one, and products of 8 bits are exact; where a NaN must be seen: 8 bits have none."""
    if block.keeps_nan or not to.target.vectors.exact_int8 or not any("Quant" in each.op for each in block.operations):
        return False
    from toolkit.compiler.backends.cpu.integers.round_trips import has_round_trips

    return has_round_trips(block)


def _lower_round_trips(block: Block, to: Compilation) -> None:
    from toolkit.compiler.backends.cpu.integers.round_trips import lower_round_trips

    lower_round_trips(block, to.refused)


def _lower_sums(block: Block, to: Compilation) -> None:
    lower_sums(block, to.excluded_by_name, to.target.primitives.reduction)


def _find_patterns(block: Block, to: Compilation) -> None:
    find_patterns(block, to.refused, to.target.primitives.elementwise)


def _lower_hosts(block: Block, to: Compilation) -> None:
    sizes = to.target.primitives
    lower_hosts(block, to.refused, sizes.without_calls() if to.where is Where.LOOP else sizes)


def _lower_batch_norms(block: Block, to: Compilation) -> None:
    lower_batch_norms(block, to.refused, to.target.primitives.elementwise)


def _lower_pool_gradients(block: Block, to: Compilation) -> None:
    lower_pool_gradients(block, to.threads, to.target.pools.least)


def _turn_gradients(block: Block, to: Compilation) -> None:
    if any(isinstance(operation, ConvolutionInputGradient) for operation in block.operations):
        from toolkit.compiler.backends.cpu.learning.training import turn_gradients

        turn_gradients(block)


def _has_rows(block: Block, to: Compilation) -> bool:
    if not any("Gather" in operation.op or "Scatter" in operation.op for operation in block.operations):
        return False
    from toolkit.compiler.backends.cpu.learning.rows import has_rows

    return has_rows(block, to.target.tables.least)


def _lower_rows(block: Block, to: Compilation) -> None:
    from toolkit.compiler.backends.cpu.learning.rows import lower_rows

    lower_rows(block, to.running, to.excluded_by_name, to.target.tables)


def _has_nests(block: Block, to: Compilation) -> bool:
    return to.where is Where.LOOP or has_nests(block)


def _lower_parts(block: Block, to: Compilation) -> None:
    if to.where is Where.LOOP:
        lower_parts(block, to.excluded_by_name, lambda value: True)
    else:
        lower_parts(block, to.excluded_by_name, _is_for_nests)


def _is_for_nests(value: Value) -> bool:
    """Whether all who take a value have code in nests."""
    return not value.is_result and all(user.op in OPERATORS for user in value.users)


def _gather_kernels(block: Block, to: Compilation) -> None:
    from toolkit.compiler.backends.cuda.fusion import gather_kernels

    gather_kernels(block, to.excluded_by_name, may_change_variables, single=to.settings.narrow is not None)


def _lower_precision_of_gpus(block: Block, to: Compilation) -> None:
    from toolkit.compiler.backends.cuda.precision import lower_precision

    lower_precision(block, to.settings.narrow, to.excluded_by_name)


def _fuse_products(block: Block, to: Compilation) -> None:
    from toolkit.compiler.backends.cuda.products import fuse_products

    fuse_products(block, to.excluded_by_name, may_change_variables)


def _order_rows(block: Block, to: Compilation) -> None:
    from toolkit.compiler.backends.cuda.row_order import order_rows

    order_rows(block, to.excluded_by_name)


def _order_batches(block: Block, to: Compilation) -> None:
    from toolkit.compiler.backends.cuda.batch_order import order_batches

    order_batches(block, to.excluded_by_name, may_change_variables)


def _fold_transpositions(block: Block, to: Compilation) -> None:
    from toolkit.compiler.backends.cuda.transpositions import fold_transpositions

    fold_transpositions(block, to.excluded_by_name, may_change_variables)


def _fuse_convolutions(block: Block, to: Compilation) -> None:
    from toolkit.compiler.backends.cuda.convolutions import fuse_convolutions

    fuse_convolutions(block, to.excluded_by_name, may_change_variables)


def _sum_products(block: Block, to: Compilation) -> None:
    from toolkit.compiler.backends.cuda.summed_products import sum_products

    sum_products(block, to.excluded_by_name)


def _split_first(block: Block, to: Compilation) -> None:
    from toolkit.compiler.backends.cuda.late_splits import split_first

    split_first(block, to.excluded_by_name, may_change_variables)


def _place_parts(block: Block, to: Compilation) -> None:
    from toolkit.compiler.backends.cuda.parts import place_parts

    place_parts(block, to.excluded_by_name)


def _split_norms(block: Block, to: Compilation) -> None:
    from toolkit.compiler.backends.cuda.norms import split_norms

    split_norms(block, to.excluded_by_name)


def _sink_updates(block: Block, to: Compilation) -> None:
    from toolkit.compiler.backends.cuda.updates import sink_updates

    sink_updates(block)


def _gather_updates(block: Block, to: Compilation) -> None:
    from toolkit.compiler.backends.cuda.updates import gather_updates

    gather_updates(block, to.excluded_by_name)


def _gather_nests(block: Block, to: Compilation) -> None:
    if to.where is Where.LOOP:
        gather_nests(block, to.excluded_by_name, lambda operation: False, to.target.nests, everything=True)
    else:
        gather_nests(block, to.excluded_by_name, may_change_variables, to.target.nests)


def _lower_updates(block: Block, to: Compilation) -> None:
    if not any("Apply" in operation.op for operation in block.operations):
        return
    native = to.settings.native and compiler() is not None
    if native or to.onednn:
        from toolkit.compiler.backends.cpu.learning.updates import lower_updates

        lower_updates(block, to.running, to.refused, to.target, native=native, onednn=to.onednn)


def _lower_elementwise(block: Block, to: Compilation) -> None:
    refused = to.refused if to.settings.precision == "bf16" else to.hides_nan
    lower_elementwise(block, refused, to.target.primitives.elementwise)


def _lower_precision(block: Block, to: Compilation) -> None:
    lower_precision(block, multiplies=to.target.vectors.bfloat16)


def _compile_loops(block: Block, to: Compilation) -> None:
    for operation in block.operations:
        if isinstance(operation, Loop):
            operation.compiled = _loop(block, operation, to)


def _verify_shapes(block: Block, to: Compilation) -> None:
    if to.where is Where.LOOP:
        from toolkit.compiler.backends.cpu.loops.whole import is_emitted_in_loop

        verify(block, is_emitted_in_loop)
    else:
        verify(block, is_emitted)


_BOTH = Where.PROGRAM | Where.LOOP
_LOOP = Where.LOOP
_ONEDNN, _NATIVE, _COMPILER, _BF16 = Needs.ONEDNN, Needs.NATIVE, Needs.COMPILER, Needs.BF16
_WINOGRAD, _PANELS = _ONEDNN | _NATIVE | Needs.WINOGRAD, _ONEDNN | _NATIVE | Needs.PANELS

#: in the order in which they are applied
PASSES: Sequence[Pass] = (
    Pass("delay", _delay),
    Pass("find_test", _find_test, where=_LOOP),
    Pass("find_sequences", _find_sequences, where=_LOOP),
    Pass("merge_common_subexpressions", _merge_common_subexpressions, where=_BOTH),
    Pass("turn_channels_last", lambda block, to: turn_channels_last(block, to.excluded), _ONEDNN, _BOTH),
    Pass("lower_sums", _lower_sums, _NATIVE, _BOTH),
    Pass("lower_recurrent", _lower_recurrent, finds=_may_be_recurrent),
    Pass("lower_quantized", _lower_quantized, _ONEDNN, finds=_has_quantized),
    Pass("find_patterns", _find_patterns, _ONEDNN),
    Pass("drop_unused", lambda block, to: block.drop_unused(has_effect), _ONEDNN),
    Pass("lower_hosts", _lower_hosts, _ONEDNN, _BOTH),
    Pass("compile_layers", _compile_layers, _NATIVE | _COMPILER, finds=_has_layers),
    Pass("find_accumulations", _find_accumulations, _ONEDNN, _LOOP),
    Pass("lower_batch_norms", _lower_batch_norms, _ONEDNN),
    Pass("turn_gradients", _turn_gradients, _ONEDNN),
    Pass("lower_pool_gradients", _lower_pool_gradients, _ONEDNN | _NATIVE),
    Pass("fuse_epilogues", lambda block, to: fuse_epilogues(block, to.refused), _ONEDNN, _BOTH),
    Pass("merge_padding", lambda block, to: merge_padding(block), _ONEDNN),
    Pass("push_strides", lambda block, to: push_strides(block), _ONEDNN),
    Pass("lower_pools", lambda block, to: lower_pools(block, to.threads, to.target.pools.least), _ONEDNN | _NATIVE),
    Pass("lower_round_trips", _lower_round_trips, _ONEDNN, finds=_has_round_trips),
    Pass("scale_filters", lambda block, to: scale_filters(block, to.settings.precision, to.refused), _ONEDNN),
    # between convolutions in bf16 primitives read and write it, nests do not
    Pass("lower_elementwise_bf16", _lower_elementwise, _ONEDNN | _BF16),
    Pass("lower_views", lambda block, to: lower_views(block, to.excluded_by_name)),
    Pass("lower_rows", _lower_rows, _NATIVE | _COMPILER, finds=_has_rows),
    Pass("lower_parts", _lower_parts, _NATIVE | _COMPILER, _BOTH, _has_nests),
    Pass("narrow_products", _narrow_products, where=_LOOP),
    Pass("gather_nests", _gather_nests, _NATIVE | _COMPILER, _BOTH, _has_nests),
    Pass("spread_joins", _spread_joins, where=_LOOP),
    Pass("separate_results", _separate_results, where=_LOOP),
    Pass("lower_updates", _lower_updates),
    Pass("lower_elementwise", _lower_elementwise, _ONEDNN),
    Pass("lower_precision", _lower_precision, _ONEDNN | _BF16,
         finds=lambda block, to: not block.keeps_nan),
    Pass("lower_windows", lambda block, to: lower_windows(block, to.threads, to.target.winograd), _WINOGRAD),
    Pass("lower_panels", lambda block, to: lower_panels(block, to.threads, to.target), _PANELS),
    Pass("lower_depthwise", lambda block, to: lower_depthwise(block, to.threads, to.target), _PANELS),
    Pass("join_strips", lambda block, to: join_strips(block, to.target), _PANELS),
    Pass("split_activations", lambda block, to: split_activations(block, to.target.activations), _PANELS),
    Pass("compile_loops", _compile_loops),
    Pass("lower_ufuncs", lambda block, to: lower_ufuncs(block, defining=to.settings.defines)),
    Pass("verify_shapes", _verify_shapes, where=_BOTH),
    Pass("stage_inputs", lambda block, to: stage_inputs(block, to.target.copies.pinned)),
)  # fmt: skip

#: of blocks that run on NVIDIA GPUs
CUDA_PASSES: Sequence[Pass] = (
    Pass("sink_updates", _sink_updates),
    Pass("fuse_convolutions", _fuse_convolutions),
    Pass("order_rows", _order_rows),
    Pass("fuse_products", _fuse_products),
    Pass("order_batches", _order_batches),
    Pass("fold_transpositions", _fold_transpositions),
    Pass("split_norms", _split_norms),
    Pass("sum_products", _sum_products),
    Pass("split_first", _split_first),
    Pass("gather_kernels", _gather_kernels),
    Pass("lower_precision_of_gpus", _lower_precision_of_gpus, finds=lambda block, to: to.settings.narrow is not None),
    Pass("place_parts", _place_parts),
    Pass("gather_updates", _gather_updates),
)  # fmt: skip


def apply_passes(block: Block, to: Compilation, passes: Sequence[Pass] | None = None) -> None:
    """Apply those passes that are for this block.

    Args:
        passes: by default all of the table.

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
    for each in PASSES if passes is None else passes:
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


def compile_block(block: Block, settings: Settings, excluded: dict[str, str], running: RunningStep) -> Emitted:
    """Optimise a block and generate its function.

    Args:
        running: the step that the plan is made in; variables that are there are looked up in it.
        excluded: names of nodes that must run by their own kernels, and why.

    Raises:
        NotSupportedError: a node turned out to need that.
    """
    to = Compilation(block, settings, excluded, running)
    if to.onednn:
        to.settings = replace(settings, target=offered(settings.target))
    apply_passes(block, to)
    with compiling(running, "plan_arena"):
        donated = find_donated(block, to.target.copies.donated)
        layout = plan_arena(block, _is_in_arena, alias_of, reusable, may_expose, elsewhere=donated)
    with compiling(running, "emit"):
        emitted = Emitter(block, layout, to.target, donated).write(WRITERS, write_kernel)
    emitted.initialises = to.initialises
    return emitted


def _is_in_arena(operation: Operation) -> bool:
    return operation.has(Trait.IN_ARENA)


def compile_calls(block: Block, settings: Settings, excluded: dict[str, str], running: RunningStep) -> KernelFunction:
    """Generate the function of a block that leaves everything to the kernels of a device.

    Raises:
        NotSupportedError: there is an operation in it that no kernel is behind.
    """
    from toolkit.compiler.backends.kernels.emit import emit

    apply_passes(block, Compilation(block, settings, excluded, running), ())
    return emit(block)


def compile_cuda(block: Block, settings: Settings, excluded: dict[str, str], running: RunningStep) -> Executable:
    """Generate the function of a block that runs on an NVIDIA GPU.

    Raises:
        NotSupportedError: there is an operation in it that nothing is behind.
    """
    from toolkit.compiler.backends.cuda.emit import emit

    passes = () if settings.defines else CUDA_PASSES
    apply_passes(block, Compilation(block, settings, excluded, running), passes)
    return emit(block, tf32=settings.allows_tf32)


Backend = Callable[[Block, Settings, dict[str, str], RunningStep], Executable]


def backend_of(program: Program) -> Backend:
    """What compiles the blocks of a program: for its device, if it makes code for that."""
    if program.memory is None:
        return compile_block
    return compile_cuda if program.device_type == "GPU" else compile_calls


def _loop(block: Block, loop: Loop, to: Compilation) -> Emitted:
    """A loop that runs by itself, else an iteration that the interpreter calls."""
    from toolkit.compiler.backends.cpu.loops.interpreted import Interpreted
    from toolkit.compiler.backends.cpu.loops.whole import emit_loop

    body = loop.body
    settings, states = to.settings, len(loop.states)
    if settings.native and compiler() is not None:
        plain = replace(settings, native=False, onednn=False)
        fallback = Interpreted(lambda: compile_block(body, plain, to.excluded, to.running), states)
        try:
            whole = clone(body)
            inner = Compilation(whole, settings, {}, to.running, Where.LOOP, states)
            apply_passes(whole, inner)
            return emit_loop(whole, to.target, states, inner.sequences, fallback)
        except NotSupportedError as refusal:
            block.notes.append(f"{loop.name}: the interpreter runs every iteration, for {refusal}")
        except PassFailedError as failure:
            if settings.strict or settings.verify:
                raise
            block.notes.append(f"{loop.name}: the interpreter runs every iteration: {failure.message}")
    return compile_block(body, settings, to.excluded, to.running)


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
