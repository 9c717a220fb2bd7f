"""The passes over a block, in order, and the emission of what they leave."""

from __future__ import annotations

from dataclasses import replace

from toolkit.compiler.backends.cpu.elementwise.nests import gather_nests, has_nests
from toolkit.compiler.backends.cpu.elementwise.sums import lower_sums
from toolkit.compiler.backends.cpu.elementwise.ufuncs import lower_ufuncs
from toolkit.compiler.backends.cpu.elementwise.views import lower_views
from toolkit.compiler.backends.cpu.emission.arena import plan_arena
from toolkit.compiler.backends.cpu.emission.calls import write_kernel
from toolkit.compiler.backends.cpu.emission.emit import Emitter
from toolkit.compiler.backends.cpu.emission.handover import find_handed
from toolkit.compiler.backends.cpu.emission.instance import Emitted
from toolkit.compiler.backends.cpu.emission.staging import alias_of, may_expose, reusable, stage_inputs
from toolkit.compiler.backends.cpu.emission.writers import WRITERS, is_emitted, is_in_arena
from toolkit.compiler.backends.cpu.integers.products import I8, U8
from toolkit.compiler.backends.cpu.integers.rules import lower_quantized
from toolkit.compiler.backends.cpu.learning.pools import lower_pool_gradients, lower_pools
from toolkit.compiler.backends.cpu.learning.rows import has_rows, lower_rows
from toolkit.compiler.backends.cpu.learning.training import turn_gradients
from toolkit.compiler.backends.cpu.learning.updates import has_updates, lower_updates
from toolkit.compiler.backends.cpu.loops.interpreted import Interpreted
from toolkit.compiler.backends.cpu.loops.whole import compile_loop
from toolkit.compiler.backends.cpu.networks.activations import split_activations
from toolkit.compiler.backends.cpu.networks.depthwise import lower_depthwise
from toolkit.compiler.backends.cpu.networks.hosts import lower_hosts
from toolkit.compiler.backends.cpu.networks.norms import lower_batch_norms
from toolkit.compiler.backends.cpu.networks.panels import lower_panels
from toolkit.compiler.backends.cpu.networks.strips import join_strips
from toolkit.compiler.backends.cpu.networks.windows import lower_windows
from toolkit.compiler.backends.cpu.recurrent.replace import is_recurrent, lower_recurrent
from toolkit.compiler.context import RunningStep
from toolkit.compiler.importer.order import delay
from toolkit.compiler.ir.block import Block, clone
from toolkit.compiler.ir.errors import NotSupportedError
from toolkit.compiler.ir.operation import Operation
from toolkit.compiler.ir.operations.calls import Dereference, Loop, ReadVariable, Select, Test
from toolkit.compiler.ir.traits import Trait
from toolkit.compiler.ir.verifier import verify
from toolkit.compiler.settings import Settings
from toolkit.compiler.transforms.elements import SWALLOW_NAN
from toolkit.compiler.transforms.fuse import fuse_epilogues, lower_elementwise
from toolkit.compiler.transforms.layout import turn_channels_last
from toolkit.compiler.transforms.padding import merge_padding
from toolkit.compiler.transforms.parts import lower_parts
from toolkit.compiler.transforms.patterns import find_patterns
from toolkit.compiler.transforms.precision import lower_precision
from toolkit.compiler.transforms.scales import scale_filters
from toolkit.compiler.transforms.strides import push_strides
from toolkit.kernels.cpu.native.compiler import compiler
from toolkit.kernels.cpu.native.operations import OPERATORS
from toolkit.kernels.cpu.onednn.library import library, threads
from toolkit.kernels.cpu.onednn.memory import F32
from toolkit.kernels.registry import Kind


def compile_block(block: Block, settings: Settings, excluded: dict[str, str], running: RunningStep) -> Emitted:
    """Optimise a block and generate its function.

    Args:
        running: the step that the plan is made in; variables that are there are looked up in it.
        excluded: names of nodes that must run by their own kernels, and why.

    Raises:
        NotSupportedError: a node turned out to need that.
    """

    def refused(operation: Operation) -> bool:
        if block.keeps_nan and operation.kind in SWALLOW_NAN:
            return True
        return operation.step.node.name in excluded

    def hides_nan(operation: Operation) -> bool:
        # by themselves these are as fast in NumPy, and TensorFlow hides NaN in none but those behind products
        return refused(operation) or operation.kind in SWALLOW_NAN

    def excluded_by_name(operation: Operation) -> bool:
        return operation.step.node.name in excluded

    initialises = delay(block)
    onednn = settings.onednn and _has_work(block) and library() is not None
    if onednn:
        turn_channels_last(block, excluded)
    if settings.native:
        lower_sums(block, excluded_by_name)
    if onednn:
        lower_recurrent(block, refused, has_effect)
        lower_quantized(block, refused)
        find_patterns(block, refused)
        block.drop_unused(has_effect)
        lower_hosts(block, refused)
        lower_batch_norms(block, refused)
        turn_gradients(block)
        if settings.native:
            lower_pool_gradients(block, settings.threads or threads())
        fuse_epilogues(block, refused)
        merge_padding(block)
        push_strides(block)
        if settings.native:
            lower_pools(block, settings.threads or threads())
        scale_filters(block, settings.precision, refused)
        if settings.precision == "bf16":  # between convolutions in bf16 primitives read and write it, nests do not
            lower_elementwise(block, refused)
    lower_views(block, excluded_by_name)
    if settings.native and has_rows(block) and compiler() is not None:
        lower_rows(block, running, excluded_by_name)
    if settings.native and has_nests(block) and compiler() is not None:
        lower_parts(block, lambda value: all(user.kind in OPERATORS for user in value.users) and not value.is_result)
        gather_nests(block, excluded_by_name, may_change_variables)
    native = settings.native and has_updates(block) and compiler() is not None
    if native or onednn:
        lower_updates(block, running, refused, native=native, onednn=onednn)
    if onednn:
        lower_elementwise(block, refused if settings.precision == "bf16" else hides_nan)
        if settings.precision == "bf16" and not block.keeps_nan:
            lower_precision(block)
        if settings.native and settings.winograd:
            lower_windows(block, settings.threads or threads())
        if settings.native and settings.panels:
            lower_panels(block, settings.threads or threads())
            lower_depthwise(block, settings.threads or threads())
            join_strips(block)
            split_activations(block)
    for operation in block.operations:
        if isinstance(operation, Loop):
            operation.compiled = _loop(block, operation, settings, excluded, running)
    lower_ufuncs(block, defining=settings.defines)
    verify(block, is_emitted)
    stage_inputs(block)
    handed = find_handed(block)
    layout = plan_arena(block, is_in_arena, alias_of, reusable, may_expose, elsewhere=handed)
    emitted = Emitter(block, layout, handed).write(WRITERS, write_kernel)
    emitted.initialises = initialises
    for operation in block.operations:
        for name in ("filter", "weights"):  # packed by now; folding made copies of them
            operation.attrs.pop(name, None)
    return emitted


def _loop(block: Block, loop: Loop, settings: Settings, excluded: dict[str, str], running: RunningStep) -> Emitted:
    """A loop that runs by itself, else a turn that the interpreter calls."""
    body = loop.body
    if settings.native and compiler() is not None:
        plain = replace(settings, native=False, onednn=False)
        states = len(loop.states)
        try:
            return compile_loop(
                clone(body),
                states,
                settings,
                Interpreted(lambda: compile_block(body, plain, excluded, running), states),
            )
        except NotSupportedError as refusal:
            block.notes.append(f"{loop.name}: the interpreter runs every turn, for {refusal}")
    return compile_block(body, settings, excluded, running)


def _has_work(block: Block) -> bool:
    """Whether there is anything that oneDNN would do better: loading it takes 30 ms."""
    return any(
        is_recurrent(operation)
        or any(
            value.dtype in _WORTHY and value.shape is not None and value.size >= _WORTH
            for value in (*operation.inputs, *operation.outputs)
        )
        for operation in block.operations
    )


_WORTH = 1 << 10  # elements
_WORTHY = (F32, I8, U8)


def may_change_variables(operation: Operation) -> bool:
    """Whether arrays that were read before may hold something else after an operation."""
    if isinstance(operation, ReadVariable | Test) or operation.kind in _LISTS or operation.kind == "gather_rows":
        return False
    return has_effect(operation)


#: they change what a handle stands for, never an array that was put in or taken out
_LISTS = frozenset({"StackPushV2", "StackPopV2", "StackPush", "StackPop", "TensorArrayWriteV3", "TensorArrayReadV3",
                    "TensorArrayGatherV3", "TensorArrayScatterV3", "TensorArraySizeV3",
                    "TensorArrayGradV3"})  # fmt: skip


def has_effect(operation: Operation) -> bool:
    """Whether an operation must run although nobody needs its outputs."""
    if isinstance(operation, Dereference | Select):
        return False
    if operation.has(Trait.EFFECT):
        return True
    step = operation.step
    changes_variable = any(dtype.is_ref for dtype in step.node.input_types)
    if any(each.is_target for each in operation.steps):  # somebody asked for it to run
        return True
    return step.kind is not Kind.PURE or changes_variable or not operation.outputs or operation.kind in _CHECKS


#: pure kernels that are there for the errors they raise; placeholders are when they were not fed
_CHECKS = frozenset({"CheckNumerics", "CheckNumericsV2", "EnsureShape", "Assert", "Placeholder", "PlaceholderV2"})
