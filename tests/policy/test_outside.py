"""The table of ops that reach outside: complete, and heeded wherever one of them stands."""

from __future__ import annotations

import ast
import shlex
from pathlib import Path

import pytest

from commands.main import run
from schemas import function_pb2
from tests.policy.reaching import FOREIGN, PLACES, add, calling, function, judged
from toolkit.errors import GraphError, GraphmillError
from toolkit.formats.models.model import from_graph, write_model
from toolkit.graph import opdefs
from toolkit.graph.attrs import FuncRef
from toolkit.graph.graph import Graph
from toolkit.kernels import registry
from toolkit.kernels.registry import Kind
from toolkit.policy import outside
from toolkit.policy.access import Access, RefusedError
from toolkit.policy.check import check_graph
from toolkit.policy.outside import Reach, Row
from toolkit.policy.rules import Policy
from toolkit.runtime.session import Session

ROOT = Path(__file__).resolve().parent.parent.parent
EXECUTORS = ("compiled", "node by node", "tokens")
#: something is allowed of every class that is allowed by path, but not where the ops of these tests want it
ELSEWHERE = Policy(read=("/elsewhere",), write=("/elsewhere",), output=False)
NOTHING = Policy(output=False)


def session(graph: Graph, policy: Policy, executor: str, monkeypatch: pytest.MonkeyPatch) -> Session:
    monkeypatch.setenv("GRAPHMILL_SEGMENTS", "off" if executor == "node by node" else "strict")
    return Session(graph, policy=policy, force_tokens=executor == "tokens")


def advised(message: str) -> str:
    """What a message says to give --allow, as a shell hands it over."""
    (given,) = shlex.split(message.partition("; allow it with --allow ")[2])
    return given


def names(case: object) -> str:
    return case.reach.value if isinstance(case, Row) else str(case)


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize(("op", "row"), judged(), ids=names)
def test_denied_by_default(op: str, row: Row, place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    inner = Graph()
    add(inner, op, row)
    graph, root = calling(inner, place)
    has_path = row.attr or row.input is not None
    for executor in EXECUTORS:
        with (
            session(graph, ELSEWHERE if has_path else NOTHING, executor, monkeypatch) as running,
            pytest.raises(RefusedError) as refused,
        ):
            running.compiled([root])
        assert refused.value.exit_code == 2
        assert "reaching" in str(refused.value) and op in str(refused.value)
        if has_path and row.reach.on_paths:
            assert f"{FOREIGN}/x" in str(refused.value)
        given = advised(str(refused.value))
        assert any(each.reach.switch in given for each in outside.rows(op))
        if has_path:  # pasted, it is all that is needed
            check_graph(graph, Access(ELSEWHERE.allowing(given)), lambda op: "")


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("op", sorted({op for op, _ in judged()}))
def test_allowed_by_its_switches(op: str, place: str) -> None:
    for row in outside.rows(op):
        inner = Graph()
        add(inner, op, row)
        graph, _ = calling(inner, place)
        switches = {each.reach.switch + (f"={FOREIGN}" if each.reach.on_paths else "") for each in outside.rows(op)}
        check_graph(graph, Access(NOTHING.allowing(*switches)), lambda op: "")
        if not row.through:
            with pytest.raises(RefusedError):
                check_graph(graph, Access(NOTHING), lambda op: "")


def test_functions_that_are_handed_to_functions() -> None:
    """What a function calls may be an attribute that its caller gives it."""
    inner = Graph()
    add(inner, "ReadFile", outside.rows("ReadFile")[0])
    graph = Graph()
    graph.library.add(function("body", inner))
    outer = function_pb2.FunctionDef(signature={"name": "outer", "attr": [{"name": "F", "type": "func"}]})
    node = outer.node_def.add(name="call", op="PartitionedCall")
    node.attr["f"].placeholder = "F"
    graph.library.add(outer)
    handed = FuncRef("outer", {"F": FuncRef("body", {})})
    graph.add("StatefulPartitionedCall", "root", [], attrs={"Tin": [], "Tout": [], "f": handed})
    with pytest.raises(RefusedError, match="ReadFile may not read"):
        check_graph(graph, Access(ELSEWHERE), lambda op: "")


@pytest.mark.parametrize("depth", [1, 3])
def test_functions_that_are_handed_on_in_lists(depth: int) -> None:
    """The branches of a Case are a list of functions, which a caller may give it, itself called through others."""
    inner = Graph()
    add(inner, "ReadFile", outside.rows("ReadFile")[0])
    graph = Graph()
    graph.library.add(function("body", inner))
    outer = function_pb2.FunctionDef(signature={"name": "outer", "attr": [{"name": "B", "type": "list(func)"}]})
    outer.node_def.add(name="case", op="Case").attr["branches"].placeholder = "B"
    graph.library.add(outer)
    handed = FuncRef("outer", {"B": [FuncRef("body", {})]})
    for _ in range(depth):
        handed = FuncRef("outer", {"B": [FuncRef("nowhere", {}), handed]})
    graph.add("StatefulPartitionedCall", "root", [], attrs={"Tin": [], "Tout": [], "f": handed})
    with pytest.raises(RefusedError, match="ReadFile may not read"):
        check_graph(graph, Access(ELSEWHERE), lambda op: "")


def test_an_op_asks_once_for_all_that_it_needs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for op, *expected in (
        ("CacheDataset", f"write={FOREIGN}/x*"),  # the names of its files begin so
        ("MergeV2Checkpoints", f"write={FOREIGN}/x*", "write=DIR"),
        ("SaveV2", f"write={FOREIGN}/x*"),
    ):
        graph = Graph()
        add(graph, op, next(row for row in outside.rows(op) if row.reach is Reach.WRITE))
        with pytest.raises(RefusedError) as refused:
            check_graph(graph, Access(NOTHING), lambda op: "")
        given = advised(str(refused.value))
        assert set(given.split(",")) == set(expected)
        check_graph(graph, Access(NOTHING.allowing(given)), lambda op: "")
        write_model(from_graph(graph), tmp_path / "a.pb")
        run(["validate", "--format", "json", str(tmp_path / "a.pb")])
        assert capsys.readouterr().out.count('"security/') == 1


@pytest.mark.parametrize("place", PLACES)
def test_ops_without_a_kernel_are_refused_as_well(place: str) -> None:
    have = {op for op, _ in judged()}
    for op, rows in outside.table():
        if op in have or rows[0].through:
            continue
        inner = Graph()
        add(inner, op, rows[0])
        graph, _ = calling(inner, place)
        with pytest.raises(RefusedError, match=rf"'reaching'.*no option would make it run: .*no CPU kernel for {op}"):
            check_graph(graph, Access(ELSEWHERE if rows[0].attr else NOTHING), registry.lacking)


def test_what_is_trusted_is_not_looked_at() -> None:
    for op, row in judged():
        inner = Graph()
        add(inner, op, row)
        check_graph(inner, Access(Policy.everything()), lambda op: "")


def test_the_table_is_of_known_ops() -> None:
    for op, rows in outside.table():
        definition = opdefs.get(op)
        for row in rows:
            assert row.input is None or row.input < len(definition.inputs), op
            assert not row.attr or row.attr in definition.attrs, op


def test_no_op_of_the_table_has_a_kernel_that_may_be_folded() -> None:
    for kernel in registry.all_kernels():
        assert not (outside.has_effects(kernel.op) and kernel.kind is Kind.PURE), kernel.op
    with pytest.raises(GraphError, match="reaches outside"):
        registry.kernel("ReadFile", priority=99)(lambda op: lambda name: name)


#: what reaches outside in Python
_CALLS = frozenset({
    "open", "read_bytes", "write_bytes", "read_text", "write_text", "listdir", "scandir", "glob", "iglob", "rglob",
    "iterdir", "walk", "remove", "unlink", "rename", "replace_file", "rmdir", "rmtree", "mkdir", "makedirs", "symlink",
    "urlopen", "create_connection", "socket", "Popen", "system", "fork", "kill", "_exit", "abort", "exec", "eval",
    "touch", "copyfile", "copytree", "get_data",
})  # fmt: skip
#: (module of toolkit/kernels, call): what it is
_KNOWN = {
    ("cpu/images/files.py", "open"): "a picture in memory",
    ("cpu/native/updates.py", "eval"): "a formula that the compiler writes from its own operations",
    ("cpu/onednn/library.py", "read_bytes"): "the list of installed libraries",
    ("cpu/onednn/library.py", "read_text"): "the libraries of this process",
    ("cpu/openblas.py", "read_text"): "the libraries of this process",
    ("cuda/device.py", "open"): "a GPU, by its number",
    ("cuda/driver/fake.py", "open"): "a GPU, by its number",
    ("default/transfers.py", "abort"): "a transfer, whose step ends",
    ("gpu/nn/cross_entropy.py", "walk"): "the numbers of a row",
    ("gpu/nn/softmax.py", "walk"): "the numbers of a row",
    ("index.py", "get_data"): "a table that is part of the package",
}


def test_kernels_reach_files_through_the_door_only() -> None:
    found: set[tuple[str, str]] = set()
    kernels = ROOT / "toolkit" / "kernels"
    for path in sorted(kernels.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call):
                called = node.func
                name = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
                owner = ast.unparse(called.value) if isinstance(called, ast.Attribute) else ""
                given = ast.unparse(node.args[0]) if node.args else ""
                if name in ("remove", "eval", "exec") and owner not in ("", "os"):
                    continue  # of lists, tables, expressions
                if name in _CALLS and owner != "files" and given != "files":
                    found.add((path.relative_to(kernels).as_posix(), name))
            elif isinstance(node, ast.Import | ast.ImportFrom):
                modules = [node.module or ""] if isinstance(node, ast.ImportFrom) else [a.name for a in node.names]
                assert not {m.split(".")[0] for m in modules} & {"socket", "subprocess", "fsspec", "glob", "shutil"}, (
                    path
                )
    assert found == set(_KNOWN)


def test_a_refusal_is_one_line(tmp_path: Path) -> None:
    access = Access(Policy())
    for reach in Reach:
        with pytest.raises(GraphmillError) as refused:
            if reach is Reach.OUTPUT:
                Access(NOTHING).require([reach], "n", "Print")
            access.require([reach], "n", "Op")
        assert "\n" not in str(refused.value) and str(refused.value).startswith("node 'n': ")


def test_an_op_that_is_not_in_the_table_may_not_open_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the op suite asserts of every kernel that it runs."""
    from tests.kernels import audit

    (tmp_path / "a").write_bytes(b"")
    with pytest.raises(AssertionError, match="is not in toolkit"), audit.of("Neg"):
        (tmp_path / "a").read_bytes()
    with audit.of("ReadFile"):
        (tmp_path / "a").read_bytes()


def test_the_topic_lists_the_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["help", "trust"]) == 0
    text = capsys.readouterr().out
    classes = dict.fromkeys(row.reach for _, rows in outside.table() for row in rows)
    sections = text.split("The ops that reach outside")[1]
    for reach in classes:
        switch = f"{reach.switch}=DIR" if reach.on_paths else reach.switch
        listed = sections.split(f"  {switch}: {outside.MEANING[reach]}\n")[1]
        end = next((at for at in range(len(listed)) if listed[at : at + 3] == "\n  " and listed[at + 3] != " "), None)
        named = {word.removesuffix("(*)") for word in listed[:end].replace("\n", " ").replace(",", " ").split()}
        assert named == {op for op, rows in outside.table() if any(row.reach is reach for row in rows)}
