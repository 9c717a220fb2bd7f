"""The passes over blocks that run on NVIDIA GPUs, in the order in which they are applied."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from toolkit.compiler.ir.block import Block
from toolkit.compiler.ir.effects import may_change_variables
from toolkit.compiler.pipeline.passes import Compilation, Pass

if TYPE_CHECKING:
    from toolkit.kernels.cuda.libraries.attention import Attention


def _gather_kernels(block: Block, to: Compilation) -> None:
    from toolkit.compiler.backends.cuda.fusion.elementwise import gather_kernels

    gather_kernels(block, to.excluded_by_name, may_change_variables, single=to.settings.narrow is not None)


def _lower_precision_of_gpus(block: Block, to: Compilation) -> None:
    from toolkit.compiler.backends.cuda.precision.lowering import lower_precision

    lower_precision(block, to.settings.narrow, to.excluded_by_name)


def _lower_float8(block: Block, to: Compilation) -> None:
    from toolkit.compiler.backends.cuda.precision.float8 import lower_float8
    from toolkit.kernels.cuda.device import device_named

    blas = device_named(block.device).context.blas
    lower_float8(block, to.excluded_by_name, lambda product: blas is not None and blas.supports(product))


def _fuse_products(block: Block, to: Compilation) -> None:
    from toolkit.compiler.backends.cuda.fusion.products import fuse_products

    fuse_products(block, to.excluded_by_name, may_change_variables)


def _form_attention(block: Block, to: Compilation) -> None:
    from toolkit.compiler.backends.cuda.attention.forming import form_attention
    from toolkit.kernels.cuda.device import device_named
    from toolkit.kernels.gpu.nn.attention import as_one_kernel

    narrow, tf32 = to.settings.narrow, to.settings.precision == "tf32"
    device = device_named(block.device)
    library = device.context.dnn is not None

    def wanted(attention: Attention, in_rows: bool) -> Attention | None:
        asked = replace(attention, tf32=tf32, dtype=attention.dtype if narrow is None else narrow.name)
        return as_one_kernel(asked, library=library, in_rows=in_rows)

    form_attention(block, to.excluded_by_name, may_change_variables, wanted, device.to_device)


def _order_rows(block: Block, to: Compilation) -> None:
    from toolkit.compiler.backends.cuda.layout.row_order import order_rows

    order_rows(block, to.excluded_by_name)


def _order_batches(block: Block, to: Compilation) -> None:
    from toolkit.compiler.backends.cuda.layout.batch_order import order_batches

    order_batches(block, to.excluded_by_name, may_change_variables)


def _fold_transpositions(block: Block, to: Compilation) -> None:
    from toolkit.compiler.backends.cuda.layout.transpositions import fold_transpositions

    fold_transpositions(block, to.excluded_by_name, may_change_variables)


def _fuse_convolutions(block: Block, to: Compilation) -> None:
    from toolkit.compiler.backends.cuda.fusion.convolutions import fuse_convolutions

    fuse_convolutions(block, to.excluded_by_name, may_change_variables)


def _sum_products(block: Block, to: Compilation) -> None:
    from toolkit.compiler.backends.cuda.loops.summed_products import sum_products

    sum_products(block, to.excluded_by_name)


def _split_first(block: Block, to: Compilation) -> None:
    from toolkit.compiler.backends.cuda.parts.late_splits import split_first

    split_first(block, to.excluded_by_name, may_change_variables)


def _share_rows(block: Block, to: Compilation) -> None:
    from toolkit.compiler.backends.cuda.fusion.shared_products import share_rows

    share_rows(block, to.excluded_by_name, may_change_variables)


def _join_late(block: Block, to: Compilation) -> None:
    from toolkit.compiler.backends.cuda.parts.late_joins import join_late

    join_late(block, to.excluded_by_name, may_change_variables)


def _add_into_products(block: Block, to: Compilation) -> None:
    from toolkit.compiler.backends.cuda.fusion.added_products import add_into_products

    add_into_products(block, to.excluded_by_name, may_change_variables)


def _compute_early(block: Block, to: Compilation) -> None:
    from toolkit.compiler.backends.cuda.fusion.early import compute_early

    compute_early(block, to.excluded_by_name, may_change_variables)


def _keep_where_made(block: Block, to: Compilation) -> None:
    from toolkit.compiler.backends.cuda.loops.kept_where_made import keep_where_made

    keep_where_made(block)


def _split_factors(block: Block, to: Compilation) -> None:
    from toolkit.compiler.backends.cuda.loops.joined_factors import split_factors

    split_factors(block, to.excluded_by_name)


def _place_parts(block: Block, to: Compilation) -> None:
    from toolkit.compiler.backends.cuda.parts.in_place import place_parts

    place_parts(block, to.excluded_by_name)


def _split_norms(block: Block, to: Compilation) -> None:
    from toolkit.compiler.backends.cuda.fusion.norms import split_norms

    split_norms(block, to.excluded_by_name)


def _sum_where_made(block: Block, to: Compilation) -> None:
    from toolkit.compiler.backends.cuda.fusion.gradient_sums import sum_where_made

    sum_where_made(block, to.excluded_by_name)


def _sink_updates(block: Block, to: Compilation) -> None:
    from toolkit.compiler.backends.cuda.fusion.updates import sink_updates

    sink_updates(block)


def _gather_averages(block: Block, to: Compilation) -> None:
    from toolkit.compiler.backends.cuda.fusion.averages import gather_averages

    gather_averages(block, to.excluded_by_name)


def _compute_on_host(block: Block, to: Compilation) -> None:
    from toolkit.compiler.backends.cuda.conditionals.host_numbers import compute_on_host

    compute_on_host(block, to.excluded_by_name)


def _sum_behind_loops(block: Block, to: Compilation) -> None:
    from toolkit.compiler.backends.cuda.loops.loop_sums import sum_behind_loops

    sum_behind_loops(block, to.excluded_by_name)


def _open_block_cells(block: Block, to: Compilation) -> None:
    from toolkit.compiler.backends.cuda.loops.block_cells import number_of_device, open_block_cells

    open_block_cells(block, to.excluded_by_name, number_of_device(block.device))


def _hoist_products(block: Block, to: Compilation) -> None:
    from toolkit.compiler.backends.cuda.loops.time_products import hoist_products

    hoist_products(block, to.excluded_by_name)


def _split_products(block: Block, to: Compilation) -> None:
    from toolkit.compiler.backends.cuda.parts.products import split_products

    split_products(block, to.excluded_by_name)


def _push_late(block: Block, to: Compilation) -> None:
    from toolkit.compiler.backends.cuda.loops.late_pushes import push_late

    push_late(block)


def _gather_updates(block: Block, to: Compilation) -> None:
    from toolkit.compiler.backends.cuda.fusion.updates import gather_updates

    gather_updates(block, to.excluded_by_name)


def _has_softmax(block: Block, to: Compilation) -> bool:
    return any(operation.op in ("Softmax", "Exp") for operation in block.walk())


#: of blocks that run on NVIDIA GPUs
CUDA_PASSES: Sequence[Pass] = (
    Pass("compute_on_host", _compute_on_host),
    Pass("sink_updates", _sink_updates),
    Pass("gather_averages", _gather_averages),
    Pass("keep_where_made", _keep_where_made),
    Pass("open_block_cells", _open_block_cells),
    Pass("push_late", _push_late),
    Pass("hoist_products", _hoist_products),
    Pass("split_factors", _split_factors),
    Pass("split_products", _split_products),
    Pass("sum_behind_loops", _sum_behind_loops),
    Pass("fuse_convolutions", _fuse_convolutions),
    Pass("form_attention", _form_attention, finds=_has_softmax),
    Pass("order_rows", _order_rows),
    Pass("fuse_products", _fuse_products),
    Pass("order_batches", _order_batches),
    Pass("fold_transpositions", _fold_transpositions),
    Pass("split_norms", _split_norms),
    Pass("sum_products", _sum_products),
    Pass("split_first", _split_first),
    Pass("join_late", _join_late),
    Pass("add_into_products", _add_into_products),
    Pass("compute_early", _compute_early),
    Pass("gather_kernels", _gather_kernels),
    Pass("lower_precision_of_gpus", _lower_precision_of_gpus, finds=lambda block, to: to.settings.narrow is not None),
    Pass("lower_float8", _lower_float8, finds=lambda block, to: to.settings.float8),
    Pass("sum_where_made", _sum_where_made),
    Pass("share_rows", _share_rows),
    Pass("place_parts", _place_parts),
    Pass("gather_updates", _gather_updates),
)  # fmt: skip
