"""The command lines that files of each kind are given to, with options drawn by dice."""

from __future__ import annotations

import random

from tests.fuzz.seeds import Files

Lines = list[list[str]]
_FORMATS = (
    "",
    "--format json",
    "--format sarif",
    "--format junit",
    "--format github",
    "--runs-on CPU",
    "--max-flops 9",
)
_PICTURES = ("", "--depth 3", "--color cost", "--focus x", "--color memory", "--against seed.pb", "--auxiliary inline")
_QUERIES = (
    "op = Conv2D and attr.padding = SAME", "name ~ *", "before y and dtype != float32", "after x", "has attr.T",
    "fan-in > 1 or function = f", "under conv",
)  # fmt: skip


_CONVERSIONS = ("out/c.pbtxt", "out/c.json", "out/c.cpb", "out/c.meta --as metagraph", "out/saved --as savedmodel")
_EDITS = (
    "--rename *=n/*", "--add-prefix a", "--clear-devices", "--batch-size 3", "--remove x", "--remove-attr T",
    "--set-attr *:T=float64", "--set-device *=/device:GPU:0", "--set-shape x=2,any", "--insert-after x:0=Identity",
    "--rename * --dry-run", "--batch-size 2 --dry-run", "--replace y=Neg",
)  # fmt: skip


def either(rng: random.Random, *choices: str) -> list[str]:
    """One of several choices of options, as words."""
    return rng.choice(choices).split()


def of_model(rng: random.Random, model: str, feeds: list[str], fetch: str) -> Lines:
    """Command lines that read a model; seed.pb is another one, cluster.yaml a cluster."""
    picture = rng.choices(("txt", "dot", "html", "svg"), (4, 4, 2, 0.2))[0]
    first, run = fetch.split(",")[0], ["run", model, *feeds, "--fetch", fetch]
    text = either(rng, "graphdef.text", "graphdef.json", "metagraph.text")
    return [
        ["inspect", model],
        ["inspect", model, "--json", "--nodes"],
        ["inspect", model, "--tree", "--costs", *either(rng, "", "--json", "--batch 7")],
        ["inspect", model, "--where", rng.choice(_QUERIES)],
        ["inspect", model, "--path", "x", first],
        ["validate", model, *either(rng, *_FORMATS)],
        ["validate", model, "--compatible-with", "seed.pb"],
        ["diff", model, "seed.pb", *either(rng, "", "--json", "-o out/d.txt", "--atol 1e-6")],
        ["diff", "seed.pb", model],
        ["prune", model, "-o", "out/p.pb", *either(rng, "", f"--fetch {fetch}", f"--fetch {fetch} --keep-lifecycle")],
        ["prune", model, "--fetch", fetch, "-o", "out/p.txt", "--as", *text],
        ["prune", model, "--fetch", fetch, "--why", rng.choice(("x", "w", first))],
        ["prune", model, "-o", "out/k.meta", "--keep", "*", *either(rng, "", "--clear-devices")],
        ["convert", model, "-o", *either(rng, *_CONVERSIONS)],
        ["edit", model, "-o", "out/e.pb", *either(rng, *_EDITS)],
        ["freeze", model, "-o", "out/f.pb", *either(rng, "", f"--fetch {fetch}", "--as metagraph")],
        ["optimize", model, "-o", "out/o.pb", "--preset",
         *either(rng, "inference", "size", "training", "canonical", f"inference --fetch {fetch} --report out/r.json")],
        ["place", model, "--cluster", "cluster.yaml", "-o", "out/p.pb",
         *either(rng, "", "--strategy greedy --report out/r.json", "--soft-placement", "--stages 2")],
        ["partition", model, "-o", "out/parts", *either(rng, "", "--by device", "--json")],
        ["visualize", model, "-o", f"out/v.{picture}", *either(rng, *_PICTURES)],
        [*run, "--out", "out/r.npz"],
        [*run, *either(rng, "--explain", "--tokens", "--profile", "--check-numerics")],
        [*run, *either(rng, "--trace out/t.json", "--dump * out/dump", "--dump-stages out/s", "--repeat 2")],
    ]  # fmt: skip


def of_checkpoint(rng: random.Random, prefix: str, files: Files) -> Lines:
    """Command lines that read a checkpoint, in a folder of its own if it is a bundle."""
    whole = rng.choice((prefix, "ckpt")) if prefix == "ckpt/c" else prefix
    lines = [
        ["verify", whole],
        ["inspect", whole, "--stats"],
        ["inspect", whole, "--json"],
        ["inspect", whole, *either(rng, "--scopes", "--tree", "--values part", "--values w --full")],
        ["convert", whole, *either(rng, "out/c", "out/c.npz", "out/c.safetensors")],
        ["convert", whole, "out/c", *either(rng, "--v1", "--shards 2")],
        ["cast", whole, "-o", "out/c", *either(rng, "--to float16", "--to bfloat16", "--to int8", "--to half --all")],
        ["merge", whole, "-o", "out/c", *either(rng, "", "--join-parts")],
        ["rename", whole, "re:(.*)=x/\\1", "-o", "out/c"],
        ["rename", whole, "-o", "out/c", *either(rng, "--to-names", "--to-objects")],
        ["prune", whole, "-o", "out/c", "--slots", "--global-step"],
        ["slice", whole, "part=0,2:-", "-o", "out/c"],
        ["slice", whole, "--partition", "w", "--parts", "2", "-o", "out/c"],
        ["diff", whole, prefix],
        ["average", whole, prefix, "-o", "out/c"],
    ]
    if prefix == "ckpt/c":
        lines += [["latest", "ckpt"], ["list", "ckpt"], ["relocate", "ckpt"], ["clean", "ckpt", "--max-to-keep", "1"]]
    if "model.pb" in files:
        lines += [["restore-check", "model.pb", prefix], ["verify", prefix, "--graph", "model.pb"]]
    lines = [["checkpoint", *line] for line in lines]
    if "model.pb" in files:
        lines += [["run", "model.pb", "--checkpoint", prefix, "--feed", "x=[[1,2,3,4]]", "--fetch", "y"],
                  ["validate", "model.pb", "--checkpoint", prefix]]  # fmt: skip
    return [*lines, ["inspect", whole]]


def of_other(rng: random.Random, seed: str, name: str) -> Lines:
    """Command lines that read a file of another kind; feed.pb is a graph that gives x as y."""
    run = ["run", "feed.pb", "--fetch", "y"]
    match seed.split()[0]:
        case "spec":
            return [["build", name, "-o", "out/m.meta", *either(rng, "", "--shapes")]]
        case "cluster":
            place = ["place", "model.pb", "--cluster", name, "-o", "out/p.pb"]
            return [[*place, *either(rng, "", "--strategy greedy")]]
        case "rules":
            return [["validate", "model.pb", "--config", name], ["validate", "model.pb"]]
        case "trace":
            return [
                ["visualize", name, *either(rng, "-o out/t.svg", "-o out/t.html", "-o out/t.txt")],
                ["visualize", "model.pb", "--costs", name, "-o", "out/v.dot"],
                ["inspect", name],
            ]
        case "tfrecord":
            feed = [*run, "--feed", f"x={name}:x"]
            return [["inspect", name], ["inspect", name, "--json"], feed, [*feed, "--batch", "2"]]
        case "events":
            return [["inspect", name], ["inspect", name, "--json"], ["visualize", name, "-o", "out/v.txt"]]
        case _:
            return [
                [*run, "--feed", f"x={name}"],
                [*run, "--feed", f"x={name}:x"],
                [*run, "--feeds", name],
                ["run", name, "--compare", name],
            ]
