"""The model of a picture: nothing is lost, nothing is drawn twice, like things fold, big things open small."""

from __future__ import annotations

import re
from types import ModuleType

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schemas import function_pb2, graph_pb2, tensor_pb2
from tests.render.graphs import add, large, perceptron, stack
from toolkit.errors import UsageError
from toolkit.graph import dtypes
from toolkit.graph.functions import FunctionLibrary
from toolkit.graph.graph import Graph
from toolkit.graph.shape import Shape
from toolkit.render.build import build_model, display_function_name
from toolkit.render.colors import ColorInput, color_scene
from toolkit.render.difference import Differences
from toolkit.render.elements import LinkKind
from toolkit.render.picture import PictureOptions, arrange, make_picture
from toolkit.render.scene import Box, Scene
from toolkit.render.sections import LEVEL_MOST, Member, without_circles
from toolkit.render.themes import THEMES, find_theme
from toolkit.render.visible import BOX_BUDGET, make_scene, open_to_budget, open_to_depth


def labels(scene: Scene) -> set[str]:
    return {box.label for box in scene.boxes}


def check_accounts(scene: Scene) -> None:
    """Every element is in one box (or is the frame of a call); every link is counted once."""
    members = [i for box in [*scene.boxes, *scene.asides] for i in box.members]
    frames = [e.id for e in scene.model.elements if not isinstance(scene.owner[e.id], Box)]
    assert sorted(members + frames) == list(range(len(scene.model.elements)))
    drawn = sum(arc.count for arc in [*scene.arcs, *scene.thinned])
    assert drawn + scene.inner + scene.hidden + scene.noted + scene.covered == len(scene.model.links)
    assert len({box.id for box in [*scene.boxes, *scene.asides]}) == len(scene.boxes) + len(scene.asides)
    for arc in [*scene.arcs, *scene.thinned]:
        assert len(set(arc.links)) == arc.count
        for number in arc.links:
            link = scene.model.links[number]
            assert scene.owner[link.src] is arc.src
            assert scene.owner[link.dst] is arc.dst


def test_perceptron() -> None:
    scene = make_picture(perceptron(), "p", PictureOptions())
    check_accounts(scene)
    assert {"x", "y", "kernel", "MatMul", "Relu"} == labels(scene)
    assert [box.label for box in scene.asides] == ["initialization"]
    kernel = next(box for box in scene.boxes if box.full_name == "layer1/kernel")
    assert (kernel.kind, kernel.lines, kernel.size) == ("variable", ["variable float32 8×4"], 4)
    shapes = {arc.label for arc in scene.arcs if isinstance(arc.src, Box) and arc.src.label == "Relu"}
    assert shapes == {"?×4", "?×2"}


def test_inline_draws_everything() -> None:
    scene = make_picture(perceptron(), "p", PictureOptions(depth=9, auxiliary="inline"))
    check_accounts(scene)
    assert scene.asides == []
    assert any(arc.kind is LinkKind.CONTROL for arc in scene.arcs)


def test_depth() -> None:
    closed = make_picture(perceptron(), "p", PictureOptions(depth=1))
    assert labels(closed) == {"x", "y", "layer1", "layer2"}
    check_accounts(closed)
    between = {(arc.src.label, arc.dst.label): arc.count for arc in closed.arcs}
    assert between == {("x", "layer1"): 1, ("layer1", "layer2"): 1, ("layer2", "y"): 1}


def test_like_layers_fold_into_a_series() -> None:
    scene = make_picture(stack(12), "s", PictureOptions())
    check_accounts(scene)
    series = next(box for box in scene.boxes if box.kind == "series")
    assert series.label == "layer_0 … layer_11"
    assert series.size == 24
    assert series.lines[0] == "12 × 2 nodes"
    assert len(make_picture(stack(12), "s", PictureOptions(fold=False)).boxes) > 12


def test_a_different_layer_breaks_the_series() -> None:
    graph = stack(9)
    graph.node("layer_4/Tanh").op = "Sigmoid"
    scene = make_picture(graph, "s", PictureOptions(depth=1))
    assert labels(scene) == {"x", "layer_0 … layer_3", "layer_4", "layer_5 … layer_8", "out"}


def test_hub_of_control_edges_is_moved_aside() -> None:
    graph = Graph()
    go = add(graph, "NoOp", "go")
    for i in range(20):
        x = add(graph, "Placeholder", f"s{i}/x{chr(97 + i)}", dtype=dtypes.float32)
        add(graph, "Relu", f"s{i}/r{chr(97 + i)}", x, control=[go], T=dtypes.float32)
    scene = make_picture(graph, "h", PictureOptions(fold=False, depth=3))
    check_accounts(scene)
    assert [box.label for box in scene.asides] == ["go"]
    assert all(box.tags == ["go"] for box in scene.boxes if box.label.startswith("r"))


def test_constants_become_notes_of_every_user() -> None:
    graph = Graph()
    x = add(graph, "Placeholder", "x", dtype=dtypes.float32)
    value = tensor_pb2.TensorProto(dtype=3, int_val=[2])
    axis = add(graph, "Const", "axis", dtype=dtypes.int32, value=value)
    for name in "abc":
        x = add(graph, "Sum", name, x, axis, T=dtypes.float32, Tidx=dtypes.int32)
    scene = make_picture(graph, "c", PictureOptions())
    check_accounts(scene)
    assert labels(scene) == {"x", "a", "b", "c"}
    unfolded = make_picture(graph, "c", PictureOptions(fold=False))
    assert all("reduction_indices 2" in box.lines for box in unfolded.boxes if box.label in "abc")
    assert (unfolded.inner, unfolded.noted) == (1, 2)  # the first user hosts it


def test_function_bodies_are_drawn_where_they_are_called() -> None:
    function = function_pb2.FunctionDef()
    function.signature.name = "__inference_double_12"
    function.signature.input_arg.add(name="v", type=1)
    function.signature.output_arg.add(name="r", type=1)
    body = function.node_def.add(name="sum", op="AddV2", input=["v", "v"])
    body.attr["T"].type = 1
    function.ret["r"] = "sum:z:0"
    graph = Graph()
    graph.library = FunctionLibrary()
    graph.library.add(function)
    x = add(graph, "Placeholder", "x", dtype=dtypes.float32)
    call = add(graph, "__inference_double_12", "call", x)
    add(graph, "Relu", "y", call, T=dtypes.float32)
    scene = make_picture(graph, "f", PictureOptions())
    check_accounts(scene)
    cluster = scene.root.clusters[0]
    assert cluster.label == "call: double()"
    ends = {(a.src.id, a.dst.id) for a in scene.arcs}
    assert {("x", "call/v"), ("call/sum", "call/r_RetVal"), ("call/r_RetVal", "y")} <= ends
    closed = make_picture(graph, "f", PictureOptions(depth=1))
    assert [(b.kind, b.size) for b in closed.boxes if b.id == "call/"] == [("function", 4)]
    check_accounts(closed)
    assert display_function_name("__inference_double_12") == "double"


def test_recursive_function_stays_closed() -> None:
    function = function_pb2.FunctionDef()
    function.signature.name = "f"
    function.signature.input_arg.add(name="v", type=1)
    function.signature.output_arg.add(name="r", type=1)
    function.node_def.add(name="again", op="f", input=["v"])
    function.ret["r"] = "again:r:0"
    graph = Graph()
    graph.library.add(function)
    x = add(graph, "Placeholder", "x", dtype=dtypes.float32)
    add(graph, "f", "call", x)
    scene = make_picture(graph, "f", PictureOptions())
    check_accounts(scene)
    assert any("calls itself" in box.lines for box in scene.boxes)


def test_loop_frame_is_a_box_of_its_own() -> None:
    graph = Graph()
    x = add(graph, "Placeholder", "x", dtype=dtypes.float32)
    enter = add(graph, "Enter", "loop/enter", x, T=dtypes.float32, frame_name=b"loop/frame", parallel_iterations=10)
    merge = add(graph, "Merge", "loop/merge", enter, enter, T=dtypes.float32, N=2)
    condition = add(graph, "LoopCond", "loop/cond", add(graph, "IsFinite", "loop/ok", merge, T=dtypes.float32))
    switch = add(graph, "Switch", "loop/switch", merge, condition, T=dtypes.float32)
    more = graph.add("Tanh", "loop/body", [switch.output(1)], attrs={"T": dtypes.float32})
    back = add(graph, "NextIteration", "loop/next", more, T=dtypes.float32)
    merge.inputs[1] = back.output()
    add(graph, "Relu", "y", add(graph, "Exit", "loop/exit", switch, T=dtypes.float32), T=dtypes.float32)
    scene = make_picture(graph, "w", PictureOptions(depth=1))
    loop = next(box for box in scene.boxes if box.id == "loop/")
    assert (loop.kind, loop.lines[0]) == ("loop", "while loop/frame")
    check_accounts(make_picture(graph, "w", PictureOptions()))


def test_partitions_are_joined_by_send_and_recv() -> None:
    keys = {"tensor_name": b"edge_1", "send_device": b"/job:ps", "recv_device": b"/job:worker"}
    one, two = Graph(), Graph()
    x = add(one, "Placeholder", "x", dtype=dtypes.float32)
    one.add("_Send", "x/send", [x], attrs={"T": dtypes.float32, **keys})
    got = two.add("_Recv", "x/recv", attrs={"tensor_type": dtypes.float32, **keys})
    add(two, "Relu", "y", got, T=dtypes.float32)
    scene = make_picture({"/job:ps": one, "/job:worker": two}, "parts", PictureOptions(depth=1, color="partition"))
    check_accounts(scene)
    assert [(a.src.label, a.dst.label, a.transfer) for a in scene.arcs] == [("/job:ps", "/job:worker", True)]
    assert {row[1] for row in scene.legend} >= {"/job:ps", "/job:worker"}


def test_big_graphs_open_small() -> None:
    for graph in (large(5000), large(5000, scopes=300), stack(700)):
        scene = make_picture(graph, "big", PictureOptions())
        check_accounts(scene)
        assert 2 <= len(scene.boxes) <= BOX_BUDGET + 10


@pytest.mark.parametrize("scopes", [0, 2000])
def test_a_hundred_thousand_nodes(scopes: int) -> None:
    graph = large(100_000, scopes)
    scene = make_picture(graph, "huge", PictureOptions())
    assert len(scene.boxes) <= BOX_BUDGET + 10


def test_deep_names_do_not_recurse() -> None:
    graph = Graph()
    for i in range(3):
        add(graph, "Placeholder", "/".join(["s"] * 3000) + f"/x{i}", dtype=dtypes.float32)
    check_accounts(make_picture(graph, "deep", PictureOptions()))


@st.composite
def random_graphs(draw: st.DrawFn) -> Graph:
    count = draw(st.integers(2, 40))
    part = st.sampled_from(["a", "b", "layer_1", "layer_2", "layer_3", "save", "gradients", "c_1", "c_2", "c_3"])
    graph = Graph()
    for i in range(count):
        path = draw(st.lists(part, max_size=3))
        name = "/".join([*path, draw(st.sampled_from(["x", "read", "init", "kernel", "n_1", "n_2", "n_3"]))])
        op = draw(st.sampled_from(["Identity", "AddN", "NoOp", "Const", "VariableV2", "Placeholder", "Relu", "SaveV2"]))
        earlier = st.lists(st.sampled_from(graph.nodes), max_size=3) if graph.nodes else st.just([])
        inputs = [] if op in ("NoOp", "Const", "VariableV2", "Placeholder") else draw(earlier)
        add(graph, op, graph.unique_name(name), *inputs, control=draw(earlier), dtype=dtypes.float32, T=dtypes.float32)
        del i
    return graph


@settings(max_examples=60, deadline=None, print_blob=True)
@given(random_graphs(), st.integers(1, 5), st.sampled_from(["aside", "inline"]), st.booleans())
def test_nothing_is_lost_or_drawn_twice(graph: Graph, depth: int, auxiliary: str, folding: bool) -> None:
    model = build_model(graph, "random")
    total = len(model.links)
    ready = arrange(model, auxiliary=auxiliary, folding=folding)
    for opened in (open_to_depth(model.root, depth), open_to_budget(model.root, 10)):
        scene = make_scene(model, opened, ready.absorbed, ready.aside)
        assert len(model.elements) == len(graph)
        assert len(model.links) == total == sum(len(n.inputs) + len(n.control_inputs) for n in graph)
        check_accounts(scene)
        for mode in ("op", "device", "partition", "dtype", "cost", "structure"):
            color_scene(scene, mode, find_theme("light"))
            assert all(box.fills for box in scene.boxes)


@pytest.mark.parametrize("theme", THEMES)
def test_text_is_readable_on_every_fill(theme: str) -> None:
    """Contrast by WCAG 2.2 (relative luminance)."""

    def luminance(colour: str) -> float:
        parts = [int(colour[n : n + 2], 16) / 255 for n in (1, 3, 5)]
        linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    def contrast(a: str, b: str) -> float:
        high, low = sorted((luminance(a), luminance(b)), reverse=True)
        return (high + 0.05) / (low + 0.05)

    chosen = find_theme(theme)
    fills = [*chosen.categories.values(), *chosen.distinct, *chosen.scale, *chosen.clusters, chosen.scope]
    fills += [chosen.background, chosen.added, chosen.removed, chosen.changed, chosen.same]
    assert min(contrast(chosen.ink, fill) for fill in fills) >= 7
    assert min(contrast(chosen.muted, fill) for fill in fills) >= 4.5


def test_focus_draws_the_surroundings() -> None:
    scene = make_picture(perceptron(), "p", PictureOptions(focus="layer1/MatMul:0", hops=1))
    names = {box.full_name for box in scene.boxes}
    assert names == {"x", "layer1/MatMul", "layer1/kernel/read", "layer1/Relu"}
    assert {box.full_name for box in scene.boxes if box.emphasis} == {"layer1/MatMul"}
    assert any("1 more edge" in box.lines for box in scene.boxes)
    check_accounts(scene)
    whole = make_picture(perceptron(), "p", PictureOptions(focus="layer1", hops=0))
    assert {e.name.partition("/")[0] for e in whole.model.elements} == {"layer1"}


def test_highlight_makes_paths_strong() -> None:
    scene = make_picture(perceptron(), "p", PictureOptions(highlight=("layer1/MatMul", "layer2")))
    strong = {box.full_name for box in scene.boxes if box.emphasis == "strong"}
    assert strong == {"layer1/MatMul", "layer1/Relu", "layer2/MatMul", "layer2/Relu"}
    assert sum(arc.emphasis == "strong" for arc in scene.arcs) == 3


def test_diff_colours() -> None:
    given_ = ColorInput(changes=Differences({"layer1/Relu": "changed", "y": "added"}))
    scene = make_picture(perceptron(), "p", PictureOptions(color="diff"), given_)
    fills = {box.full_name: box.fills[0][0] for box in scene.boxes}
    theme = find_theme("light")
    assert (fills["layer1/Relu"], fills["y"], fills["x"]) == (theme.changed, theme.added, theme.same)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (PictureOptions(color="ops"), "no colouring 'ops'; did you mean 'op'? Expected op, device"),
        (
            PictureOptions(theme="drak"),
            "no theme 'drak'; did you mean 'dark'? Expected light, dark, print, colorblind",
        ),
        (PictureOptions(auxiliary="no"), "expected aside, inline, hide"),
        (PictureOptions(color="diff"), "needs the other graph"),
    ],
)
def test_wrong_options(options: PictureOptions, message: str) -> None:
    with pytest.raises(UsageError, match=re.escape(message)):
        make_picture(perceptron(), "p", options)


@pytest.mark.parametrize("hops", [1, 2])
def test_a_focus_whose_neighbours_have_scopes_of_their_names(hops: int) -> None:
    """A node named as a scope whose members the focus leaves out stays where it is."""
    graph = Graph()
    x = add(graph, "Placeholder", "x", dtype=dtypes.float32)
    inner = add(graph, "Identity", "net/layer/read", x, T=dtypes.float32)
    layer = add(graph, "Relu", "net/layer", inner, T=dtypes.float32)
    out = add(graph, "Softmax", "net/out", layer, T=dtypes.float32)
    add(graph, "Identity", "result", out, T=dtypes.float32)
    scene = make_picture(graph, "focus", PictureOptions(focus="result", hops=hops))
    check_accounts(scene)


def test_a_series_of_large_members_shows_its_first() -> None:
    graph = Graph()
    x = add(graph, "Placeholder", "x", dtype=dtypes.float32)
    for layer in range(6):
        for i in range(9):
            x = add(graph, "Tanh" if i % 2 else "Relu", f"layer_{layer}/n{chr(97 + i)}", x, T=dtypes.float32)
    scene = make_picture(graph, "s", PictureOptions())
    check_accounts(scene)
    assert [box.label for box in scene.boxes if box.scope] == [f"layer_{n}" for n in range(1, 6)]
    assert {"layer_0/na", "layer_0/ni"} <= {box.full_name for box in scene.boxes}


def blocks(count: int, numbers: bool) -> Graph:
    """A network whose blocks have no scope of their own: attention_0, Add, dense_0, attention_1, Add_1, dense_1, ..."""
    graph = Graph()
    x = add(graph, "Placeholder", "x", dtype=dtypes.float32)
    for n in range(count):
        y = add(graph, "Tanh", f"attention_{n}/a", x, T=dtypes.float32)
        y = add(graph, "Relu", f"attention_{n}/b", y, T=dtypes.float32)
        total = add(graph, "AddV2", f"Add_{n}" if numbers else f"Add{chr(97 + n)}", x, y, T=dtypes.float32)
        y = add(graph, "Sigmoid", f"dense_{n}/a", total, T=dtypes.float32)
        x = add(graph, "Softmax", f"dense_{n}/b", y, T=dtypes.float32)
    return graph


@pytest.mark.parametrize("numbers", [False, True])
def test_blocks_without_scopes_are_found_and_no_group_feeds_itself(numbers: bool) -> None:
    """All attention_* in one box would feed all dense_* and be fed by them."""
    scene = make_picture(blocks(20, numbers), "b", PictureOptions(depth=1))
    check_accounts(scene)
    (series,) = [box for box in scene.boxes if box.kind == "series"]
    assert (series.label, series.lines[0]) == ("block 1 … block 20", "20 × 5 nodes")
    opened = make_picture(blocks(20, numbers), "b", PictureOptions(depth=2))
    assert {(a.src.label, a.dst.label) for a in opened.arcs} == {("x", "block 1 … block 20")}


def test_groups_on_a_circle_are_left_out() -> None:
    """a feeds b feeds c, and a and c have one prefix; d and e are apart."""
    members = [Member(name, None, n, n) for n, name in enumerate(["p_a", "b", "p_c", "q_d", "q_e"])]
    for src, dst in ((0, 1), (1, 2), (2, 3), (3, 4)):
        members[src].after.add(dst)
        members[dst].before.add(src)
    groups = [("p", [members[0], members[2]]), ("q", members[3:])]
    assert [label for label, _ in without_circles(groups, members)] == ["q"]


def test_auxiliary_parts_of_a_partition_stay_in_their_job_with_their_transfers() -> None:
    keys = {"tensor_name": b"edge_1", "send_device": b"/job:worker", "recv_device": b"/job:ps"}
    ps, worker = Graph(), Graph()
    x = add(worker, "Placeholder", "x", dtype=dtypes.float32)
    y = add(worker, "Relu", "y", x, T=dtypes.float32)
    grad = add(worker, "ReluGrad", "gradients/g", x, y, T=dtypes.float32)
    worker.add("_Send", "gradients/send", [grad], attrs={"T": dtypes.float32, **keys})
    got = ps.add("_Recv", "train/recv", attrs={"tensor_type": dtypes.float32, **keys})
    w = add(ps, "VariableV2", "w", dtype=dtypes.float32, shape=Shape([]))
    add(ps, "ApplyGradientDescent", "train/update", w, got, got, T=dtypes.float32)
    scene = make_picture({"/job:ps": ps, "/job:worker": worker}, "parts", PictureOptions())
    check_accounts(scene)
    assert scene.asides == []
    assert {(box.id, box.kind) for box in scene.boxes if box.scope} == {
        ("/job:ps/~optimizer/", "aside"), ("/job:worker/~gradients/", "aside"),
    }  # fmt: skip
    assert [(a.src.label, a.dst.label) for a in scene.arcs if a.transfer] == [("gradients", "optimizer")]


def test_nameless_noops_are_no_noise() -> None:
    graph = Graph()
    x = add(graph, "Placeholder", "x", dtype=dtypes.float32)
    wait = add(graph, "NoOp", "NoOp")
    for i in range(4):
        x = add(graph, "Relu", f"r{chr(97 + i)}", x, control=[wait], T=dtypes.float32)
    scene = make_picture(graph, "n", PictureOptions(fold=False))
    check_accounts(scene)
    assert [(box.label, box.lines) for box in scene.asides] == [("order of side effects", ["1 node", "NoOp"])]
    assert not any(box.tags for box in scene.boxes)


@pytest.mark.tensorflow
def test_constants_that_a_loop_only_carries_are_notes(tf: ModuleType) -> None:
    """The weight is fed to the loop and handed back as it came; the counter and the state change."""
    v1 = tf.compat.v1
    v1.enable_control_flow_v2()  # other tests switch it off
    with v1.Graph().as_default() as graph:
        x = v1.placeholder(tf.float32, [1, 4], name="x")
        weight = tf.constant(2.0, shape=[4, 4], name="weight")
        _, y, _ = tf.while_loop(
            lambda i, a, w: i < 3, lambda i, a, w: (i + 1, tf.matmul(a, w, name="product"), w), [0, x, weight],
            name="loop",
        )  # fmt: skip
        tf.identity(y, name="y")
        data = graph.as_graph_def().SerializeToString()
    scene = make_picture(Graph.from_proto(graph_pb2.GraphDef.FromString(data)), "loop", PictureOptions())
    check_accounts(scene)
    product = next(box for box in scene.boxes if box.element is not None and box.element.op == "MatMul")
    assert product.label.startswith("product"), "the path of the call is said by the frames around"
    assert "b 4×4" in product.lines
    bodies = [box for box in scene.boxes if box.id.startswith("loop/body/")]
    assert len([box for box in bodies if box.kind == "input"]) == 3, "the loop's counter, i and a, but not the weight"
    notes = [line for box in bodies if box.kind == "output" for line in box.lines if line.startswith("next ")]
    assert len(notes) == 3


@pytest.mark.parametrize("scopes", [0, 100])
def test_every_level_of_a_large_graph_can_be_opened(scopes: int) -> None:
    """Whatever is opened shows few boxes more: a long series, and scopes that all feed each other, too."""
    graph = Graph()
    nodes = [add(graph, "Placeholder", "x", dtype=dtypes.float32)]
    for i in range(1, 20_000):
        name = f"scope_{i % scopes}/node_{i}" if scopes else f"node_{i}"
        nodes.append(add(graph, "AddV2", name, nodes[-1], nodes[i // 2], T=dtypes.float32))
    model = build_model(graph, "large")
    arrange(model)
    for scope in model.root.walk():
        assert len(scope.scopes) + len(scope.elements) <= 2 * LEVEL_MOST, scope
