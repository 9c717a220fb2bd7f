"""The entries `cond` and `while` of `nodes`: branches and loops.

    - cond: is_training            # a boolean scalar
      name: choice
      then: {nodes: [...], output: NAME}
      else: {nodes: [...], output: NAME}

    - while: {i: 0, total: x}      # loop variables and their first values
      name: loop
      condition: {nodes: [...], output: NAME}
      body: {nodes: [...], outputs: {i: NAME, total: NAME}}

The bodies see the names around them and, in loops, the loop variables. One `output` has the entry's own name, and
`outputs` are `choice/KEY`; what a loop of one variable ends with has its name, else there is `loop/VARIABLE` for each.
"""

from __future__ import annotations

from typing import Any, cast

from toolkit.client import array_ops, control_flow
from toolkit.client.convert import convert_to_tensor
from toolkit.client.spec.builder import FAILED, FollowError, Names, SpecBuilder
from toolkit.client.spec.entries import NODES, build_nodes, entry, full_name, named, operand
from toolkit.client.spec.values import NAME, OPERAND, SHAPE
from toolkit.client.tensor import Tensor
from toolkit.formats.schema import Boolean, Integer, Key, MapOf, Record
from toolkit.formats.tree import Section, YamlItem

_OUTPUT = Key(NAME, "what it gives; by default its last entry")
_BRANCH = Record({
    "nodes": Key(NODES, "its entries"),
    "output": _OUTPUT,
    "outputs": Key(MapOf(NAME), "several results, each with a key"),
})  # fmt: skip


def _results(spec: SpecBuilder, section: Section) -> Tensor | dict[str, Tensor]:
    """The nodes of a branch, and what it gives: a tensor, or tensors by key."""
    if (nodes := section.get("nodes")) is not None:
        build_nodes(spec, nodes, "")
    outputs, output = section.get("outputs"), section.get("output")
    if outputs is not None:
        if output is not None:
            raise section.item.error("give either output or outputs, not both")
        return {key: spec.tensor(item) for key, item in outputs.section()}
    if output is not None:
        return spec.tensor(output)
    if spec.last is FAILED:
        raise FollowError("")
    if spec.last is None:
        raise section.item.error("it makes nothing: give nodes, output or outputs")
    assert isinstance(spec.last, Tensor)
    return spec.last


@entry(
    "cond",
    named(
        {
            "then": Key(_BRANCH, "what runs when it holds", required=True),
            "else": Key(_BRANCH, "what runs when not", required=True),
        },
        ("cond", Key(NAME, "a boolean scalar", required=True)),
    ),
    "one of two branches, as a boolean says",
)
def _cond(spec: SpecBuilder, item: YamlItem, section: Section, scope: str) -> None:
    name, full = full_name(section, "cond", scope)
    predicate = spec.tensor(section["cond"], scope)
    keys: dict[str, list[str] | None] = {}

    def branch(key: str) -> list[Tensor]:
        with spec.body(Names(spec.names, scope)):
            found = _results(spec, section[key].section())
        keys[key] = list(found) if isinstance(found, dict) else None
        tensors = [found[k] for k in sorted(found)] if isinstance(found, dict) else [found]
        if (len(keys) == 2 and (keys["then"] is None) != (keys["else"] is None)) or _differ(keys):
            raise item.error(
                f"both branches must give the same: then {_shown(keys['then'])}, else {_shown(keys['else'])}"
            )
        return tensors

    with spec.graph.name_scope(name) as inner:
        made: Any = control_flow.cond(predicate, lambda: branch("then"), lambda: branch("else"))
        tensors = cast("list[Tensor]", made if isinstance(made, list) else [made])
        if keys["then"] is None:
            spec.last = array_ops.identity(tensors[0], name=inner)
            spec.declare(full, spec.last, item)
            return
        for key, tensor in zip(sorted(keys["then"]), tensors, strict=True):
            spec.declare(f"{full}/{key}", array_ops.identity(tensor, name=key), item)
    spec.last = None


def _differ(keys: dict[str, list[str] | None]) -> bool:
    found = [sorted(each) for each in keys.values() if each is not None]
    return len(found) == 2 and found[0] != found[1]


def _shown(keys: list[str] | None) -> str:
    return "one output" if keys is None else f"outputs {', '.join(sorted(keys))}"


@entry(
    "while",
    named(
        {
            "condition": Key(_BRANCH, "whether it goes on: one boolean scalar", required=True),
            "body": Key(_BRANCH, "the next values of the loop variables", required=True),
            "shape_invariants": Key(MapOf(SHAPE), "looser shapes of variables that change theirs"),
            "maximum_iterations": Key(Integer(0), "it stops after that many at the latest"),
            "parallel_iterations": Key(Integer(1), "how many may run at the same time", default=10),
            "back_prop": Key(Boolean(), "whether gradients through it are wanted", default=True),
            "swap_memory": Key(Boolean(), "whether what gradients need may leave a GPU", default=False),
        },
        ("while", Key(MapOf(OPERAND), "loop variables and their first values", required=True)),
    ),
    "a loop",
)
def _while(spec: SpecBuilder, item: YamlItem, section: Section, scope: str) -> None:
    name, full = full_name(section, "while", scope)
    given = section["while"].section()
    variables = [key for key, _ in given]
    if not variables:
        raise section["while"].error("a loop needs at least one loop variable")
    first = [convert_to_tensor(operand(spec, value, scope)) for _, value in given]
    invariants: list[Any] | None = None
    if (found := section.get("shape_invariants")) is not None:
        sizes = found.section(variables)
        invariants = [
            sizes[key].sizes() if key in sizes else tensor.static_shape
            for key, tensor in zip(variables, first, strict=True)
        ]

    def in_body(key: str, values: tuple[Tensor, ...]) -> Tensor | dict[str, Tensor]:
        names = Names(spec.names, scope)
        names.found.update(zip(variables, values, strict=True))
        with spec.body(names):
            spec.last = values[0] if len(values) == 1 else None
            return _results(spec, section[key].section())

    def condition(*values: Tensor) -> Tensor:
        result = in_body("condition", values)
        if isinstance(result, dict):
            raise section["condition"].error("the condition is one boolean scalar: give output")
        return result

    def body(*values: Tensor) -> list[Tensor]:
        result = in_body("body", values)
        if not isinstance(result, dict):
            if len(variables) == 1:
                return [result]
            raise section["body"].error(f"give outputs, the next values of {', '.join(variables)}")
        if missing := [v for v in variables if v not in result]:
            raise section["body"].error(f"outputs lacks the next value of '{missing[0]}'")
        if extra := [k for k in result if k not in variables]:
            raise section["body"].error(f"'{extra[0]}' is no loop variable (they are {', '.join(variables)})")
        return [result[v] for v in variables]

    limit = section.get("maximum_iterations")
    with spec.graph.name_scope(name) as inner:
        made: Any = control_flow.while_loop(
            condition, body, first, invariants,
            parallel_iterations=section.integer("parallel_iterations", 10),
            back_prop=section.boolean("back_prop", True),
            swap_memory=section.boolean("swap_memory", False),
            maximum_iterations=None if limit is None else limit.integer(),
        )  # fmt: skip
        results = cast("list[Tensor]", [*made] if isinstance(made, list | tuple) else [made])
        if len(results) == 1:
            spec.last = array_ops.identity(results[0], name=inner)
            spec.declare(full, spec.last, item)
            return
        for key, tensor in zip(variables, results, strict=True):
            spec.declare(f"{full}/{key}", array_ops.identity(tensor, name=key), item)
    spec.last = None
