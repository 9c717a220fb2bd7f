"""The passes over blocks that run on the CPU, in the order in which they are applied, and the function that is left."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from toolkit.compiler.backends.cpu.elementwise.log_softmax import lower_log_softmax
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
from toolkit.compiler.backends.cpu.networks.products import takes_post_ops
from toolkit.compiler.backends.cpu.networks.strips import join_strips
from toolkit.compiler.backends.cpu.networks.windows import lower_windows
from toolkit.compiler.context import RunningStep, compiling
from toolkit.compiler.importer.order import delay
from toolkit.compiler.ir.block import Block, clone
from toolkit.compiler.ir.effects import has_effect, may_change_variables
from toolkit.compiler.ir.errors import NotSupportedError, PassFailedError
from toolkit.compiler.ir.operation import Operation
from toolkit.compiler.ir.operations.calls import Loop
from toolkit.compiler.ir.operations.products import ConvolutionInputGradient
from toolkit.compiler.ir.operations.recurrent import RecurrentLayer, is_recurrent
from toolkit.compiler.ir.traits import Trait
from toolkit.compiler.ir.value import Value
from toolkit.compiler.ir.verifier import verify
from toolkit.compiler.pipeline.passes import Compilation, Needs, Pass, Where, apply_passes
from toolkit.compiler.settings import Settings
from toolkit.compiler.transforms.common_subexpressions import merge_common_subexpressions
from toolkit.compiler.transforms.fuse import fuse_epilogues, lower_elementwise
from toolkit.compiler.transforms.layout import turn_channels_last
from toolkit.compiler.transforms.padding import merge_padding
from toolkit.compiler.transforms.patterns import find_patterns
from toolkit.compiler.transforms.precision import lower_precision
from toolkit.compiler.transforms.scales import scale_filters
from toolkit.compiler.transforms.strides import push_strides
from toolkit.kernels.cpu.native.compiler import compiler
from toolkit.kernels.cpu.native.operations import OPERATORS
from toolkit.kernels.cpu.onednn.library import offered

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


def _has_log_softmax(block: Block, to: Compilation) -> bool:
    """Whether there is one; how many threads there are is asked of a library that has to be loaded."""
    return any(each.op == "LogSoftmax" for each in block.operations)


def _lower_log_softmax(block: Block, to: Compilation) -> None:
    sizes, threads = to.target.primitives, to.threads
    if to.where is Where.LOOP:  # threads would meet in every iteration
        sizes, threads = sizes.without_calls(), 1
    lower_log_softmax(block, to.excluded_by_name, small=sizes.log_softmax, threads=threads, long=to.target.threads.nest)


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
    Pass("lower_log_softmax", _lower_log_softmax, _NATIVE, _BOTH, _has_log_softmax),
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
    Pass("fuse_epilogues", lambda block, to: fuse_epilogues(block, to.refused, takes_post_ops), _ONEDNN, _BOTH),
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
    apply_passes(block, to, PASSES)
    with compiling(running, "plan_arena"):
        donated = find_donated(block, to.target.copies.donated)
        layout = plan_arena(block, _is_in_arena, alias_of, reusable, may_expose, elsewhere=donated)
    with compiling(running, "emit"):
        emitted = Emitter(block, layout, to.target, donated).write(WRITERS, write_kernel)
    emitted.initialises = to.initialises
    return emitted


def _is_in_arena(operation: Operation) -> bool:
    return operation.has(Trait.IN_ARENA)


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
            apply_passes(whole, inner, PASSES)
            return emit_loop(whole, to.target, states, inner.sequences, fallback)
        except NotSupportedError as refusal:
            block.notes.append(f"{loop.name}: the interpreter runs every iteration, for {refusal}")
        except PassFailedError as failure:
            if settings.strict or settings.verify:
                raise
            block.notes.append(f"{loop.name}: the interpreter runs every iteration: {failure.message}")
    return compile_block(body, settings, to.excluded, to.running)
