"""The Graph Transform Tool's transforms, by name, with what does the same here.

TensorFlow withdrew the tool in 2.0; its lists of transforms live on in scripts. `--passes` takes most of them as they
are: transforms that have a pass of their name or another, with their parameters. For the others the table has the
command that does it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from toolkit.errors import UsageError

#: a parameter that every transform took; here every pass of `--passes` takes it
IGNORE_ERRORS = "ignore_errors"


@dataclass(frozen=True, slots=True)
class Transform:
    """One transform.

    Attributes:
        parameters: those it had.
        pass_: the pass that does the same, or "".
        renamed: parameters that have another name in the pass.
        without_effect: parameters that mean nothing here.
        command: the command that does it, where it is no pass.
        note: what is different.
    """

    parameters: tuple[str, ...] = ()
    pass_: str = ""
    renamed: Mapping[str, str] = field(default_factory=dict[str, str])
    without_effect: tuple[str, ...] = ()
    command: str = ""
    note: str = ""


_STRIP = ("type", "shape", "name", "type_for_name", "shape_for_name")

TRANSFORMS: Mapping[str, Transform] = {
    "add_default_attributes": Transform(pass_="add_default_attributes"),
    "backport_concatv2": Transform(pass_="backport_concatv2"),
    "backport_tensor_array_v3": Transform(pass_="backport_tensor_array_v3"),
    "flatten_atrous_conv": Transform(
        pass_="flatten_atrous_conv", note="Conv2D gets dilations; upsample=true fills up its filter as the tool did"
    ),
    "fold_batch_norms": Transform(pass_="fold_batch_norms", note="one pass for all forms, sums included"),
    "fold_constants": Transform(
        ("clear_output_shapes",),
        "fold_constants",
        without_effect=("clear_output_shapes",),
        note="shapes written in a file are held against what is inferred, so clear_output_shapes has no effect",
    ),
    "fold_old_batch_norms": Transform(pass_="fold_batch_norms"),
    "freeze_requantization_ranges": Transform(
        ("min_max_log_file", "min_percentile", "max_percentile"), "freeze_requantization_ranges"
    ),
    "fuse_pad_and_conv": Transform(
        pass_="fuse_pad_and_conv", note="one image only, unless any_batch=true: TensorFlow's kernel is wrong for more"
    ),
    "fuse_resize_and_conv": Transform(pass_="fuse_resize_and_conv", note="as fuse_pad_and_conv"),
    "fuse_resize_pad_and_conv": Transform(pass_="fuse_resize_pad_and_conv", note="as fuse_pad_and_conv"),
    "inline_partitionedcall": Transform(pass_="inline_functions", note="all calls, gradients and state respected"),
    "insert_logging": Transform(
        ("op", "prefix", "show_op", "show_name", "message", "first_n", "summarize"), "insert_logging"
    ),
    "merge_duplicate_nodes": Transform(pass_="common_subexpressions"),
    "obfuscate_names": Transform(pass_="obfuscate_names"),
    "quantize_nodes": Transform(
        ("input_min", "input_max", "fallback_min", "fallback_max", "ignore_op"),
        "quantize_nodes",
        note="AddV2 and ConcatV2 too; constants are stored in 8 bits at once",
    ),
    "quantize_weights": Transform(("minimum_size",), "quantize_weights", note="the same bytes"),
    "remove_attribute": Transform(
        ("attribute_name", "op_name"), command="graphmill edit IN --remove-attr [NODES:]ATTRIBUTE -o OUT"
    ),
    "remove_control_dependencies": Transform(
        command="graphmill edit IN --remove-control '*' -o OUT",
        note="the pass remove_control_edges removes those that mean nothing",
    ),
    "remove_device": Transform(command="graphmill edit IN --clear-devices -o OUT"),
    "remove_nodes": Transform(("op", "max_inputs"), "remove_nodes"),
    "rename_attribute": Transform(
        ("old_attribute_name", "new_attribute_name", "op_name"),
        command="graphmill edit IN --rename-attr [NODES:]OLD=NEW -o OUT",
    ),
    "rename_node": Transform(
        ("old_node_name", "new_node_name"),
        command="graphmill edit IN --rename OLD=NEW -o OUT",
        note="signatures, collections and savers follow",
    ),
    "rename_op": Transform(("old_op_name", "new_op_name"), command="graphmill edit IN --rename-op OLD=NEW -o OUT"),
    "round_weights": Transform(("num_steps",), "round_weights", note="the largest number goes into the last step"),
    "set_device": Transform(
        ("device", "if_default"), command="graphmill edit IN --set-device DEVICE -o OUT", note="or: graphmill place"
    ),
    "sort_by_execution_order": Transform(pass_="sort_by_execution_order"),
    "sparsify_gather": Transform(
        ("input_checkpoint", "group_init_node"),
        "sparsify_gather",
        note="GatherV2 and resource variables too; collections name what fills the tables",
    ),
    "strip_unused_nodes": Transform(
        _STRIP, "strip_unused_nodes", renamed={"name": "of"}, note="--feed and --fetch say what is used"
    ),
}


def as_pass(name: str, given: list[tuple[str, str]]) -> tuple[str, list[tuple[str, str]]]:
    """The pass that a transform is here, and its parameters as that has them; other names as they are.

    Raises:
        UsageError: another command does what the transform did, or nothing here does.
    """
    row = TRANSFORMS.get(name)
    if row is None:
        return name, given
    if not row.pass_:
        instead = f"use: {row.command}" if row.command else row.note
        raise UsageError(f"'{name}', a transform of the Graph Transform Tool, is no pass here; {instead}")
    return row.pass_, [(row.renamed.get(key, key), value) for key, value in given if key not in row.without_effect]


def lines() -> list[str]:
    """The table as text: transform with its parameters, what does it here, remarks."""
    out: list[str] = []
    for name, row in TRANSFORMS.items():
        given = f"({', '.join(row.parameters)})" if row.parameters else ""
        out.append(f"{name}{given}")
        if row.pass_:
            out.append(f"    --passes {row.pass_}")
        elif row.command:
            out.append(f"    {row.command}")
        if row.note:
            out.append(f"    {row.note}")
    return out
