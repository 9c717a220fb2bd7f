"""graphmill validate: formats, exit codes, configuration, baselines, many files, time."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import jsonschema
import jsonschema.validators
import junitparser
import pytest
import yaml

from commands.main import run
from schemas import graph_pb2
from tests.passes import validate_graphs as graphs
from toolkit.graph import dtypes
from toolkit.graph.attrs import encode

ROOT = Path(__file__).resolve().parent.parent.parent


@pytest.fixture(autouse=True)
def in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def broken(path: str = "bad.pb") -> str:
    """An error (dangling input) and a note (a denormal)."""
    g = graphs.net()
    graphs.node(g, "prob").input[0] = "nowhere"
    graphs.const(g, "tiny", [1e-40], [1])
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_bytes(g.SerializeToString())
    return path


def good(path: str = "good.pb") -> str:
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_bytes(graphs.net().SerializeToString())
    return path


def output(capsys: pytest.CaptureFixture[str], *args: str, code: int = 0) -> str:
    assert run(["validate", *args]) == code, capsys.readouterr()
    return capsys.readouterr().out


def rules(capsys: pytest.CaptureFixture[str], *args: str, code: int = 0) -> list[str]:
    return [finding["rule"] for finding in json.loads(output(capsys, *args, "--format", "json", code=code))]


def fails(capsys: pytest.CaptureFixture[str], *args: str) -> str:
    assert run(["validate", *args]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    return captured.err


# -- formats ---------------------------------------------------------------------------------------------


def test_text(capsys: pytest.CaptureFixture[str]) -> None:
    text = output(capsys, broken(), good(), code=1)
    fixes = ["connect it, or prune the node away", "set them to zero; some CPUs are slow on them"]
    dangling = "it has the input 'nowhere', which does not exist"
    assert text.splitlines() == [
        f"bad.pb: error structure/dangling-input: node 'prob': {dangling} [fix: {fixes[0]}]",
        f"bad.pb: note numerics/denormal: node 'tiny': 1 of 1 values are denormal [fix: {fixes[1]}]",
        "1 error, 1 note in 2 files",
    ]
    assert output(capsys, "good.pb") == "no findings in 1 file\n"


def test_text_is_cut_where_one_rule_repeats(capsys: pytest.CaptureFixture[str]) -> None:
    g = graphs.net()
    for number in range(50):
        graphs.add(g, "Relu", f"r{number}", ["nowhere"], T=graphs.F)
    Path("a.pb").write_bytes(g.SerializeToString())
    text = output(capsys, "a.pb", code=1)
    assert text.count("dangling-input: node") == 20
    assert "a.pb: ... 30 more of structure/dangling-input" in text
    assert len(rules(capsys, "a.pb", code=1)) == 50


def test_json(capsys: pytest.CaptureFixture[str]) -> None:
    found = json.loads(output(capsys, broken(), "--format", "json", code=1))
    assert [set(finding) for finding in found] == [
        {"rule", "severity", "file", "node", "function", "graph", "message", "fix", "fingerprint"}
    ] * 2
    assert found[0] | {"message": "", "fix": "", "fingerprint": ""} == {
        "rule": "structure/dangling-input", "severity": "error", "file": "bad.pb", "node": "prob", "function": None,
        "graph": None, "message": "", "fix": "", "fingerprint": "",
    }  # fmt: skip
    assert output(capsys, good(), "--format", "json") == "[]\n"


SCHEMAS = Path(__file__).parent / "schemas"
URI_REFERENCE = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*:)?[A-Za-z0-9\-._~:/?#\[\]@!$&'()*+,;=%]*\Z")


def against_schema(value: Any, name: str) -> None:
    """Check a document against a published JSON schema, the formats of its texts included."""
    schema = json.loads((SCHEMAS / name).read_text())
    validator = jsonschema.validators.validator_for(schema)
    validator.check_schema(schema)
    errors = list(validator(schema, format_checker=validator.FORMAT_CHECKER).iter_errors(value))
    assert not errors, [f"{'/'.join(map(str, error.path))}: {error.message}" for error in errors]


def check_sarif(log: Any) -> None:
    """The OASIS schema, and what it cannot say: references that must meet, names that must be URIs."""
    against_schema(log, "sarif-schema-2.1.0.json")
    assert log["$schema"].endswith("sarif-schema-2.1.0.json")
    for one in log["runs"]:
        rules = [rule["id"] for rule in one["tool"]["driver"]["rules"]]
        assert len(rules) == len(set(rules))
        locations = [artifact["location"] for artifact in one["artifacts"]]
        for result in one["results"]:
            assert rules[result["ruleIndex"]] == result["ruleId"]
            locations += [place["physicalLocation"]["artifactLocation"] for place in result["locations"]]
        for location in locations:
            assert URI_REFERENCE.match(location["uri"])


def test_the_schema_refuses_what_is_no_sarif(capsys: pytest.CaptureFixture[str]) -> None:
    log = json.loads(output(capsys, broken(), "--format", "sarif", code=1))
    for change in (
        lambda log: log.update(version="2.0.0"),
        lambda log: log["runs"][0].pop("tool"),
        lambda log: log["runs"][0]["results"][0].update(level="fatal"),
        lambda log: log["runs"][0]["results"][0].update(severity="error"),
    ):
        bad = json.loads(json.dumps(log))
        change(bad)
        with pytest.raises(AssertionError):
            against_schema(bad, "sarif-schema-2.1.0.json")


def test_sarif(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    names = [broken("a folder/b#d.pb"), good(), str(tmp_path / broken("näher.pb"))]
    log = json.loads(output(capsys, *names, "--format", "sarif", code=1))
    check_sarif(log)
    results = log["runs"][0]["results"]
    assert results[0]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "a%20folder/b%23d.pb"
    assert results[0]["locations"][0]["logicalLocations"][0]["name"] == "prob"
    assert len(log["runs"][0]["artifacts"]) == 3
    log = json.loads(output(capsys, good(), "--format", "sarif"))
    check_sarif(log)
    assert log["runs"][0]["results"] == []


def test_sarif_of_function_bodies(capsys: pytest.CaptureFixture[str]) -> None:
    g = graphs.calls()
    graphs.node(g.library.function[2], "neg").op = "Negg"
    Path("a.pb").write_bytes(g.SerializeToString())
    log = json.loads(output(capsys, "a.pb", "--format", "sarif", code=1))
    check_sarif(log)
    logical = log["runs"][0]["results"][0]["locations"][0]["logicalLocations"]
    assert logical == [{"name": "neg", "fullyQualifiedName": "negative::neg", "kind": "member"}]


def test_junit(capsys: pytest.CaptureFixture[str]) -> None:
    root = ET.fromstring(output(capsys, broken(), good(), "--format", "junit", code=1))
    assert (root.tag, root.get("tests"), root.get("failures")) == ("testsuites", "3", "1")
    suites = {suite.get("name"): suite for suite in root}
    assert [len(suites[name]) for name in ("bad.pb", "good.pb")] == [2, 1]
    (failure,) = root.iter("failure")
    assert "nowhere" in (failure.get("message") or "")
    root = ET.fromstring(output(capsys, "bad.pb", "--format", "junit", "--fail-on", "note", code=1))
    assert root.get("failures") == "2"


def test_junit_as_others_read_it(capsys: pytest.CaptureFixture[str]) -> None:
    text = output(capsys, broken(), good(), "--format", "junit", "--fail-on", "note", code=1)
    suites = junitparser.JUnitXml.fromstring(text.encode())
    assert (suites.tests, suites.failures, suites.errors) == (3, 2, 0)
    found = {
        suite.name: [(case.name, [type(result).__name__ for result in case.result]) for case in suite]
        for suite in suites
    }
    assert found == {
        "bad.pb": [
            ("structure/dangling-input node 'prob'", ["Failure"]),
            ("numerics/denormal node 'tiny'", ["Failure"]),
        ],
        "good.pb": [("no findings", [])],
    }
    for suite in suites:
        assert (suite.tests, suite.failures) == (len(list(suite)), sum(bool(case.result) for case in suite))


def test_names_that_no_format_has_a_place_for(capsys: pytest.CaptureFixture[str]) -> None:
    g = graphs.net()
    graphs.node(g, "prob").name = "\x01<&>\"'\n%,:\x7f"
    Path("a.pb").write_bytes(g.SerializeToString())
    for format in ("text", "json", "sarif", "junit", "github"):
        text = output(capsys, "a.pb", "--format", format, code=1)
        if format == "junit":
            ET.fromstring(text)
        if format == "github":
            assert text.count("\n") == 1 and "%0A%25" in text


def read_workflow_command(line: str) -> tuple[str, dict[str, str], str]:
    """A line as the Actions runner reads it (actions/runner, ActionCommand): command, properties, message."""
    match = re.fullmatch(r"::([^ :]+)(?: ((?:[^:]|:(?!:))*))?::(.*)", line)
    assert match is not None, line

    def plain(text: str, *codes: tuple[str, str]) -> str:
        for code, sign in (("%0D", "\r"), ("%0A", "\n"), *codes, ("%25", "%")):
            text = text.replace(code, sign)
        return text

    properties = dict(part.split("=", 1) for part in (match[2] or "").split(",") if part)
    extra = (("%3A", ":"), ("%2C", ","))
    return match[1], {key: plain(value, *extra) for key, value in properties.items()}, plain(match[3])


@pytest.mark.parametrize("name", ["a,b.pb", "a:b::c.pb", "100%.pb", "%0A.pb", "plain.pb"])
def test_github_as_the_runner_reads_it(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    g = graphs.net()
    graphs.node(g, "prob").name = "a%0Ab::c,\r\nd"
    Path(name).write_bytes(g.SerializeToString())
    expected = json.loads(output(capsys, name, "--format", "json", code=1))
    lines = output(capsys, name, "--format", "github", code=1).splitlines()
    assert len(lines) == len(expected) > 0
    for line, finding in zip(lines, expected, strict=True):
        command, properties, message = read_workflow_command(line)
        assert command == {"error": "error", "warning": "warning", "note": "notice"}[finding["severity"]]
        assert properties == {"file": name, "title": finding["rule"]}
        assert message == f"node '{finding['node']}': {finding['message']} (fix: {finding['fix']})"


def test_github(capsys: pytest.CaptureFixture[str]) -> None:
    lines = output(capsys, broken("a,b.pb"), "--format", "github", code=1).splitlines()
    assert lines[0].startswith("::error file=a%2Cb.pb,title=structure/dangling-input::node 'prob': it has the input")
    assert lines[1].startswith("::notice file=a%2Cb.pb,title=numerics/denormal::")


# -- exit codes and usage --------------------------------------------------------------------------------


def test_fail_on(capsys: pytest.CaptureFixture[str]) -> None:
    g = graphs.net()
    graphs.const(g, "nan", [float("nan")], [1])
    Path("a.pb").write_bytes(g.SerializeToString())
    output(capsys, "a.pb")
    output(capsys, "a.pb", "--fail-on", "warning", code=1)
    output(capsys, "a.pb", "--fail-on", "note", code=1)


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["gone.pb"], "gone.pb: there is no such file"),
        (["good.pb", "--format", "xml"], "there is no format 'xml'; known: text, json, sarif"),
        (["good.pb", "--fail-on", "warn"], "'warn' is not a severity; did you mean 'warning'"),
        (["good.pb", "--runs-on", "TPU"], "--runs-on must be CPU or GPU; it is 'TPU'"),
        (["good.pb", "--max-params", "many"], "--max-params must be a number such as 30000000"),
        (["good.pb", "--rule", "structure/cicle=off"], "there is no rule 'structure/cicle'; did you mean"),
        (["good.pb", "--rule", "structure/cycle"], "--rule takes RULE=SEVERITY"),
        (["good.pb", "--rule", "size=bad"], "'bad' is not a severity"),
        (["good.pb", "--baseline", "gone.json"], "gone.json"),
        (["good.pb", "--baseline", "good.pb"], "not a baseline of findings"),
        (["good.pb", "--config", "gone.yaml"], "gone.yaml"),
        (["good.pb", "--compatible-with", "gone.pb"], "gone.pb"),
        (
            ["good.pb", "--compatible-with", "graphmill.txt"],
            "--compatible-with: graphmill.txt: not a GraphDef, MetaGraphDef or SavedModel",
        ),
    ],
)
def test_bad_usage(args: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    good()
    Path("graphmill.txt").write_text("hello")
    assert message in fails(capsys, *args)


# -- many files ------------------------------------------------------------------------------------------


def test_a_saved_model_that_lost_its_variables(capsys: pytest.CaptureFixture[str]) -> None:
    saved = Path("saved")
    saved.mkdir()
    (saved / "saved_model.pb").write_bytes(graphs.saved().SerializeToString())
    said = output(capsys, "saved", code=1)
    assert "checkpoint/unreadable: the graph restores variables, but 'variables/variables.index' is missing" in said


def test_folders(capsys: pytest.CaptureFixture[str]) -> None:
    broken("models/a/bad.pb")
    good("models/b/good.pb")
    Path("models/readme.md").write_text("# Models\n")
    Path("models/empty.pb").write_bytes(b"")
    Path("models/.hidden").mkdir()
    broken("models/.hidden/bad.pb")
    saved = Path("models/saved")
    (saved / "variables").mkdir(parents=True)
    (saved / "saved_model.pb").write_bytes(graphs.saved().SerializeToString())
    graphs.write_checkpoint(saved / "variables" / "variables")
    found = json.loads(output(capsys, "models", "--format", "json", code=1))
    assert {(f["file"], f["rule"]) for f in found} == {
        ("models/a/bad.pb", "structure/dangling-input"),
        ("models/a/bad.pb", "numerics/denormal"),
        ("models/empty.pb", "file/unreadable"),
    }
    assert "in 4 files" in output(capsys, "models", code=1)


def test_a_pipe() -> None:
    data = Path(broken()).read_bytes()
    command = [sys.executable, "-m", "commands.main", "validate", "-"]
    result = subprocess.run(command, input=data, capture_output=True, check=False, cwd=ROOT)
    assert result.returncode == 1
    assert result.stderr == b""
    assert result.stdout.startswith(b"standard input: error structure/dangling-input: node 'prob': ")


# -- configuration and baselines -------------------------------------------------------------------------


def configure(**section: Any) -> None:
    Path("graphmill.yaml").write_text(yaml.safe_dump({"validate": section}))


def test_rules_of_a_configuration(capsys: pytest.CaptureFixture[str]) -> None:
    broken("a/bad.pb")
    broken("b/bad.pb")
    configure(rules={"structure/*": "warning", "numerics": False}, **{"fail-on": "warning"})
    assert rules(capsys, "a", code=1) == ["structure/dangling-input"]
    configure(rules={"structure/dangling-input": {"severity": "off", "paths": ["a/*"]}})
    assert rules(capsys, "a", "b", code=1) == ["numerics/denormal", "structure/dangling-input", "numerics/denormal"]
    configure(exclude=["b/*"], rules={"numerics": "off"})
    assert rules(capsys, ".", code=1) == ["structure/dangling-input"]
    configure(rules={"numerics": "off", "numerics/denormal": "on"})
    assert rules(capsys, "a", code=1) == ["structure/dangling-input", "numerics/denormal"]
    # the command line comes last
    assert rules(capsys, "a", "--rule", "structure=off", "--rule", "numerics=error", code=1) == ["numerics/denormal"]


def test_defaults_of_a_configuration(capsys: pytest.CaptureFixture[str]) -> None:
    configure(budgets={"nodes": 5, "params": "1M"}, **{"runs-on": "cuda"})
    found = rules(capsys, good(), code=1)
    assert "budgets/nodes" in found and "budgets/params" not in found
    assert "budgets/nodes" not in rules(
        capsys, good(), "--max-nodes", "11", code=1 if "coverage/no-kernel" in found else 0
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("validate: [", "not valid YAML"),
        ("- a", "the file must be a mapping"),
        ("validate: {rule: {}}", "'validate' has no key 'rule'; did you mean 'rules'"),
        ("validate: {rules: {sise: off}}", "there is no rule 'sise'; did you mean 'size'"),
        ("validate: {rules: {size: {level: off}}}", "rule 'size' has 'severity' and 'paths', not 'level'"),
        ("validate: {budgets: {weights: 3}}", "there is no budget 'weights'"),
        ("validate: {budgets: {params: -3}}", "must be a number"),
        ("validate: {exclude: 3}", "'exclude' must be a list of texts"),
        ("validate: {fail-on: [error]}", "'fail-on' must be text"),
    ],
)
def test_bad_configurations(text: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("graphmill.yaml").write_text(text)
    error = fails(capsys, good())
    assert message in error
    assert "graphmill.yaml" in error


def test_a_baseline(capsys: pytest.CaptureFixture[str]) -> None:
    broken()
    assert run(["validate", "bad.pb", "--write-baseline", "accepted.json"]) == 0
    assert "2 findings accepted" in capsys.readouterr().err
    assert output(capsys, "bad.pb", "--baseline", "accepted.json") == (
        "no findings in 1 file, 2 accepted by the baseline\n"
    )
    configure(baseline="accepted.json")
    assert rules(capsys, "bad.pb") == []
    g = graph_pb2.GraphDef.FromString(Path("bad.pb").read_bytes())
    graphs.add(g, "Relu", "more", ["gone"], T=graphs.F)
    Path("bad.pb").write_bytes(g.SerializeToString())
    assert rules(capsys, "bad.pb", code=1) == ["structure/dangling-input"]


def test_a_configuration_that_came_with_the_model(capsys: pytest.CaptureFixture[str]) -> None:
    """It does not switch off the model's own judgement; everything else it may say."""

    tensor = 'dtype: DT_STRING tensor_shape {} string_val: "/etc/passwd"'
    for path in ("own.pb", "below/other.pb"):
        Path(path).parent.mkdir(exist_ok=True)
        Path(path).write_text(
            'node { name: "path" op: "Const" attr { key: "dtype" value { type: DT_STRING } } '
            f'attr {{ key: "value" value {{ tensor {{ {tensor} }} }} }} }} '
            'node { name: "stolen" op: "ReadFile" input: "path" }'
        )
    security = ["security/file-read"]

    def found(*args: str) -> list[str]:
        code = run(["validate", *args, "--format", "json"])
        seen = [finding["rule"] for finding in json.loads(capsys.readouterr().out)]
        assert code == (1 if seen else 0)
        return seen

    assert found("own.pb") == found("below/other.pb") == security
    configure(rules={"security": "off"})
    assert found("own.pb") == security and found("below/other.pb") == []
    assert found("own.pb", "--config", "graphmill.yaml") == []
    assert found("own.pb", "--rule", "security=off") == []
    configure(exclude=["*.pb"])
    assert found(".") == security and found(".", "--config", "graphmill.yaml") == []
    assert run(["validate", "own.pb", "below/other.pb", "--write-baseline", "accepted.json"]) == 0
    configure(baseline="accepted.json")
    capsys.readouterr()
    assert found("own.pb") == security and found("below/other.pb") == []
    assert found("own.pb", "--baseline", "accepted.json") == []
    capsys.readouterr()
    assert run(["validate", "own.pb"]) == 1
    told = capsys.readouterr().err
    assert "graphmill.yaml may have come with own.pb" in told and "--config graphmill.yaml heeds it" in told
    configure(rules={"numerics": "off"})
    assert run(["validate", "own.pb"]) == 1 and not capsys.readouterr().err


# -- rules that the corpus has no room for ---------------------------------------------------------------


def test_near_the_limit(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    from toolkit.passes.validate.rules import size

    monkeypatch.setattr(size, "_NEAR", 10_000)
    assert rules(capsys, good()) == ["size/near-limit"]


def test_types_without_a_kernel(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    from toolkit.kernels import registry

    entry = registry.candidates("Relu", "CPU")[0]
    narrow = registry.Kernel("Relu", "CPU", {"T": frozenset({dtypes.float64})}, 0, entry.kind, entry.factory, "test")
    monkeypatch.setitem(registry._kernels, ("Relu", "CPU"), [narrow])
    assert rules(capsys, good(), "--runs-on", "CPU", code=1) == ["coverage/no-kernel-for-types"]


def test_native_code(capsys: pytest.CaptureFixture[str]) -> None:
    g = graphs.net()
    node = graphs.add(g, "TPUExecute", "native", ["flat/shape"])
    for key, value in {"Targs": [], "Tresults": []}.items():
        encode(value, node.attr[key])
    Path("a.pb").write_bytes(g.SerializeToString())
    assert "security/native-code" in rules(capsys, "a.pb", code=1)


def test_the_list_of_rules(capsys: pytest.CaptureFixture[str]) -> None:
    text = output(capsys, "--rules")
    assert "structure/dangling-input " in text
    assert len(text.splitlines()) >= 70


# -- as a program ----------------------------------------------------------------------------------------


def test_numpy_is_imported_only_for_large_constants() -> None:
    small, large = Path("small.pb"), Path("large.pb")
    small.write_bytes(graphs.calls().SerializeToString())
    large.write_bytes(graphs.net().SerializeToString())
    for path, expected in ((small, False), (large, True)):
        script = (
            "import sys\nfrom commands.main import run\n"
            f"assert run(['validate', {str(path.resolve())!r}]) == 0\n"
            f"assert ('numpy' in sys.modules) is {expected}\n"
            "assert not {'rich', 'grpc', 'tensorflow', 'graphviz'} & set(sys.modules)\n"
        )
        subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, cwd=ROOT)


def test_a_hundred_thousand_nodes(tmp_path: Path) -> None:
    graph = graph_pb2.GraphDef()
    graphs.add(graph, "Placeholder", "scope_0/node_0", dtype=graphs.F)
    for number in range(1, 100_000):
        name = f"scope_{number % 100}/node_{number}"
        node = graph.node.add(name=name, op="AddV2", device="/job:w/task:0")
        node.input.append(f"scope_{(number - 1) % 100}/node_{number - 1}")
        node.input.append(f"scope_{number // 2 % 100}/node_{number // 2}")
        node.attr["T"].type = 1  # type: ignore[assignment]
    (tmp_path / "big.pb").write_bytes(graph.SerializeToString())
    command = [sys.executable, "-m", "commands.main", "validate", str(tmp_path / "big.pb")]
    assert subprocess.run(command, capture_output=True, check=False, cwd=ROOT).returncode == 0


# -- for CI ----------------------------------------------------------------------------------------------


def test_the_pre_commit_hook() -> None:
    (hook,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    assert {"id", "name", "entry", "language"} <= set(hook)
    program, command = hook["entry"].split()
    assert (program, command) == ("graphmill", "validate")
    assert re.search(hook["files"], "models/a.pb")
    assert not re.search(hook["files"], "models/a.py")
    assert re.search(hook["exclude"], "models/saved/fingerprint.pb")


def test_the_reusable_workflow(capsys: pytest.CaptureFixture[str]) -> None:
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "validate-models.yml").read_text())
    against_schema(
        json.loads(json.dumps({str(k) if k is not True else "on": v for k, v in workflow.items()})),
        "github-workflow.json",
    )
    inputs = workflow[True]["workflow_call"]["inputs"]  # YAML 1.1 reads the key `on` as true
    steps = workflow["jobs"]["validate"]["steps"]
    used = {name for step in steps for name in re.findall(r"inputs\.([a-z-]+)", json.dumps(step))}
    assert used == set(inputs)
    good()
    for step in steps:  # the scripts themselves, run as the workflow runs them
        if "graphmill validate" not in step.get("run", ""):
            continue
        assert "${{" not in step["run"]
        program = f'graphmill() {{ "{sys.executable}" -m commands.main "$@"; }}\n'
        environment = os.environ | {
            "PATHS": "good.pb", "ARGUMENTS": "--max-nodes 20", "FAIL_ON": "note", "PYTHONPATH": str(ROOT),
        }  # fmt: skip
        result = subprocess.run(
            ["bash", "-ec", program + step["run"]], env=environment, capture_output=True, check=False
        )
        assert result.returncode == 0, result.stderr


@pytest.mark.parametrize("what", ["fingerprint.pb", "variables/variables.index"])
def test_a_saved_model_that_lost_its_model(what: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It is the folder that is wrong, given or below another one, and not what is left in it."""
    folder = tmp_path / "all" / "model"
    (folder / what).parent.mkdir(parents=True)
    (folder / what).write_bytes(b"x")
    for given in (folder, folder.parent):
        capsys.readouterr()
        assert run(["validate", str(given)]) == 1
        (line, total) = capsys.readouterr().out.splitlines()
        assert line.startswith(f"{folder}: error file/unreadable: ")
        assert "a SavedModel folder whose saved_model.pb is missing" in line
        assert total == "1 error in 1 file"
