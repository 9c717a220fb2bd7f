"""The table of optimizations: what they do, which presets run them, what the Graph Transform Tool called them."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from toolkit.errors import BugError, UsageError, did_you_mean
from toolkit.passes.optimize.rewriting import Optimization

#: preset -> what it is for; `graphmill help optimize` says more
PRESETS: dict[str, str] = {
    "inference": "what makes a network faster that only computes results; within rounding, and -0.0 counts as 0.0",
    "size": "what makes the file smaller without changing any result",
    "training": "what is safe in graphs with variables, gradients and savers; every result stays the same",
    "canonical": "the same model gives the same bytes: order, names and attributes are normal",
    "gtt": "what the Graph Transform Tool's list for deployment ran, in its order",
}


@dataclass(frozen=True, slots=True)
class PassEntry:
    """One pass of the table.

    Attributes:
        module, class_name: where it is in `toolkit.passes.optimize`; imported when it is asked for.
        text: what it does, in one line.
        presets: the presets that run it, in the order of the table.
        transforms: its counterparts in the Graph Transform Tool.
        exact: whether, with its defaults, every number stays the same bit for bit.
        options: preset -> parameters that differ from the defaults there.
    """

    name: str
    module: str
    class_name: str
    text: str
    presets: tuple[str, ...] = ()
    transforms: tuple[str, ...] = ()
    exact: bool = True
    options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict[str, Mapping[str, Any]])

    def load(self) -> type[Optimization]:
        """The pass's class."""
        found = getattr(importlib.import_module(f"toolkit.passes.optimize.{self.module}"), self.class_name)
        return cast("type[Optimization]", found)


#: in the order in which presets run them
_ROWS: tuple[PassEntry, ...] = (
    PassEntry(
        "remove_unused", "removal.remove_unused", "RemoveUnused",
        "remove what no fetch, target, signature, collection or saver needs, and functions that nothing calls",
        ("inference", "size", "training", "canonical", "gtt"), ("strip_unused_nodes",),
    ),
    PassEntry(
        "inline_functions", "flow.inline_functions", "InlineFunctions",
        "put the bodies of functions in the place of their calls, effects in order",
        ("inference",), ("inline_partitionedcall",), options={"inference": {"kept_nodes": 32}},
    ),
    PassEntry(
        "lower_control_flow", "flow.lower_control_flow", "LowerControlFlow",
        "make Switch, Merge, Enter, Exit and NextIteration of If, Case and While",
    ),
    PassEntry(
        "raise_control_flow", "flow.raise_control_flow", "RaiseControlFlow",
        "make If and While of Switch, Merge, Enter, Exit and NextIteration",
    ),
    PassEntry(
        "dead_branches", "flow.dead_branches", "DeadBranches",
        "take the branch that a constant predicate decides for: Switch and Merge, If, Case",
        ("inference", "size", "training"),
    ),
    PassEntry(
        "materialize_shapes", "arithmetic.materialize_shapes", "MaterializeShapes",
        "compute shapes, sizes and ranks that are known before anything runs, and the arithmetic on them",
        ("inference", "training"),
    ),
    PassEntry(
        "fold_constants", "arithmetic.fold_constants", "FoldConstants",
        "compute what only depends on constants; nothing random or stateful, no large results from small ones",
        ("inference", "training", "gtt"), ("fold_constants",), options={"training": {"max_bytes": 1024}},
    ),
    PassEntry(
        "remove_identities", "removal.remove_identities", "RemoveIdentities",
        "bypass Identity, Snapshot, StopGradient and other nodes that hand on their input; drop NoOps in between",
        ("inference", "size", "training", "gtt"), ("remove_nodes",),
        options={"training": {"keep_gradient_stops": True}},
    ),
    PassEntry(
        "merge_chains", "arithmetic.merge_chains", "MergeChains",
        "remove reshapes, transposes, casts, slices and their like that change nothing; merge two in a row",
        ("inference", "size", "training"),
    ),
    PassEntry(
        "simplify_arithmetic", "arithmetic.simplify_arithmetic", "SimplifyArithmetic",
        "drop arithmetic that changes nothing or undoes itself, and take cheaper operations",
        ("inference", "size", "training"), options={"inference": {"approximate": True, "signed_zeros": False}},
    ),
    PassEntry(
        "hoist_invariants", "flow.hoist_invariants", "HoistInvariants",
        "compute before a loop what is the same in each of its iterations",
        ("inference", "training"),
    ),
    PassEntry(
        "common_subexpressions", "arithmetic.common_subexpressions", "CommonSubexpressions",
        "compute once what is computed several times from the same tensors",
        ("inference", "size", "training", "gtt"), ("merge_duplicate_nodes",),
    ),
    PassEntry(
        "remove_control_edges", "removal.remove_control_edges", "RemoveControlEdges",
        "drop control edges that other paths imply, and those from nodes without effects",
        ("inference", "size", "training"), ("remove_control_dependencies",),
        options={"training": {"keep_order": True}},
    ),
    PassEntry(
        "rewrite", "rewrite", "Rewrite",
        "replace subgraphs by others as rules of the user say (--rewrite FILE)",
        exact=False,
    ),
    PassEntry(
        "set_inputs", "removal.set_inputs", "SetInputs",
        "make constants of placeholders such as keep_prob and is_training",
    ),
    PassEntry(
        "remove_dropout", "nn.remove_dropout", "RemoveDropout",
        "let the input of dropouts pass, however they are written",
        ("inference",), exact=False,
    ),
    PassEntry(
        "remove_checks", "removal.remove_checks", "RemoveChecks",
        "remove Assert, CheckNumerics, Print and their kin: what would have failed goes on",
        ("inference",), exact=False,
    ),
    PassEntry(
        "flatten_atrous_conv", "nn.flatten_atrous_conv", "FlattenAtrousConv",
        "make one dilated convolution of SpaceToBatchND, convolution and BatchToSpaceND",
        ("inference",), ("flatten_atrous_conv",), exact=False,
    ),
    PassEntry(
        "fold_batch_norms", "nn.fold_batch_norms", "FoldBatchNorms",
        "fold batch norms of every form, and other scales and shifts of channels, into constant weights beside them",
        ("inference", "gtt"), ("fold_batch_norms", "fold_old_batch_norms"), exact=False,
    ),
    PassEntry(
        "fold_pads", "nn.fold_pads", "FoldPads",
        "make padding of zeros that are written around the input of a convolution",
        ("inference",), exact=False,
    ),
    PassEntry(
        "fuse_pad_and_conv", "nn.fuse_pad_and_conv", "FusePadAndConv",
        "make FusedPadConv2D of MirrorPad and Conv2D of one image",
        (), ("fuse_pad_and_conv",), exact=False,
    ),
    PassEntry(
        "fuse_resize_and_conv", "nn.fuse_pad_and_conv", "FuseResizeAndConv",
        "make FusedResizeAndPadConv2D of ResizeBilinear and Conv2D of one image",
        (), ("fuse_resize_and_conv",), exact=False,
    ),
    PassEntry(
        "fuse_resize_pad_and_conv", "nn.fuse_pad_and_conv", "FuseResizePadAndConv",
        "make FusedResizeAndPadConv2D of ResizeBilinear, MirrorPad and Conv2D of one image",
        (), ("fuse_resize_pad_and_conv",), exact=False,
    ),
    PassEntry(
        "fuse_epilogues", "nn.fuse_epilogues", "FuseEpilogues",
        "make _FusedConv2D and its kin of convolutions and products with bias, norm and activation",
        ("inference",), exact=False,
    ),
    PassEntry(
        "unfuse_epilogues", "nn.unfuse_epilogues", "UnfuseEpilogues",
        "take fused convolutions, products and norms apart into the ops that they were made of",
        exact=False,
    ),
    PassEntry(
        "compress_weights", "quantization.compress_weights", "CompressWeights",
        "store large weights as float16 or bfloat16; the graph computes in float32 as before",
        exact=False,
    ),
    PassEntry(
        "quantize_weights", "quantization.quantize_weights", "QuantizeWeights",
        "store large weights in 8 bits with their range; the graph computes in float32 as before",
        (), ("quantize_weights",), exact=False,
    ),
    PassEntry(
        "quantize_nodes", "quantization.quantize_nodes", "QuantizeNodes",
        "compute convolutions, products, sums, pools and activations in 8 bits",
        (), ("quantize_nodes",), exact=False,
    ),
    PassEntry(
        "quantize_static", "quantization.quantize_static", "QuantizeStatic",
        "round weights and what convolutions and products take to 8 bits, in ranges measured on data (--calibrate)",
        exact=False,
    ),
    PassEntry(
        "sparsify_gather", "quantization.sparsify_gather", "SparsifyGather",
        "look numbers up in a hash table of those that are not 0, instead of gathering rows of mostly zeros",
        (), ("sparsify_gather",), exact=False,
    ),
    PassEntry(
        "round_weights", "quantization.round_weights", "RoundWeights",
        "round large weights to few different numbers, so that the file compresses well",
        (), ("round_weights",), exact=False,
    ),
    PassEntry(
        "recompute", "arithmetic.recompute", "Recompute",
        "compute cheap results of the forward pass again for their gradients, to keep less in memory",
    ),
    PassEntry(
        "obfuscate_names", "forms.obfuscate_names", "ObfuscateNames",
        "give nodes that nobody names short names without meaning",
        (), ("obfuscate_names",),
    ),
    PassEntry(
        "for_release", "forms.for_release", "ForRelease",
        "take out what an older release of TensorFlow does not know (--for RELEASE)",
    ),
    PassEntry(
        "strip_unused_nodes", "removal.strip_unused_nodes", "StripUnusedNodes",
        "remove what nothing needs, and give shapes to inputs",
        (), ("strip_unused_nodes",),
    ),
    PassEntry(
        "remove_nodes", "removal.remove_nodes", "RemoveOps",
        "take out nodes of some ops, whatever they do; their readers take their input",
        (), ("remove_nodes",), exact=False,
    ),
    PassEntry(
        "insert_logging", "forms.insert_logging", "InsertLogging",
        "put a Print behind nodes of some ops or names",
        (), ("insert_logging",),
    ),
    PassEntry(
        "freeze_requantization_ranges", "quantization.freeze_requantization_ranges", "FreezeRequantizationRanges",
        "put logged ranges in the place of RequantizationRange",
        (), ("freeze_requantization_ranges",), exact=False,
    ),
    PassEntry(
        "backport_concatv2", "forms.backports", "BackportConcatV2",
        "replace ConcatV2 by Concat, for older runtimes",
        (), ("backport_concatv2",),
    ),
    PassEntry(
        "backport_tensor_array_v3", "forms.backports", "BackportTensorArrayV3",
        "replace the ops of TensorArrays by those of version 2",
        (), ("backport_tensor_array_v3",),
    ),
    PassEntry(
        "add_default_attributes", "forms.add_default_attributes", "AddDefaultAttributes",
        "write attributes that are left out, with the defaults of their ops",
        (), ("add_default_attributes",),
    ),
    PassEntry(
        "sort_by_execution_order", "forms.sort_by_execution_order", "SortByExecutionOrder",
        "write each node behind its inputs",
        (), ("sort_by_execution_order",),
    ),
    PassEntry(
        "strip_defaults", "removal.strip_defaults", "StripDefaults",
        "drop attributes that have the default of their op",
        ("size", "canonical"), ("remove_attribute",),
    ),
    PassEntry(
        "canonical", "forms.canonical", "Canonical",
        "normal order, names, attributes and tensors: the same model gives the same bytes",
        ("canonical",), ("sort_by_execution_order",),
    ),
)  # fmt: skip


def index(rows: Iterable[PassEntry]) -> dict[str, PassEntry]:
    """The rows by name.

    Raises:
        BugError: two have one name; a preset does not exist.
    """
    out: dict[str, PassEntry] = {}
    for row in rows:
        if out.setdefault(row.name, row) is not row:
            raise BugError("the table of optimizations", ValueError(f"two passes are named '{row.name}'"))
        for preset in row.presets:
            if preset not in PRESETS:
                raise BugError("the table of optimizations", ValueError(f"there is no preset '{preset}'"))
    return out


TABLE: Mapping[str, PassEntry] = index(_ROWS)


def entry(name: str) -> PassEntry:
    """The row of a pass.

    Raises:
        UsageError: there is none of that name; the nearest is named.
    """
    found = TABLE.get(name)
    if found is None:
        raise UsageError(
            f"there is no pass '{name}'" + did_you_mean(name, TABLE, then="all are named by: graphmill optimize --list")
        )
    return found


def preset(name: str) -> list[Optimization]:
    """The passes of a preset, with the parameters that they have there.

    Raises:
        UsageError: there is no such preset.
    """
    if name not in PRESETS:
        raise UsageError(
            f"there is no preset '{name}'" + did_you_mean(name, PRESETS, then=f"there are {', '.join(PRESETS)}")
        )
    return [row.load()(**row.options.get(name, {})) for row in TABLE.values() if name in row.presets]
