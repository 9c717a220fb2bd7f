"""graphmill inspect: say what is in a file of any kind.

`--json` prints one object. Every report has

    file        the file as it was given
    kind        graphdef | metagraph | savedmodel | partitions | checkpoint | checkpoint state | events | tfrecord
    encoding    binary | text | json for the first three, else null
    bytes       size of the file, or of all files of a checkpoint or partition folder

Graphs (graphdef, metagraph, savedmodel) have `graphs`, a list of objects, one per MetaGraphDef; a SavedModel folder
also has `files`, path to bytes, and `missing`, paths of what loading it would read in vain. Shapes are lists with null
for unknown sizes, or null for an unknown rank.

    written_by  the release of TensorFlow that writes GraphDefs of this version, "2.4" or "between 2.4 and 2.5", or null
    needs       {tensorflow: the oldest release that loads it, reasons: [what asks for that release],
                custom_ops: [ops that no release has]}
    versions    {producer, min_consumer, bad_consumers: [int]}
    inputs      [{name, op, dtype, shape}]: the placeholders
    outputs     [{name, op, dtype}]: what nothing in the graph uses; a guess
    targets     [name]: nodes run for their effect; a guess
    nodes       count
    ops, function_ops       {op: count}, in the graph and in all its functions, most frequent first
    functions   [{name, nodes, inputs, outputs}]
    parameters  {total, trainable: int or null, in: variables | constants, unused: int or null}: `unused` are those of
                variables that no function of a SavedModel reads (Keras stores a copy of all); not in `total`
    variables   [{name, dtype, shape, trainable: bool or null, used: bool or null}]
    costs       {flops, peak_bytes, unknown, signatures: {key: {flops, peak_bytes, parameters, weight_bytes, unknown}}}
                for a batch of 1, of the costliest signature or of all nodes; `unknown` lists what could not be counted
                (recursion, say): with any, the numbers are "at least". null for graphs that are broken, and for
                those of over 200,000 nodes that have to be looked at node by node: MetaGraphDefs and SavedModels,
                text and JSON, names that are not ASCII, calls without an end
    broken      what keeps the graph from being loaded (an input that leads nowhere, a name twice, a cycle), or null;
                of such large ones the same are not looked at, and `validate` finds more
    constants   {nodes, elements, bytes}: Const nodes, those of functions included
    devices     {device: count of nodes}; nodes without a device are not counted
    frames      {loop frame: count of Enter nodes}

and in a MetaGraphDef or SavedModel also

    tags, tensorflow_version (or null), assets
    signatures  {key: {method, inputs: {name: {name, dtype, shape}}, outputs: the same}}
    collections {name: {kind: node_list | bytes_list | int64_list | float_list | any_list | null, items}}
    saver       null or {filename, save, restore, sharded, version: legacy | V1 | V2}

The other kinds:

    checkpoint        prefix, shards, missing (data files that are not there), parameters (floating-point numbers
                      in it), tensors: [{name, dtype, shape, bytes, slices}]
    checkpoint state  latest, checkpoints: [prefix]
    partitions        by, signatures: [key], partitions: [{name, file, bytes, nodes, sends, receives}], files: path to
                      bytes of what lies beside them (variables/, assets/)
    tfrecord          compression: GZIP, ZLIB or null, records, record_bytes: {total, smallest, largest},
                      features: {name: {type: bytes | float | int64, records, least, most: values}} of the first
                      1,000 records, or null if they are no examples
    events            version, events: {kind: count}, steps: [first, last] or null,
                      wall_time: [first, last] in seconds since the epoch or null,
                      tags: {tag: {values, first_step, last_step}}

The options below look into a graph (of a SavedModel: the one tagged serve, or --tags) and print instead

    --nodes, --where  [{name, op, function (or null), device, inputs, control_inputs, outputs: [{dtype, shape}],
                      fan_in, fan_out, attrs: {name: text}}]
    --path A B        [{name, op, output: index that leads on or null, control: bool}], or null; exit code 1 when
                      no path leads from A to B
    --tree            {name, nodes, flops, parameters, bytes, children: [the same]}; of all, also unknown
    --costs           {signature: the one measured or null, batch, total: {nodes, flops, parameters, bytes},
                      peak_bytes, weight_bytes, unknown, signatures: {key: {flops, peak_bytes, parameters, weight_bytes,
                      unknown}}, by_op: {op: as total}, largest_constants: [{name, function, bytes}]}

`flops` and the like are estimates from static shapes (see toolkit/passes/measuring/operations.py and measure.py).
"""

from __future__ import annotations

import sys
from typing import Annotated, Any

import typer

from commands import messages, models
from commands.options import Json, command_app, print_json

app = command_app()
NO_PATH_EXIT = 1


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
    nodes: Annotated[bool, typer.Option("--nodes", help="List the nodes, those of functions included.")] = False,
    where: Annotated[
        str | None, typer.Option(metavar="QUERY", help="List the nodes that a query means (see below).")
    ] = None,
    path: Annotated[
        tuple[str, str] | None, typer.Option(metavar="A B", help="Show the shortest path from node A to node B.")
    ] = None,
    tree: Annotated[bool, typer.Option("--tree", help="Show the scopes with their sizes and costs.")] = False,
    depth: Annotated[int, typer.Option(min=0, help="How deep the tree goes.")] = 3,
    costs: Annotated[
        bool, typer.Option("--costs", help="Operations, parameters, bytes by op, and peak memory.")
    ] = False,
    content: Annotated[
        bool,
        typer.Option("--hash", help="Print a hash of what the model computes; order and inner names do not matter."),
    ] = False,
    batch: Annotated[int, typer.Option(min=1, help="What an unknown first size counts as in costs.")] = 1,
    signature: Annotated[
        str | None,
        typer.Option(
            metavar="KEY", help="With --tree and --costs: what this signature needs (a SavedModel: its default)."
        ),
    ] = None,
    tags: Annotated[
        str | None, typer.Option(metavar="TAG,...", help="Which graph of a SavedModel to look into.")
    ] = None,
) -> None:
    """Say what is in a graph, model or checkpoint file, whatever its name.

    graphmill inspect model.pb

    graphmill inspect saved_model/ --json | jq '.graphs[0].signatures'

    graphmill inspect model.pb --where 'op = Conv2D and attr.padding = SAME and under net/block1'

    Queries join tests with and, or, not and parentheses: FIELD = VALUE (also != ~ !~ < <= > >= and in (A, B)),
    under SCOPE, before NODE, after NODE, has attr.NAME. Fields are op, name, scope, device, dtype, inputs, fan-in,
    fan-out, function and attr.NAME; ~ matches shell patterns (see: graphmill help queries).
    """
    if signature is not None and not (tree or costs):
        from toolkit.errors import UsageError

        raise UsageError("--signature is without effect here: add --tree or --costs")
    if tags is not None and not (content or nodes or where is not None or path is not None or tree or costs):
        from toolkit.errors import UsageError

        raise UsageError("--tags is without effect here, where all graphs are shown: add --nodes, --tree or --costs")
    if content:
        _print_hash(file, tags, as_json)
        return
    if nodes or where is not None or path is not None or tree or costs:
        _look_into(file, as_json, where, path, tree, costs, depth, batch, signature, tags)
        return
    from toolkit.formats.inspection import summary

    report = summary.inspect(file, _add_costs)
    if as_json:
        print_json(report)
        return
    from toolkit.formats.inspection import report as text

    sys.stdout.write(text.render(report))


def _print_hash(file: str, tags: str | None, as_json: bool) -> None:
    from toolkit.formats.models.model import read_model
    from toolkit.passes.optimize.forms.canonical import content_hash

    with models.about(file):
        told = content_hash(read_model(file, tags=models.tag_set(tags)).meta)
    if as_json:
        print_json({"hash": told})
    else:
        messages.show(told)


def _add_costs(message: Any, report: dict[str, Any]) -> None:
    from toolkit.passes.measuring.explore import add_costs

    add_costs(message, report)


def _look_into(
    file: str,
    as_json: bool,
    where: str | None,
    path: tuple[str, str] | None,
    tree: bool,
    costs: bool,
    depth: int,
    batch: int,
    signature: str | None,
    tags: str | None,
) -> None:
    from contextlib import nullcontext

    from toolkit.errors import GraphError, UsageError, about_option
    from toolkit.formats.models.model import read_model
    from toolkit.passes.measuring import explore, explore_text

    views = [name for name, on in (("--path", path), ("--tree", tree), ("--costs", costs)) if on]
    if len(views) > 1:
        raise UsageError(f"{views[0]} and {views[1]} are two views; ask for one at a time")
    model = read_model(file, tags=models.tag_set(tags))
    try:
        if path is not None:
            with about_option("--path"):
                found = explore.find_path(model, *path)
            if as_json:
                print_json(found)
            elif found is not None:
                sys.stdout.write(explore_text.path(found))
            if found is None:
                messages.tell(f"no path leads from '{path[0]}' to '{path[1]}'")
                raise typer.Exit(NO_PATH_EXIT)
            return
        if tree:
            with about_option("--signature") if signature is not None else nullcontext():
                report = explore.tree(model, batch, signature)
            text = explore_text.tree(report, depth)
        elif costs:
            with about_option("--signature") if signature is not None else nullcontext():
                report = explore.costs(model, batch, signature)
            text = explore_text.costs(report)
        else:
            with about_option("--where") if where is not None else nullcontext():
                report = explore.find_nodes(model, where)
            text = explore_text.nodes(report)
            for hint in explore.missing_ops(model, where) if where and not report else ():
                messages.say("inspect", hint)
    except GraphError as error:
        raise error.at(file=file) from None
    if as_json:
        print_json(report)
    else:
        sys.stdout.write(text)
