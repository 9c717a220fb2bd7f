"""graphmill inspect: say what is in a file of any kind.

`--json` prints one object. Every report has

    file        the file as it was given
    kind        graphdef | metagraph | savedmodel | partitions | checkpoint | checkpoint state | events | tfrecord
    encoding    binary | text | json for the first three, else null
    bytes       size of the file, or of all files of a checkpoint or partition folder

Graphs (graphdef, metagraph, savedmodel) have `graphs`, a list of objects, one per MetaGraphDef; a SavedModel folder
also has `files`, path to bytes. Shapes are lists with null for unknown sizes, or null for an unknown rank.

    versions    {producer, min_consumer, bad_consumers: [int]}
    inputs      [{name, op, dtype, shape}]: the placeholders
    outputs     [{name, op, dtype}]: what nothing in the graph uses; a guess
    targets     [name]: nodes run for their effect; a guess
    nodes       count
    ops, function_ops       {op: count}, in the graph and in all its functions, most frequent first
    functions   [{name, nodes, inputs, outputs}]
    parameters  {total, trainable: int or null, in: variables | constants}
    variables   [{name, dtype, shape, trainable: bool or null}]
    constants   {nodes, elements, bytes}: Const nodes, those of functions included
    devices     {device: count of nodes}; nodes without a device are not counted
    frames      {loop frame: count of Enter nodes}

and in a MetaGraphDef or SavedModel also

    tags, tensorflow_version (or null), assets
    signatures  {key: {method, inputs: {name: {name, dtype, shape}}, outputs: the same}}
    collections {name: {kind: node_list | bytes_list | int64_list | float_list | any_list | null, items}}
    saver       null or {filename, save, restore, sharded, version: legacy | V1 | V2}

The other kinds:

    checkpoint        prefix, shards, parameters (floating-point numbers in it),
                      tensors: [{name, dtype, shape, bytes, slices}]
    checkpoint state  latest, checkpoints: [prefix]
    partitions        by, signatures: [key], partitions: [{name, file, bytes, nodes, sends, receives}]
    tfrecord          records, record_bytes: {total, smallest, largest}
    events            version, events: {kind: count}, steps: [first, last] or null,
                      wall_time: [first, last] in seconds since the epoch or null,
                      tags: {tag: {values, first_step, last_step}}
"""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from commands.options import Json, command_app, print_json

app = command_app()


@app.command()
def inspect(
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE",
            help="A graph, SavedModel, checkpoint, event or TFRecord file, partition folder; '-' is standard input.",
            show_default=False,
        ),
    ] = "-",
    as_json: Json = False,
) -> None:
    """Say what is in a graph, model or checkpoint file, whatever its name.

    graphmill inspect model.pb

    graphmill inspect saved_model/ --json | jq '.graphs[0].signatures'
    """
    from toolkit.formats import summary

    report = summary.inspect(file)
    if as_json:
        print_json(report)
        return
    from toolkit.formats import report as text

    sys.stdout.write(text.render(report))
