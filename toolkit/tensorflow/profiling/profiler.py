# TensorFlow's arguments may be anything, so what they are is for tests to say, not for types.
# pyright: basic
"""tf.profiler.profile and write_op_log; tf.contrib.tfprof, which they were before."""

from __future__ import annotations

from typing import Any

from schemas import tfprof_log_pb2
from toolkit.client.construction import context
from toolkit.tensorflow.families.platform.services import GFile
from toolkit.tensorflow.profiling import kinds, scopes
from toolkit.tensorflow.profiling.nodes import entries, profiled
from toolkit.tensorflow.profiling.option_builder import TRAINABLE, ProfileOptionBuilder
from toolkit.tensorflow.profiling.options import COLUMNS, Options, unknown_view

_VIEWS = {
    "scope": (
        scopes.profile,
        "scope: The nodes in the model graph are organized by their names, which is hierarchical like filesystem.",
    ),
    "op": (
        kinds.profile,
        (
            "op: The nodes are operation kernel type, such as MatMul, Conv2D. Graph nodes belonging to the same type "
            "are aggregated together."
        ),
    ),
}


def profile(graph: Any = None, run_meta: Any = None, op_log: Any = None, cmd: str = "scope", options: Any = 0) -> Any:
    """Report what a graph has of parameters and floating point operations.

    Args:
        run_meta: of a step that ran: shapes that the graph does not know are taken from there.
        op_log: types and floating point operations of nodes that a caller knows better.
        cmd: "scope", a tree of names, or "op".
        options: as `ProfileOptionBuilder` makes them; by default the parameters of trainable variables.

    Returns:
        A GraphNodeProto, or by op a MultiGraphNodeProto.
    """
    if cmd not in _VIEWS:
        raise unknown_view(cmd)
    chosen = Options.of(ProfileOptionBuilder.trainable_variables_parameter() if options in (0, None) else options)
    nodes = profiled(graph or context.get_default_graph(), op_log, run_meta)
    view, about = _VIEWS[cmd]
    found, lines = view(nodes, chosen)
    _report(chosen, cmd, about, lines)
    return found


def _report(options: Options, cmd: str, about: str, lines: list[str]) -> None:
    if options.output == "none":
        return
    heads = {key: head for key, (head, _) in COLUMNS.items()}
    if cmd == "op":
        heads["occurrence"] = "op occurrence (run|defined)"
    told = [COLUMNS[key][1] for key in sorted(options.select)]
    head = " | ".join(["node name", *(heads[key] for key in options.columns)])
    text = "\n".join(["", "Doc:", about, *told, "", "Profile:", head, *lines, ""])
    if options.output == "file":
        with GFile(options.file, "w") as file:
            file.write(text)
        return
    print("\n=========================Options=============================")
    print(*options.lines(), sep="\n")
    print("\n==================Model Analysis Report======================")
    print(text)
    print("======================End of Report==========================")


def write_op_log(graph: Any, log_dir: Any, op_log: Any = None, run_meta: Any = None, add_trace: bool = True) -> None:
    """Write what is to be known of nodes into `log_dir`/tfprof_log, an OpLogProto.

    Args:
        add_trace: no effect here: graphs do not keep the lines that made their nodes.
    """
    import os

    log = tfprof_log_pb2.OpLogProto()
    log.log_entries.extend(entries(graph or context.get_default_graph(), op_log, run_meta))
    log.id_to_string[0] = "none"
    with GFile(os.path.join(log_dir, "tfprof_log"), "wb") as file:
        file.write(log.SerializeToString())


def print_model_analysis(
    graph: Any, run_meta: Any = None, op_log: Any = None, tfprof_cmd: str = "scope", tfprof_options: Any = 0
) -> Any:
    """`profile`, as releases before 1.4 spelled it."""
    return profile(graph, run_meta, op_log, tfprof_cmd, tfprof_options)


def _before(**chosen: Any) -> dict[str, Any]:
    """Options as they were before there was a builder."""
    return {
        "max_depth": 10000, "min_bytes": 0, "min_micros": 0, "min_params": 0, "min_float_ops": 0, "order_by": "name",
        "account_type_regexes": [".*"], "start_name_regexes": [".*"], "trim_name_regexes": [],
        "show_name_regexes": [".*"], "hide_name_regexes": [], "account_displayed_op_only": True, "select": [],
        "output": "stdout", "dump_to_file": "",
    } | chosen  # fmt: skip


TRAINABLE_VARS_PARAMS_STAT_OPTIONS = _before(account_type_regexes=[TRAINABLE], select=["params"])
FLOAT_OPS_OPTIONS = _before(min_float_ops=1, order_by="float_ops", select=["float_ops"])
PRINT_ALL_TIMING_MEMORY = _before(min_bytes=1, min_micros=1, select=["micros", "bytes"])
