"""Policies where they decide: in the session, in each executor, on the command line."""

from __future__ import annotations

import os
import shlex
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from commands.main import run
from schemas.saved_model_pb2 import SavedModel
from schemas.variable_pb2 import VariableDef
from tests.policy.reaching import add, calling, constant
from toolkit.errors import AbortedError, GraphmillError, UnknownError
from toolkit.formats import bundle
from toolkit.formats.models import graphdef
from toolkit.formats.models.model import Encoding, Model, ModelKind, from_graph, read_model, write_model
from toolkit.graph import dtypes
from toolkit.graph.graph import Graph
from toolkit.graph.metagraph import MetaGraph
from toolkit.graph.node import Node
from toolkit.graph.shape import Shape
from toolkit.kernels import registry
from toolkit.policy import outside
from toolkit.policy.access import RefusedError
from toolkit.policy.rules import Policy
from toolkit.runtime.session import Session

EXECUTORS = ("compiled", "node by node", "tokens")


@pytest.fixture(params=EXECUTORS)
def open_session(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Session]:
    """Sessions of each executor."""
    monkeypatch.setenv("GRAPHMILL_SEGMENTS", "off" if request.param == "node by node" else "strict")

    def open_one(graph: Graph, policy: Policy) -> Session:
        return Session(graph, policy=policy, force_tokens=request.param == "tokens")

    return open_one


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory, with a model's folder and one beside it."""
    for name in ("model", "beside"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "text").write_bytes(name.encode())
    monkeypatch.chdir(tmp_path)
    return tmp_path


def reading() -> Graph:
    graph = Graph()
    add(graph, "ReadFile", outside.rows("ReadFile")[0], fed=True)
    return graph


def test_paths_that_are_known_only_when_the_kernel_runs(place: Path, open_session: Any) -> None:
    with open_session(reading(), Policy(read=(str(place / "model"),))) as session:
        assert session.run("reaching:0", {"path:0": b"model/text"}) == b"model"
        for path in ("beside/text", "model/../beside/text", str(place / "beside/text")):
            with pytest.raises(RefusedError, match="ReadFile may not read") as refused:
                session.run("reaching:0", {"path:0": path.encode()})
            assert refused.value.node == "reaching" and refused.value.exit_code == 3


def test_what_is_written(place: Path, open_session: Any) -> None:
    graph = Graph()
    name = graph.add("Placeholder", "path", attrs={"dtype": dtypes.string})
    text = constant(graph, "text", b"hello", dtypes.string)
    graph.add("WriteFile", "write", [name, text])
    with open_session(graph, Policy(write=(str(place / "model"),))) as session:
        session.run("write", {"path:0": b"model/new/file"})
        assert (place / "model/new/file").read_bytes() == b"hello"
        with pytest.raises(RefusedError, match="WriteFile may not write"):
            session.run("write", {"path:0": b"beside/text"})
    assert (place / "beside/text").read_bytes() == b"beside"


@pytest.mark.parametrize("where", ["graph", "function", "branch", "dataset"])
def test_compiling_runs_nothing(place: Path, where: str, open_session: Any) -> None:
    """A constant path and a constant text do not make WriteFile a constant."""
    inner = Graph()
    path = constant(inner, "path", b"written", dtypes.string)
    inner.add("WriteFile", "reaching", [path, path])
    graph, root = calling(inner, where)
    with open_session(graph, Policy.everything()) as session:
        session.compiled([root])
        assert not (place / "written").exists()
        if where in ("graph", "function"):
            session.run(root)
            assert (place / "written").exists()
        elif where == "branch":
            session.run(root)
            assert not (place / "written").exists()


def test_a_dataset_reads_what_it_may(place: Path, open_session: Any) -> None:
    graph = Graph()
    name = graph.add("Placeholder", "path", attrs={"dtype": dtypes.string})
    none, zero = constant(graph, "none", b"", dtypes.string), constant(graph, "zero", 0, dtypes.int64)
    lines = graph.add("TextLineDataset", "lines", [name, none, zero])
    kinds: dict[str, Any] = {"output_types": [dtypes.string], "output_shapes": [Shape([])]}
    graph.add("DatasetToSingleElement", "only", [lines], attrs=kinds)
    with open_session(graph, Policy(read=(str(place / "model"),))) as session:
        assert session.run("only:0", {"path:0": b"model/text"}) == b"model"
        with pytest.raises(RefusedError, match="TextLineDataset may not read"):
            session.run("only:0", {"path:0": b"beside/text"})


@pytest.mark.parametrize(
    "query",
    ["ATTACH DATABASE 'stolen.db' AS other", "VACUUM INTO 'stolen.db'", "PRAGMA journal_mode = WAL",
     "INSERT INTO t VALUES (2)", "CREATE TABLE u (a)", "SELECT load_extension('libc.so.6')"],
)  # fmt: skip
def test_a_query_only_reads(place: Path, query: str) -> None:
    with sqlite3.connect(place / "a.db") as made:
        made.execute("CREATE TABLE t (a)")
        made.execute("INSERT INTO t VALUES (1)")
    made.close()
    before = sorted(place.iterdir())
    graph = Graph()
    inputs = [constant(graph, f"c{i}", text, dtypes.string) for i, text in enumerate((b"sqlite", b"a.db"))]
    inputs.append(graph.add("Placeholder", "query", attrs={"dtype": dtypes.string}))
    kinds: dict[str, Any] = {"output_types": [dtypes.int32], "output_shapes": [Shape([])]}
    rows = graph.add("SqlDataset", "rows", inputs, attrs=kinds)
    graph.add("DatasetToSingleElement", "only", [rows], attrs=kinds)
    with Session(graph, policy=Policy.everything()) as session:
        assert session.run("only:0", {"query:0": b"SELECT a FROM t"}) == 1
        with pytest.raises(UnknownError, match="SQLite"):
            session.run("only:0", {"query:0": query.encode()})
    assert sorted(place.iterdir()) == before


@pytest.mark.parametrize("quiet", [False, True])
def test_abort_never_passes_for_success(quiet: bool, open_session: Any) -> None:
    graph = Graph()
    graph.add("Abort", "stop", attrs={"exit_without_error": quiet})
    with open_session(graph, Policy()) as session, pytest.raises(RefusedError, match="--allow exit"):
        session.run("stop")
    with open_session(graph, Policy(exit=True)) as session, pytest.raises(AbortedError):
        session.run("stop")


def test_printing_is_part_of_the_policy(open_session: Any, capfd: pytest.CaptureFixture[str]) -> None:
    graph = Graph()
    text = constant(graph, "text", b"hello", dtypes.string)
    graph.add("PrintV2", "say", [text], attrs={"output_stream": b"stdout"})
    with open_session(graph, Policy(output=False)) as session, pytest.raises(RefusedError, match="--allow output"):
        session.run("say")
    with open_session(graph, Policy()) as session:
        session.run("say")
    assert "hello" in capfd.readouterr().out


def test_only_a_model_from_a_file_is_confined_by_default(place: Path) -> None:
    write_model(from_graph(reading()), place / "model" / "a.pb")
    feed = {"path:0": b"beside/text"}
    with Session(read_model(place / "model" / "a.pb")) as session, pytest.raises(RefusedError):
        session.run("reaching:0", feed)
    with Session(reading()) as session:  # the program's own
        assert session.run("reaching:0", feed) == b"beside"


def test_a_kernel_outside_of_any_session_may_touch_nothing(place: Path) -> None:
    node = reading().node("reaching")
    compute = registry.get(node).factory(registry.KernelNode(node))
    with pytest.raises(RefusedError):
        compute(None, np.array(b"model/text", object))


# -- the command -----------------------------------------------------------------------------------------


def model(place: Path, op: str = "ReadFile", path: str = "beside/text") -> str:
    graph = Graph()
    node: Node = add(graph, op, outside.rows(op)[0], path=str(place / path))
    for source in node.inputs[1:]:
        source.node.op, source.node.name = "Const", "text"
    file = place / "model" / "a.pb"
    write_model(from_graph(graph), file)
    return str(file)


def said(capsys: pytest.CaptureFixture[str], code: int, *args: str) -> str:
    assert run(["run", *args]) == code
    captured = capsys.readouterr()
    assert "Traceback" not in captured.err
    return captured.out + captured.err


def test_run_refuses_and_says_what_allows(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = model(place)
    told = said(capsys, 2, file, "--fetch", "reaching")
    assert f"node 'reaching': ReadFile may not read '{place}/beside/text'; allow it with --allow read=" in told
    assert told.count("\n") == 1
    for args in (
        ["--allow", "read=beside"], ["--allow", "network,read=beside"], ["--trust"],
        ["--allow", f"read={place}/beside/text"],
    ):  # fmt: skip
        assert said(capsys, 0, file, "--fetch", "reaching", *args) == "reaching = b'beside'\n"
    assert "--trust and --allow do not go together" in said(capsys, 2, file, "--trust", "--allow", "network")
    assert "did you mean 'network'" in said(capsys, 2, file, "--fetch", "reaching", "--allow", "netwrok")
    own = model(place, path="model/text")
    assert said(capsys, 0, own, "--fetch", "reaching") == "reaching = b'model'\n"


def test_files_named_on_the_command_line(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_model(from_graph(reading()), place / "model" / "a.pb")
    assert said(capsys, 0, "model/a.pb", "--fetch", "reaching", "--feed", 'path="beside/text"').endswith("b'beside'\n")
    Path("f.json").write_text('"beside/text"')  # what is in a file is not named
    assert "may not read" in said(capsys, 3, "model/a.pb", "--fetch", "reaching", "--feed", "path=f.json")


def test_the_configuration_allows_but_not_the_models_own(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = model(place)
    (place / "graphmill.yaml").write_text("run: {allow: [read=beside]}")
    line = "graphmill.yaml allows this model: read=beside\n"
    assert said(capsys, 0, file, "--fetch", "reaching") == f"reaching = b'beside'\n{line}"
    # what is given for this run is not said again
    for given in (["--config", "graphmill.yaml"], ["--trust"], ["-q"]):
        assert said(capsys, 0, file, "--fetch", "reaching", *given) == "reaching = b'beside'\n"
    (place / "graphmill.yaml").write_text("run: {trust: [model]}")
    assert "may not read" in said(capsys, 2, file, "--fetch", "reaching")  # the file is named otherwise
    (place / "graphmill.yaml").write_text("run: {trust: [model/a.pb]}")
    assert "graphmill.yaml allows this model: everything" in said(capsys, 0, file, "--fetch", "reaching")
    wrong = {"run: {alow: []}": "mean 'allow'", "run: {allow: {a: b}}": "list of texts", "- a": "mapping"}
    for text, told in wrong.items():
        (place / "graphmill.yaml").write_text(text)
        assert told in said(capsys, 2, file, "--fetch", "reaching")
    (place / "graphmill.yaml").rename(place / "model" / "graphmill.yaml")
    (place / "model" / "graphmill.yaml").write_text(f"run: {{allow: ['read={place}/beside']}}")
    os.chdir(place / "model")
    assert "may not read" in said(capsys, 2, "a.pb", "--fetch", "reaching")
    assert said(capsys, 0, "a.pb", "--fetch", "reaching", "--config", "graphmill.yaml") == "reaching = b'beside'\n"


@pytest.mark.parametrize("extra", [["--explain"], ["--explain", "--trust"], ["--explain", "--init", "--trust"]])
def test_explain_runs_nothing(place: Path, extra: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    graph = Graph()
    path = constant(graph, "path", str(place / "model" / "written").encode(), dtypes.string)
    graph.add("WriteFile", "init", [path, path])
    said(capsys, 0 if "--trust" in extra else 2, _written(graph, place), "--target", "init", *extra)
    assert not (place / "model" / "written").exists()


def _written(graph: Graph, place: Path) -> str:
    file = place / "model" / "w.pb"
    write_model(from_graph(graph), file)
    return str(file)


# -- SavedModels -----------------------------------------------------------------------------------------


def saved(place: Path, asset: str = "vocabulary") -> Path:
    """A SavedModel whose init op reads an asset into a variable-free table of one node."""
    graph = reading()
    meta = MetaGraph(graph)
    folder = place / "saved"
    write_model(Model(ModelKind.SAVED_MODEL, Encoding.BINARY, "", [meta]), folder)
    message = SavedModel.FromString((folder / "saved_model.pb").read_bytes())
    message.meta_graphs[0].asset_file_def.add(filename=asset).tensor_info.name = "path:0"
    init = message.meta_graphs[0].signature_def["__saved_model_init_op"]
    init.outputs["__saved_model_init_op"].name = "reaching"
    (folder / "saved_model.pb").write_bytes(message.SerializeToString())
    (folder / "assets").mkdir()
    (folder / "assets" / "vocabulary").write_bytes(b"words")
    return folder


@pytest.mark.parametrize("asset", ["", ".", "..", "vocabulary/.", "words/..", "/"])
def test_assets_whose_names_no_file_can_have(place: Path, asset: str, capsys: pytest.CaptureFixture[str]) -> None:
    """`validate` and `run` say the same."""
    folder = str(saved(place, asset))
    told = said(capsys, 2, folder, "--fetch", "reaching", "--feed", 'path="saved/assets/vocabulary"')
    assert f"the asset '{asset}' has no name that a file can have" in told
    assert run(["validate", folder]) == 1
    assert f"error security/asset: node 'path': the asset '{asset}' has no name" in capsys.readouterr().out


@pytest.mark.parametrize("asset", ["../../beside/text", "{}/beside/text", "link", "folder/text"])
def test_assets_outside_of_the_model(place: Path, asset: str, capsys: pytest.CaptureFixture[str]) -> None:
    folder = saved(place, asset.format(place))
    (folder / "assets" / "link").symlink_to(place / "beside" / "text")
    (folder / "assets" / "folder").symlink_to(place / "beside")
    args = ["--fetch", "reaching", "--feed", 'path="saved/assets/vocabulary"']
    allow = f"read={place}/beside/text"
    assert said(capsys, 2, str(folder), *args).endswith(f"; allow it with --allow {allow}\n")
    for given in (["--allow", allow], ["--trust"]):
        assert said(capsys, 0, str(folder), *args, *given) == "reaching = b'words'\n"
    assert run(["validate", str(folder)]) == 1
    assert f"security/asset: this SavedModel may not read {folder}/assets/{asset}"


@pytest.mark.parametrize("linked", ["variables", "variables/variables.index"])
def test_variables_outside_of_the_model(place: Path, linked: str, capsys: pytest.CaptureFixture[str]) -> None:
    folder = saved(place)
    for where in (place / "beside", folder / "variables"):
        where.mkdir(exist_ok=True)
        (where / "variables.index").write_bytes(b"")
    (folder / "variables" / "variables.index").unlink()
    if linked == "variables":
        (folder / "variables").rmdir()
    (folder / linked).symlink_to(place / "beside" / linked.removeprefix("variables").lstrip("/"))
    args = ["--fetch", "reaching", "--feed", 'path="saved/assets/vocabulary"']
    assert f"allow it with --allow read={place}/beside/variables.index\n" in said(capsys, 2, str(folder), *args)


def test_a_configuration_that_may_have_come_with_the_model_is_named(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = model(place)
    Path("graphmill.yaml").write_text("validate: {rules: {security/file-read: off, numerics: off}}")
    for given, told in (([], True), (["--config", "graphmill.yaml"], False), (["-q"], False)):
        assert run(["validate", file, *given]) == 0
        line = "graphmill: validate: graphmill.yaml of this folder changes security/file-read\n"
        assert (line in capsys.readouterr().err) == told


def test_validate_and_run_agree(place: Path, capsys: pytest.CaptureFixture[str], monkeypatch: Any) -> None:
    """About every way to write a path, from every working directory."""
    (place / "model/link").symlink_to(place / "beside/text")
    (place / "model/within").symlink_to("text")
    paths = [
        "text",
        "model/text",
        "../model/text",
        f"{place}/model/text",
        "link",
        "model/link",
        "within",
        "beside/text",
        f"file://{place}/model/text",
        "model/../beside/text",
        f"file://{place}/beside/text",
    ]
    agreed: set[int] = set()
    for path in paths:
        graph = Graph()
        name = constant(graph, "path", path.encode(), dtypes.string)
        graph.add("ReadFile", "reaching", [name])
        write_model(from_graph(graph), place / "model/a.pb")
        for folder in (place, place / "model"):
            monkeypatch.chdir(folder)
            ran = run(["run", str(place / "model/a.pb"), "--fetch", "reaching"])
            judged = run(["validate", str(place / "model/a.pb")])
            told = capsys.readouterr()
            assert (judged == 1) == ("may not read" in told.err), (path, folder, told)
            assert ("security/own-files" in told.out) == (judged == 0)
            agreed.add(ran)
    assert agreed == {0, 2, 3}  # 3: it may be read, and is not there


def cached(place: Path, folder: Path) -> Path:
    """The same SavedModel as caches of models keep it: every file is a link to one that is named by its hash."""
    revision, blobs = place / "cache/snapshots/main", place / "cache/blobs"
    blobs.mkdir(parents=True)
    for number, path in enumerate(sorted(path for path in folder.rglob("*") if path.is_file())):
        target = revision / path.relative_to(folder)
        target.parent.mkdir(parents=True, exist_ok=True)
        path.rename(blobs / str(number))
        target.symlink_to(os.path.relpath(blobs / str(number), target.parent))
    return revision


def with_variable(place: Path) -> Path:
    """A SavedModel with a variable and an asset."""
    folder = saved(place)
    message = SavedModel.FromString((folder / "saved_model.pb").read_bytes())
    meta = message.meta_graphs[0]
    graph = Graph()
    graph.add("VarHandleOp", "v", attrs={"dtype": dtypes.float32, "shape": Shape([]), "shared_name": b"v"})
    graph.add("ReadVariableOp", "read", [graph.node("v")], attrs={"dtype": dtypes.float32})
    meta.graph_def.node.extend(graphdef.to_proto(graph).node)
    listed = VariableDef(variable_name="v:0", snapshot_name="read:0", initializer_name="v", is_resource=True)
    meta.collection_def["variables"].bytes_list.value.append(listed.SerializeToString())
    (folder / "saved_model.pb").write_bytes(message.SerializeToString())
    (folder / "variables").mkdir(exist_ok=True)
    bundle.save(str(folder / "variables/variables"), [("v", np.float32(3))], [dtypes.float32])
    return folder


def test_a_model_that_is_made_of_links(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    args = ["--fetch", "read", "--fetch", "reaching", "--feed", 'path="{}/assets/vocabulary"']
    whole = with_variable(place)
    expected = said(capsys, 0, str(whole), *args[:-1], args[-1].format(whole))
    revision = cached(place, whole)
    given = [*args[:-1], args[-1].format(revision)]
    for name in (revision, revision / "saved_model.pb"):  # in a cache of models its contents are its own
        assert said(capsys, 0, str(name), *given) == expected
    assert run(["validate", "--rule", "coverage=off", str(revision)]) == 0
    capsys.readouterr()
    assert run(["prune", str(revision), "--fetch", "reaching", "-o", "copy"]) == 0
    assert (place / "copy/assets/vocabulary").read_bytes() == b"words"
    assert not (place / "copy/assets/vocabulary").is_symlink()
    capsys.readouterr()
    # anywhere else it says once what has to be allowed, all of it
    (place / "cache").rename(place / "elsewhere")
    (place / "elsewhere/snapshots").rename(place / "elsewhere/links")
    moved = place / "elsewhere/links/main"
    given = [*args[:-1], args[-1].format(moved)]
    assert said(capsys, 0, str(moved), *given, "--trust") == expected
    told = said(capsys, 2, str(moved), *given)
    (option, wanted) = shlex.split(told.partition("; allow it with ")[2])
    assert {Path(item).parent.name for item in wanted.split(",")} == {"blobs"}
    assert wanted.count("read=") == 2  # of the variables; the asset is named on the command line
    assert said(capsys, 0, str(moved), *given, option, wanted) == expected
    assert run(["prune", str(moved), "--fetch", "reaching", "-o", "copy-2"]) == 2
    (option, wanted) = shlex.split(capsys.readouterr().err.partition("; allow it with ")[2])
    assert run(["prune", str(moved), "--fetch", "reaching", "-o", "copy-2", option, wanted]) == 0
    assert (place / "copy-2/assets/vocabulary").read_bytes() == b"words"


def test_copies_of_a_model_follow_no_links_out_of_it(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = saved(place)
    (folder / "assets" / "inside").symlink_to("vocabulary")
    assert run(["prune", str(folder), "--fetch", "reaching", "-o", "copy"]) == 0
    assert (place / "copy/assets/inside").read_bytes() == b"words"
    for link, target in (("assets/link", place / "beside/text"), ("variables", place / "beside")):
        (folder / link).symlink_to(target)
        capsys.readouterr()
        assert run(["prune", str(folder), "--fetch", "reaching", "-o", "stolen"]) == 2
        assert f"may not read '{folder}/{link}' ({target})" in capsys.readouterr().err
        (folder / link).unlink()
        assert not (place / "stolen").exists()


def test_a_state_file_does_not_say_what_is_read_or_deleted(place: Path) -> None:
    from toolkit.formats import bundle
    from toolkit.formats.bundle.locate import find_prefix
    from toolkit.runtime.saving.saver import Saver

    bundle.save(place / "beside" / "ckpt", {"v": np.zeros(2, np.float32)})
    bundle.write_state(place / "model", str(place / "beside" / "ckpt"))
    with pytest.raises(GraphmillError, match="outside of the folder"):
        find_prefix(place / "model")
    graph = Graph()
    graph.add("VariableV2", "v", attrs={"dtype": dtypes.float32, "shape": Shape([2])})
    saver = Saver(MetaGraph(graph), max_to_keep=1)
    saver.recover(str(place / "model"))
    with Session(graph) as session:
        saver.restore(session, str(place / "beside" / "ckpt"))
        for step in range(3):
            saver.save(session, str(place / "model" / "m"), step)
    assert (place / "beside" / "ckpt.index").exists()


def test_explain_goes_with_nothing_that_runs(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = model(place, path="model/text")
    for args in (["--out", "a.npz"], ["--save", "ckpt"], ["--profile"]):
        assert f"--explain and {args[0]} do not go together" in said(
            capsys, 2, file, "--fetch", "reaching", "--explain", *args
        )


def test_constants_that_are_no_texts(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A path whose constant is damaged is an unknown path."""
    graph = Graph()
    source = graph.add("Const", "path", attrs={"dtype": dtypes.string, "value": 3})
    graph.add("ReadFile", "reaching", [source])
    with Session(graph, policy=Policy()) as session, pytest.raises(GraphmillError):
        session.run("reaching:0")
