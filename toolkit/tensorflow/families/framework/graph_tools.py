# TensorFlow's arguments may be anything, so what they are is for tests to say, not for types.
# pyright: basic
"""tensorflow.python.tools as programs call them: graphs frozen with a checkpoint, stripped for inference, and what a
checkpoint holds printed."""

from __future__ import annotations

import os
import re
from typing import Any

from schemas import graph_pb2, meta_graph_pb2, saver_pb2
from toolkit.errors import NotFoundError

_SERVE = "serve"


def _split(names: Any) -> list[str]:
    """What stands between commas."""
    return [name for name in (names or "").replace(" ", "").split(",") if name]


def _read(message: Any, path: str, is_binary: bool) -> Any:
    """A message out of a file.

    Raises:
        NotFoundError: there is no such file.
        ValueError: it holds something else.
    """
    from google.protobuf import message as protobuf
    from google.protobuf import text_format

    if not os.path.exists(path):
        raise NotFoundError(f"{path}: there is no such file")
    with open(path, "rb") as file:
        content = file.read()
    try:
        if is_binary:
            message.ParseFromString(content)
        else:
            text_format.Parse(content.decode(), message)
    except (protobuf.DecodeError, text_format.ParseError, UnicodeDecodeError):
        form = "a binary" if is_binary else "the text of a"
        raise ValueError(
            f"{path}: expected {form} {type(message).__name__}; input_binary says which form it has"
        ) from None
    return message


def freeze_graph(
    input_graph: Any, input_saver: Any, input_binary: Any, input_checkpoint: Any, output_node_names: Any,
    restore_op_name: Any, filename_tensor_name: Any, output_graph: Any, clear_devices: Any, initializer_nodes: Any,
    variable_names_whitelist: Any = "", variable_names_blacklist: Any = "", input_meta_graph: Any = None,
    input_saved_model_dir: Any = None, saved_model_tags: str = _SERVE, checkpoint_version: Any = saver_pb2.SaverDef.V2,
) -> Any:  # fmt: skip
    """The GraphDef of a file with its variables made constants; written to `output_graph` where that is given."""
    graph_def = meta_graph = saver = None
    if input_saved_model_dir:
        from toolkit.tensorflow.families.framework.saved_model import meta_graph_of, read

        model = read(input_saved_model_dir)
        graph_def = meta_graph_of(model, _split(saved_model_tags), input_saved_model_dir).graph_def
    elif input_graph:
        graph_def = _read(graph_pb2.GraphDef(), input_graph, input_binary)
    if input_meta_graph:
        meta_graph = _read(meta_graph_pb2.MetaGraphDef(), input_meta_graph, input_binary)
    if input_saver:
        saver = _read(saver_pb2.SaverDef(), input_saver, input_binary)
    return freeze_graph_with_def_protos(
        graph_def, saver, input_checkpoint, output_node_names, restore_op_name, filename_tensor_name, output_graph,
        clear_devices, initializer_nodes, variable_names_whitelist, variable_names_blacklist, meta_graph,
        input_saved_model_dir, _split(saved_model_tags), checkpoint_version,
    )  # fmt: skip


def freeze_graph_with_def_protos(
    input_graph_def: Any, input_saver_def: Any, input_checkpoint: Any, output_node_names: Any, restore_op_name: Any,
    filename_tensor_name: Any, output_graph: Any, clear_devices: Any, initializer_nodes: Any,
    variable_names_whitelist: Any = "", variable_names_blacklist: Any = "", input_meta_graph_def: Any = None,
    input_saved_model_dir: Any = None, saved_model_tags: Any = None,
    checkpoint_version: Any = saver_pb2.SaverDef.V2,
) -> Any:  # fmt: skip
    """As `freeze_graph`, of messages.

    Raises:
        ValueError: the checkpoint is not there, no output is named, or the graph has no variable of the checkpoint.
    """
    from toolkit.tensorflow.families.framework import graph_util
    from toolkit.tensorflow.families.framework.session import Session
    from toolkit.tensorflow.families.train import saver

    if not input_saved_model_dir and not saver.checkpoint_exists(input_checkpoint):
        raise ValueError(f"{input_checkpoint}: there is no such checkpoint")
    outputs = _split(output_node_names)
    if not outputs:
        raise ValueError("output_node_names: name the nodes whose values are wanted, with commas between")
    source = input_graph_def if input_meta_graph_def is None else input_meta_graph_def.graph_def
    if clear_devices:
        for node in source.node:
            node.device = ""
    if input_graph_def is not None:
        from toolkit.tensorflow.families.framework.graph import import_graph_def

        import_graph_def(input_graph_def, name="")
    with Session() as session:
        if input_saver_def is not None:
            saver.Saver(saver_def=input_saver_def, write_version=checkpoint_version).restore(session, input_checkpoint)
        elif input_meta_graph_def is not None:
            restorer = saver.import_meta_graph(input_meta_graph_def, clear_devices=True)
            if restorer is None:
                raise ValueError("input_meta_graph_def: the graph has no variables to restore; perhaps it is frozen")
            restorer.restore(session, input_checkpoint)
        elif input_saved_model_dir:
            from toolkit.tensorflow.families.framework.saved_model import load

            load(session, list(saved_model_tags or ()), input_saved_model_dir)
        else:
            found = _variables(session.graph, input_checkpoint)
            saver.Saver(var_list=found, write_version=checkpoint_version).restore(session, input_checkpoint)
        if initializer_nodes and not input_saved_model_dir and input_saver_def is None:
            session.run(_split(initializer_nodes))
        frozen = graph_util.convert_variables_to_constants(
            session, source, outputs, variable_names_whitelist=_split(variable_names_whitelist) or None,
            variable_names_blacklist=_split(variable_names_blacklist) or None,
        )  # fmt: skip
    if output_graph:
        with open(output_graph, "wb") as file:
            file.write(frozen.SerializeToString())
    return frozen


def _variables(graph: Any, checkpoint: str) -> dict[str, Any]:
    """What a checkpoint holds of a graph, by name.

    Raises:
        ValueError: nothing.
    """
    from toolkit.tensorflow.families.train.saver import NewCheckpointReader

    names = {each.name for each in graph.get_operations()}
    held = NewCheckpointReader(checkpoint).get_variable_to_shape_map()
    found = {name: graph.get_tensor_by_name(name + ":0") for name in held if name in names}
    if not found:
        raise ValueError(f"{checkpoint}: the graph has none of its variables; perhaps it is frozen already")
    return found


def print_tensors_in_checkpoint_file(
    file_name: str, tensor_name: str, all_tensors: bool, all_tensor_names: bool = False,
    count_exclude_pattern: str = "",
) -> None:  # fmt: skip
    """Print a tensor, all tensors, or names, types and shapes; then the count of parameters in all."""
    from toolkit.errors import OpError
    from toolkit.tensorflow.families.train.saver import NewCheckpointReader

    try:
        reader = NewCheckpointReader(file_name)
        shapes = reader.get_variable_to_shape_map()
        if all_tensors or all_tensor_names:
            for name in sorted(shapes):
                print("tensor_name: ", name)
                if all_tensors:
                    print(reader.get_tensor(name))
        elif tensor_name:
            print("tensor_name: ", tensor_name)
            print(reader.get_tensor(tensor_name))
        else:
            print(reader.debug_string().decode())
        counted = 0
        for name, shape in shapes.items():
            if not count_exclude_pattern or not re.match(count_exclude_pattern, name):
                size = 1
                for length in shape:
                    size *= length
                counted += size
        print(f"# Total number of params: {counted}")
    except OpError as error:
        print(error)


def strip_unused(
    input_graph_def: Any, input_node_names: Any, output_node_names: Any, placeholder_type_enum: Any
) -> Any:
    """The nodes between inputs, which become placeholders of any shape, and outputs.

    Args:
        placeholder_type_enum: the number of the inputs' type, or a list with one for each.

    Raises:
        ValueError: an input is a tensor, "x:0"; nodes are expected.
        KeyError: the graph has no such node.
    """
    from toolkit.tensorflow.families.framework.graph_util import extract_sub_graph

    names = {node.name for node in input_graph_def.node}
    for name in input_node_names:
        if ":" in name:
            raise ValueError(f"input_node_names: '{name}' is a tensor; write the node's name, '{name.split(':')[0]}'")
        if name not in names:
            raise KeyError(f"the graph has no node '{name}' to be an input")
    kinds = placeholder_type_enum
    if not isinstance(kinds, list):
        kinds = [kinds] * len(input_node_names)
    kind_of = dict(zip(input_node_names, kinds, strict=True))
    cut = graph_pb2.GraphDef()
    for node in input_graph_def.node:
        if node.name not in kind_of:
            cut.node.add().CopyFrom(node)
            continue
        made = cut.node.add(op="Placeholder", name=node.name)
        made.attr["dtype"].type = kind_of[node.name]
        for name in ("_output_shapes", "shape"):
            if name in node.attr:
                made.attr[name].CopyFrom(node.attr[name])
    return extract_sub_graph(cut, output_node_names)
