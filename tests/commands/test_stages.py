"""Every stage after every stage, in pipes, for all kinds of models: what comes out computes what went in did.

Pipes are bytes here: each stage runs in this process, on what the one before wrote to standard output.
"""

from __future__ import annotations

import io
import itertools
import random
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from commands.main import run
from tests import models

pytestmark = pytest.mark.tensorflow

CLUSTER = "local: {CPU: 2}\n"
SPEC = """
seed: 7
inputs:
  x: {dtype: float32, shape: [null, 6]}
  t: {dtype: int64, shape: [null]}
nodes:
  - {layer: dense, name: hidden, units: 5, activation: relu}
  - {layer: dense, name: logits, units: 3}
loss: {type: sparse_softmax_cross_entropy, labels: t, logits: logits}
optimizer: {type: sgd, name: train, learning_rate: 0.1}
saver: {max_to_keep: 1}
signatures:
  serving_default: {inputs: {x: x}, outputs: {logits: logits}}
  train: {inputs: {x: x, t: t}, outputs: {loss: loss, step: "train:0"}}
"""


@dataclass(frozen=True)
class Piped:
    """A model on its way.

    Attributes:
        data: what the last stage wrote.
        kind: "training", "saved", "frozen": how it is run.
        feeds: for `run`: NAME=SOURCE.
        fetches: by name; none where the signature says.
        checkpoint: of the variables, where they do not travel.
        target: the training step, while there is one.
        said: on standard error, by all stages so far.
    """

    data: bytes
    kind: str
    feeds: tuple[str, ...]
    fetches: tuple[str, ...] = ()
    checkpoint: str = ""
    target: str = ""
    source: str = ""
    inserted: str = ""
    said: str = ""


def call(line: list[str], data: bytes, expected: tuple[int, ...] = (0,)) -> tuple[bytes, str]:
    """Run a command line on bytes; what it writes to standard output and standard error."""
    out, err = io.BytesIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
        patch.setattr(sys, "stdout", io.TextIOWrapper(out, write_through=True))
        patch.setattr(sys, "stderr", err)
        code = run(line)
        sys.stdout.flush()
        written = out.getvalue()
    assert code in expected, (line, code, err.getvalue())
    return written, err.getvalue()


# -- kinds of models -------------------------------------------------------------------------------------


def made_training(folder: Path) -> Piped:
    built = models.lenet_ref()
    arrays = built.arrays()
    np.savez(folder / "f.npz", images=arrays["images"][0, :4], labels=arrays["labels"][0, :4])
    feeds = (f"images={folder / 'f.npz'}:images", f"labels={folder / 'f.npz'}:labels")
    return Piped(
        built.path.read_bytes(), "training", feeds, ("dense2/logits:0", "loss:0"),
        str(built.file(built.info["prefix"])), "train", str(built.path), "images:0",
    )  # fmt: skip


def made_saved(kind: str) -> Callable[[Path], Piped]:
    def make(folder: Path) -> Piped:
        del folder
        built = models.saved_model_tables(kind)
        feeds = (f"x={built.file('arrays.npz')}:x", 'w=["green","grey"]')
        data, _ = call(["convert", str(built.path)], b"")
        inserted = "x:0" if kind == "v1" else "serving_default_x:0"
        return Piped(data, "saved", feeds, source=str(built.path), inserted=inserted)

    return make


def made_frozen(folder: Path) -> Piped:
    del folder
    built = models.control_flow_v2()
    feeds = (f"x={built.file('arrays.npz')}:x", "n=3")
    return Piped(
        built.path.read_bytes(), "frozen", ("x=[0.5,-0.2,0.9]", feeds[1]), ("loop:0", "branch:0", "gradient:0"),
        source=str(built.path), inserted="x:0",
    )  # fmt: skip


def made_build(folder: Path) -> Piped:
    (folder / "net.yaml").write_text(SPEC)
    data, _ = call(["build", str(folder / "net.yaml")], b"")
    (folder / "net.meta").write_bytes(data)
    prefix = str(folder / "net")
    feeds = ("x=[[1,2,3,4,5,6],[6,5,4,3,2,1]]", "t=[0,2]")
    line = ["run", str(folder / "net.meta"), "--init", "--save", prefix, "--signature", "serving_default"]
    call([*line, "--feed", feeds[0]], b"")
    fetches = ("logits/BiasAdd:0", "loss:0")
    return Piped(data, "training", feeds, fetches, prefix, "train", str(folder / "net.meta"), "x:0")


KINDS: dict[str, Callable[[Path], Piped]] = {
    "training": made_training,
    "saved_v1": made_saved("v1"),
    "saved_objects": made_saved("objects"),
    "frozen": made_frozen,
    "build": made_build,
}


# -- stages ----------------------------------------------------------------------------------------------

Stage = Callable[[Piped, Path], Piped | None]


def after(piped: Piped, *lines: list[str], **changed: Any) -> Piped:
    data, said = piped.data, piped.said
    for line in lines:
        data, told = call(line, data)
        said += told
    return replace(piped, data=data, said=said, **changed)


def fetched(piped: Piped) -> list[str]:
    return [word for name in piped.fetches for word in ("--fetch", name)]


def prune(piped: Piped, folder: Path) -> Piped:
    del folder
    if piped.kind == "training" and piped.target:
        return after(piped, ["prune", *fetched(piped), "--target", piped.target, "--keep-lifecycle"])
    return after(piped, ["prune", *fetched(piped)])


def optimize(piped: Piped, folder: Path) -> Piped:
    del folder
    preset = ["training", "--target", piped.target] if piped.target else ["inference"]
    return after(piped, ["optimize", "--preset", *preset, *fetched(piped)])


def place(piped: Piped, folder: Path) -> Piped:
    cluster = folder / "cluster.yaml"
    cluster.write_text(CLUSTER)
    return after(piped, ["place", "--cluster", str(cluster), "--strategy", "round-robin", "--soft-placement"])


def partition_stream(piped: Piped, folder: Path) -> Piped:
    return after(place(piped, folder), ["partition", "--by", "device", "-o", "-"])


def partition_joined(piped: Piped, folder: Path) -> Piped:
    return after(partition_stream(piped, folder), ["partition", "--join", "-"])


def freeze(piped: Piped, folder: Path) -> Piped:
    del folder
    found = ["--checkpoint", piped.checkpoint] if piped.checkpoint else []
    kind = "savedmodel" if piped.kind == "saved" else "metagraph"
    line = ["freeze", *fetched(piped), *found, "--as", kind]
    return after(piped, line, checkpoint="", target="")


def unfreeze(piped: Piped, folder: Path) -> Piped | None:
    del folder
    if piped.checkpoint:  # whose variables lie elsewhere
        return None
    line = ["unfreeze", "--min-bytes", "4", "--as", "savedmodel"]
    return after(piped, line) if _has_constants(piped) else None


def _has_constants(piped: Piped) -> bool:
    """Whether there is a constant that unfreeze makes a variable of; where there is none it says so."""
    _, said = call(["unfreeze", "--min-bytes", "4", "--as", "savedmodel"], piped.data, (0, 2))
    return "no constant of floats has" not in said


def edit(piped: Piped, folder: Path) -> Piped:
    del folder
    return after(piped, ["edit", "--insert-after", f"{piped.inserted}=Identity", "--clear-devices"])


def convert(piped: Piped, folder: Path) -> Piped:
    """To text where that holds all there is, else to split files."""
    del folder
    as_kind = "savedmodel.split" if piped.data[257:262] == b"ustar" else "metagraph.text"
    return after(piped, ["convert", "--as", as_kind])


STAGES: dict[str, Stage] = {
    "prune": prune,
    "optimize": optimize,
    "place": place,
    "partition_stream": partition_stream,
    "partition_joined": partition_joined,
    "freeze": freeze,
    "unfreeze": unfreeze,
    "edit": edit,
    "convert": convert,
}


# -- ends ------------------------------------------------------------------------------------------------


def numbers(piped: Piped, folder: Path) -> dict[str, Any]:
    """What a model computes; where it trains, over three steps."""
    out = folder / "out.npz"
    found = ["--checkpoint", piped.checkpoint] if piped.checkpoint else []
    steps = ["--target", piped.target, "--steps", "3"] if piped.target else []
    fed = [word for feed in piped.feeds for word in ("--feed", feed)]
    call(["run", *fed, *fetched(piped), *found, *steps, "--out", str(out)], piped.data)
    with np.load(out, allow_pickle=True) as arrays:
        return dict(arrays)


def assert_same(found: dict[str, Any], wanted: dict[str, Any], said: str) -> None:
    assert found.keys() == wanted.keys(), said
    for name, value in wanted.items():
        if value.dtype.kind != "f":
            np.testing.assert_array_equal(found[name], value, said)
            continue
        # passes add in another order: a few roundings of the largest number, and three steps of training between
        np.testing.assert_allclose(found[name], value, rtol=1e-4, atol=1e-5 * np.abs(value).max(), err_msg=said)


def look_at(piped: Piped) -> None:
    """The other ends of a pipe."""
    _, _ = call(["inspect"], piped.data)
    told, _ = call(["validate", "--rule", "security/*=off"], piped.data, (0, 1))
    assert b" error " not in told, told
    picture, _ = call(["visualize", "-o", "-"], piped.data)
    assert picture.startswith(b"digraph")
    told, _ = call(["diff", piped.source, "-"], piped.data, (0, 1))
    if not told:  # nothing differs behind conversions alone
        call(["diff", piped.source, "-"], piped.data)


class Chains:
    """Models after stages; what begins alike is made once."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.made: dict[tuple[str, ...], Piped | None] = {}
        self.wanted: dict[tuple[str, str], dict[str, Any]] = {}

    def get(self, *names: str) -> Piped | None:
        """The model of a kind after stages; None where one of them has nothing to do."""
        if names not in self.made:
            *rest, last = names
            before = self.get(*rest) if rest else None
            if not rest:
                where = self.folder / last
                where.mkdir(exist_ok=True)
                self.made[names] = KINDS[last](where)
            else:
                self.made[names] = None if before is None else STAGES[last](before, self.folder)
        return self.made[names]

    def check(self, *names: str) -> None:
        found = self.get(*names)
        if found is None:
            return
        key = names[0], found.target
        if key not in self.wanted:
            whole = self.get(names[0])
            assert whole is not None
            self.wanted[key] = numbers(replace(whole, target=found.target), self.folder)
        assert_same(numbers(found, self.folder), self.wanted[key], f"{names}: {found.said}")


@pytest.fixture(scope="module")
def chains(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chains]:
    yield Chains(tmp_path_factory.mktemp("stages"))


def sample(count: int) -> list[tuple[str, ...]]:
    """Chains of two stages, every stage and kind among them."""
    every = list(itertools.product(KINDS, STAGES, STAGES))
    random.Random(3).shuffle(every)
    return sorted(every[:count])


@pytest.mark.parametrize("names", sample(24), ids="-".join)
def test_some_stages_after_others(names: tuple[str, ...], chains: Chains) -> None:
    chains.check(*names)


@pytest.mark.parametrize("kind", KINDS)
def test_the_other_ends(kind: str, chains: Chains) -> None:
    piped = chains.get(kind, "partition_stream")
    assert piped is not None
    look_at(piped)


def test_a_layer_is_fetched_by_its_name(chains: Chains) -> None:
    built = chains.get("build")
    assert built is not None
    for stage in (["freeze", "--checkpoint", built.checkpoint], ["prune"]):
        data, _ = call([*stage, "--fetch", "logits", "--as", "metagraph"], built.data)
        assert b"logits/BiasAdd" in data


@pytest.mark.long
@pytest.mark.parametrize("names", list(itertools.product(KINDS, STAGES, STAGES)), ids="-".join)
def test_every_stage_after_every_stage(names: tuple[str, ...], chains: Chains) -> None:
    chains.check(*names)
    piped = chains.get(*names)
    if piped is not None:
        look_at(piped)
