"""The entries `cond`, `while`, `map` and `scan` of `nodes`: branches and loops.

    - cond: is_training            # a boolean scalar
      name: choice
      then: {nodes: [...], output: NAME}
      else: {nodes: [...], output: NAME}

    - while: {i: 0, total: x}      # loop variables and their first values
      name: loop
      condition: {nodes: [...], output: NAME}
      body: {nodes: [...], outputs: {i: NAME, total: NAME}}

    - map: {row: x}                # for each row of x (and of others, with the same number of rows)
      name: each
      body: {nodes: [...], output: NAME}

    - scan: {row: x}               # with what came before: all partial results
      name: sums
      initial: {total: 0.0}
      body: {nodes: [...], outputs: {total: NAME}}

The bodies see the names around them and, in loops, the loop variables. One `output` has the entry's own name, and
`outputs` are `choice/KEY`; what a loop of one variable ends with has its name, else there is `loop/VARIABLE` for each;
so it is of maps and scans.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from toolkit.client.arrays import array_ops
from toolkit.client.construction.convert import convert_to_tensor
from toolkit.client.construction.tensor import Tensor
from toolkit.client.flow import control_flow, functional_ops
from toolkit.client.spec.builder import FAILED, FollowError, Names, SpecBuilder
from toolkit.client.spec.entries import NODES, build_nodes, entry, full_name, named, operand
from toolkit.client.spec.values import NAME, OPERAND, SHAPE
from toolkit.formats.schema.choices import OneOf
from toolkit.formats.schema.containers import Key, MapOf, Record
from toolkit.formats.schema.scalars import Boolean, DTypeName, Integer
from toolkit.formats.settings.tree import Section, YamlItem, dtype_of
from toolkit.graph.dtypes import DType

_OUTPUT = Key(NAME, "what it gives; by default its last entry")
#: what a branch, the body of a loop or a function may say
BRANCH = Record({
    "nodes": Key(NODES, "its entries"),
    "output": _OUTPUT,
    "outputs": Key(MapOf(NAME), "several results, each with a key"),
})  # fmt: skip


_GOES_OVER: dict[str, Key] = {
    "parallel_iterations": Key(Integer(1), "how many may run at the same time", default=10),
    "back_prop": Key(Boolean(), "whether gradients through it are wanted", default=True),
    "swap_memory": Key(Boolean(), "whether what gradients need may leave a GPU", default=False),
}


def _options(section: Section) -> dict[str, Any]:
    return {
        "parallel_iterations": section.integer("parallel_iterations", 10),
        "back_prop": section.boolean("back_prop", True),
        "swap_memory": section.boolean("swap_memory", False),
    }


def declare_results(spec: SpecBuilder, item: YamlItem, full: str, inner: str, made: dict[str, Tensor] | Tensor) -> None:
    """Give results their names: the entry's own, or that with a key."""
    if isinstance(made, dict):
        for key, tensor in made.items():
            spec.declare(f"{full}/{key}", array_ops.identity(tensor, name=key), item)
        spec.last = None
        return
    spec.last = array_ops.identity(made, name=inner)
    spec.declare(full, spec.last, item)


def results(spec: SpecBuilder, section: Section) -> Tensor | dict[str, Tensor]:
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
            "then": Key(BRANCH, "what runs when it holds", required=True),
            "else": Key(BRANCH, "what runs when not", required=True),
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
            found = results(spec, section[key].section())
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
        found = keys["then"]
        declare_results(
            spec, item, full, inner, tensors[0] if found is None else dict(zip(sorted(found), tensors, strict=True))
        )


def _differ(keys: dict[str, list[str] | None]) -> bool:
    found = [sorted(each) for each in keys.values() if each is not None]
    return len(found) == 2 and found[0] != found[1]


def _shown(keys: list[str] | None) -> str:
    return "one output" if keys is None else f"outputs {', '.join(sorted(keys))}"


@entry(
    "while",
    named(
        {
            "condition": Key(BRANCH, "whether it goes on: one boolean scalar", required=True),
            "body": Key(BRANCH, "the next values of the loop variables", required=True),
            "shape_invariants": Key(MapOf(SHAPE), "looser shapes of variables that change theirs"),
            "maximum_iterations": Key(Integer(0), "it stops after that many at the latest"),
            **_GOES_OVER,
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
        with spec.body(_with_values(spec, scope, dict(zip(variables, values, strict=True)))):
            spec.last = values[0] if len(values) == 1 else None
            return results(spec, section[key].section())

    def condition(*values: Tensor) -> Tensor:
        result = in_body("condition", values)
        if isinstance(result, dict):
            raise section["condition"].error("the condition is one boolean scalar: give output")
        return result

    def body(*values: Tensor) -> list[Tensor]:
        return list(_next_values(in_body("body", values), section["body"], variables).values())

    limit = section.get("maximum_iterations")
    with spec.graph.name_scope(name) as inner:
        made: Any = control_flow.while_loop(
            condition, body, first, invariants,
            **_options(section),
            maximum_iterations=None if limit is None else limit.integer(),
        )  # fmt: skip
        last = cast("list[Tensor]", [*made] if isinstance(made, list | tuple) else [made])
        named_results = dict(zip(variables, last, strict=True))
        declare_results(spec, item, full, inner, named_results if len(last) > 1 else last[0])


def _rows(spec: SpecBuilder, found: YamlItem, scope: str) -> dict[str, Tensor]:
    rows = {key: convert_to_tensor(operand(spec, value, scope)) for key, value in found.section()}
    if not rows:
        raise found.error("name at least one tensor to go over: {row: NAME}")
    for key, value in found.section():
        if rows[key].static_shape.rank == 0:
            raise value.error("it is one number; expected a tensor with rows")
    return rows


@entry(
    "map",
    named(
        {
            "body": Key(BRANCH, "what becomes of a row", required=True),
            "dtype": Key(OneOf(DTypeName(), MapOf(DTypeName())), "of the results; by default that of the first rows"),
            **_GOES_OVER,
        },
        ("map", Key(MapOf(OPERAND), "names for the rows of tensors", required=True)),
    ),
    "the same of every row",
)
def _map(spec: SpecBuilder, item: YamlItem, section: Section, scope: str) -> None:
    name, full = full_name(section, "map", scope)
    rows = _rows(spec, section["map"], scope)
    body = section["body"].section()
    types = _types(section.get("dtype"), body.get("outputs"), next(iter(rows.values())).dtype.base)

    def of_row(values: dict[str, Tensor]) -> Tensor | dict[str, Tensor]:
        with spec.body(_with_values(spec, scope, values)):
            spec.last = next(iter(values.values())) if len(values) == 1 else None
            return results(spec, body)

    with spec.graph.name_scope(name) as inner:
        made: Any = functional_ops.map_fn(of_row, rows, dtype=types, **_options(section))
        declare_results(spec, item, full, inner, made)


def _types(found: YamlItem | None, outputs: YamlItem | None, default: DType) -> DType | dict[str, DType]:
    """The types of what a body gives, in its structure."""
    keys = None if outputs is None else [key for key, _ in outputs.section()]
    if found is None or isinstance(found.value, str):
        one = default if found is None else dtype_of(found)
        return one if keys is None else dict.fromkeys(keys, one)
    types = {key: dtype_of(value) for key, value in found.section()}
    if keys is None or set(types) != set(keys):
        raise found.error("say the type of each of the body's outputs")
    return types


@entry(
    "scan",
    named(
        {
            "initial": Key(MapOf(OPERAND), "what is carried from row to row, and its first values", required=True),
            "body": Key(BRANCH, "its next values", required=True),
            "reverse": Key(Boolean(), "from the last row to the first", default=False),
            **_GOES_OVER,
        },
        ("scan", Key(MapOf(OPERAND), "names for the rows of tensors", required=True)),
    ),
    "all partial results over the rows",
)
def _scan(spec: SpecBuilder, item: YamlItem, section: Section, scope: str) -> None:
    name, full = full_name(section, "scan", scope)
    rows = _rows(spec, section["scan"], scope)
    carried = {k: convert_to_tensor(operand(spec, v, scope)) for k, v in section["initial"].section()}
    if not carried:
        raise section["initial"].error("name at least one value to carry: {total: 0.0}")
    if twice := sorted(carried.keys() & rows.keys()):
        raise section["initial"].error(f"'{twice[0]}' names rows already")
    body = section["body"].section()

    def step(before: dict[str, Tensor], values: dict[str, Tensor]) -> dict[str, Tensor]:
        with spec.body(_with_values(spec, scope, values | before)):
            return _next_values(results(spec, body), section["body"], list(carried))

    with spec.graph.name_scope(name) as inner:
        reverse = section.boolean("reverse", False)
        made: Any = functional_ops.scan(step, rows, carried, reverse=reverse, **_options(section))
        declare_results(spec, item, full, inner, made if len(carried) > 1 else next(iter(made.values())))


def _with_values(spec: SpecBuilder, scope: str, values: Mapping[str, Tensor]) -> Names:
    names = Names(spec.names, scope)
    names.found.update(values)
    return names


def _next_values(result: Tensor | dict[str, Tensor], body: YamlItem, variables: list[str]) -> dict[str, Tensor]:
    """What a body gives for each of the variables that go round.

    Raises:
        SpecError: one is missing, or there is another.
    """
    if not isinstance(result, dict):
        if len(variables) == 1:
            return {variables[0]: result}
        raise body.error(f"give outputs, the next values of {', '.join(variables)}")
    if missing := [v for v in variables if v not in result]:
        raise body.error(f"outputs lacks the next value of '{missing[0]}'")
    if extra := [k for k in result if k not in variables]:
        raise body.error(f"'{extra[0]}' is no loop variable (they are {', '.join(variables)})")
    return {v: result[v] for v in variables}
