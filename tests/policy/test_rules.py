"""Policies: what they allow, and paths as they really are."""

from __future__ import annotations

import os
import shlex
import subprocess
from pathlib import Path

import pytest

from toolkit.errors import InvalidArgumentError, NotFoundError, UnimplementedError, UsageError
from toolkit.kernels.cpu.files.file_io import matching
from toolkit.policy.access import Access, Files, RefusedError, Wish
from toolkit.policy.outside import Reach
from toolkit.policy.rules import Policy, exactly, resolve


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """model/ may be read, secret/ may not; links lead from one to the other."""
    for name in ("model/own", "model/sub/own", "secret/key", "model-2/other"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(name.encode())
    (tmp_path / "model/to-file").symlink_to(tmp_path / "secret/key")
    (tmp_path / "model/to-folder").symlink_to(tmp_path / "secret")
    (tmp_path / "model/within").symlink_to("sub/own")
    (tmp_path / "way-in").symlink_to("model")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def files(policy: Policy) -> Files:
    return Files(Access(policy), "n", "ReadFile")


@pytest.mark.parametrize(
    "path",
    ["model/own", "./model/own", "model/../model/own", "way-in/own", "model/within", "file://{}/model/own",
     "{}/model/sub/../own", "secret/../model/own"],
)  # fmt: skip
def test_paths_that_lead_into_what_may_be_read(tree: Path, path: str) -> None:
    path = path.format(tree)
    assert files(Policy(read=(str(tree / "model"),))).read(path).endswith(b"own")


@pytest.mark.parametrize(
    "path",
    ["secret/key", "model/../secret/key", "model/to-file", "model/to-folder/key", "way-in/../secret/key",
     "way-in/to-file", "file://{}/secret/key", "file://{}/model/to-file", "model-2/other", "model/sub/../../secret/key",
     "../model/../../etc/passwd", "~/x", "/proc/self/environ", ".", "/"],
)  # fmt: skip
def test_paths_that_lead_out_of_it(tree: Path, path: str) -> None:
    with pytest.raises(RefusedError) as refused:
        files(Policy(read=(str(tree / "model"),))).read(path.format(tree))
    assert "--allow " in str(refused.value) and "node 'n'" in str(refused.value)


@pytest.mark.parametrize(
    "url",
    ["local://{}/model/own", "simplecache::file://{}/model/own", "zip://key::{}/model/a.zip", "FILE://{}/model/own",
     "s3://bucket/key", "ftp://host/key", "memory://d/key", "ram://d/key", "foo://x"],
)  # fmt: skip
@pytest.mark.parametrize("policy", [Policy(), Policy.everything()], ids=["nothing", "everything"])
def test_urls_are_no_files(tree: Path, url: str, policy: Policy) -> None:
    """What opens local files would take s3://a/b for a file in a folder `s3:` of the working directory."""
    for folder in ("memory:/d", "s3:/bucket"):
        (tree / folder).mkdir(parents=True)
        (tree / folder / "key").write_bytes(b"not from there")
    before = sorted(tree.rglob("*"))
    door, path = files(policy), url.format(tree)
    for job in (lambda: door.read(path), lambda: door.may(Reach.WRITE, path), lambda: door.names(path)):
        with pytest.raises(UnimplementedError, match=r"File system scheme '.*' not implemented") as told:
            job()
        assert "--allow" not in str(told.value)
    assert sorted(tree.rglob("*")) == before


@pytest.mark.parametrize("policy", [Policy(), Policy.everything()], ids=["nothing", "everything"])
def test_an_empty_name_is_no_file(tree: Path, policy: Policy) -> None:
    with pytest.raises(NotFoundError, match="'' is the name of no file"):
        files(policy).read("")


def test_what_does_not_exist_is_told_so(tree: Path) -> None:
    """Allowing it would not help; the path is shown as it was meant."""
    for path, told in (("../absent", f"'../absent' ({tree.parent}/absent), which does not exist; allow it"),
                       ("secret/key", f"'secret/key' ({tree}/secret/key); allow it")):  # fmt: skip
        with pytest.raises(RefusedError) as refused:
            files(Policy()).read(path)
        assert told in str(refused.value)


def test_a_nul_character_is_no_path(tree: Path) -> None:
    with pytest.raises(InvalidArgumentError, match=r"node 'n': ReadFile: .*not the name of a file"):
        files(Policy.everything()).read("model/own\0")


def test_what_to_allow_is_the_smallest_thing_and_can_be_pasted(tree: Path) -> None:
    (tree / "a b,c's").mkdir()
    wishes = {
        "secret/key": Wish(Reach.READ, "secret/key"),
        "a b,c's/x": Wish(Reach.WRITE, "a b,c's/x"),
        "out/ckpt*": Wish(Reach.WRITE, "out/ckpt", is_prefix=True),
        "/": Wish(Reach.LIST, "/"),
    }
    for root, wish in wishes.items():
        with pytest.raises(RefusedError) as refused:
            Access(Policy()).judge([wish], "n", "Op")
        (given,) = shlex.split(str(refused.value).partition("; allow it with --allow ")[2])
        policy = Policy().allowing(given)
        assert {*policy.read, *policy.write} == {os.path.join(tree, root)}  # noqa: PTH118 -- a text with a star
        Access(policy).judge([wish], "n", "Op")
    with pytest.raises(RefusedError) as refused:
        Access(Policy()).judge(wishes.values(), "n", "Op")
    (given,) = shlex.split(str(refused.value).partition("; allow it with --allow ")[2])
    Access(Policy().allowing(given)).judge(wishes.values(), "n", "Op")


@pytest.mark.parametrize("name", ["a*", "two\nlines", "it's \x1b[31m", "\udcff\udcfe", "back\\slash\n"])
def test_a_name_that_is_hard_to_write_is_advised_as_it_is(tree: Path, name: str) -> None:
    """A shell makes of it the path itself, and neither more nor less is allowed."""
    path = os.path.join(tree, name)  # noqa: PTH118 -- any text
    with pytest.raises(RefusedError) as refused:
        Access(Policy()).judge([Wish(Reach.READ, path)], "n", "Op")
    option = str(refused.value).partition("; allow it with --allow ")[2]
    assert option.isprintable()
    script = b"printf %s " + option.encode()
    given = subprocess.run(["bash", "-c", script], capture_output=True, check=True).stdout
    policy = Policy().allowing(os.fsdecode(given))
    assert policy.allows(Reach.READ, resolve(path))
    for other in (path[:-1] + "b", path + "b"):
        assert not policy.allows(Reach.READ, resolve(other))


def test_a_star_in_a_name_is_no_pattern(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder of a model that somebody else named; a link to such a name."""
    for name in ("secret*", "*"):
        (tree / name).mkdir()
        (tree / name / "own").write_bytes(b"own")
        (tree / "link").symlink_to(tree / name)
        monkeypatch.chdir(tree)
        for source in (tree / name, name, f"{name}/own", "link"):
            policy = Policy.of_model(source)
            assert policy.allows(Reach.READ, resolve(f"{name}/own"))
            assert not policy.allows(Reach.READ, resolve("secret/key"))
        assert not Policy().allowing("read=link").allows(Reach.READ, resolve("secret/key"))
        (tree / "link").unlink()
    policy = Policy().with_read(exactly(f"{tree}/s*"))
    policy = policy.with_read(*policy.read)
    assert policy.covers(Reach.READ, exactly(f"{tree}/s*")) and not policy.covers(Reach.READ, f"{tree}/s*")
    assert policy.allows(Reach.READ, resolve(f"{tree}/s*/below"))


def test_several_rights_to_one_path_are_asked_for_at_once(tree: Path) -> None:
    both = [Wish(Reach.READ, "new"), Wish(Reach.WRITE, "new")]
    with pytest.raises(RefusedError, match=rf"may not read and write 'new' .*--allow write={tree}/new$"):
        Access(Policy()).judge(both, "n", "Op")
    with pytest.raises(RefusedError, match=r"--allow write=DIR$"):
        Access(Policy()).require([Reach.READ, Reach.WRITE, Reach.DELETE], "n", "Op")


def test_no_switch_is_advised_that_would_not_help(tree: Path) -> None:
    with pytest.raises(UnimplementedError, match="scheme 'foo' not implemented") as told:
        files(Policy()).checkpoint(Reach.READ, "foo://a/b")
    assert "--allow" not in str(told.value)
    with pytest.raises(RefusedError, match=r"--allow network$"):
        files(Policy()).checkpoint(Reach.READ, "https://a/b")


def test_what_may_be_written_may_be_read(tree: Path) -> None:
    policy = Policy().allowing("write=model")
    assert files(policy).read("model/own") == b"model/own"
    with files(policy).open("model/log", "ab") as file:
        file.write(b"x")
    assert (tree / "model/log").read_bytes() == b"x"
    for path in ("model/to-file", "secret/new", "model-2/new"):
        with pytest.raises(RefusedError):
            files(policy).open(path, "ab")
    assert (tree / "secret/key").read_bytes() == b"secret/key"


def test_a_prefix_stands_for_what_begins_so(tree: Path) -> None:
    policy = Policy().with_write(f"{tree}/out/m*")
    for path in ("out/m.index", "out/m_temp_1/part-0", "out/m"):
        assert policy.allows(Reach.WRITE, resolve(path))
    for path in ("out/n", "out", "m.index"):
        assert not policy.allows(Reach.WRITE, resolve(path))
    assert not Policy().with_read(f"{tree}/model/*").allows(Reach.READ, resolve("model-2/other"))


def test_a_link_that_is_made_between_the_look_and_the_opening(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    door = files(Policy(read=(str(tree / "model"),)))
    (tree / "secret/own").write_bytes(b"secret")
    resolve_first = Files.may

    def swap(link: str, target: str) -> None:
        def may(self: Files, reach: Reach, path: str) -> str:
            judged = resolve_first(self, reach, path)
            (tree / link).rename(tree / "away")
            (tree / link).symlink_to(tree / target)
            return judged

        monkeypatch.setattr(Files, "may", may)

    for link, target in (("model/own", "secret/key"), ("model/sub", "secret")):
        swap(link, target)
        with pytest.raises(OSError, match=str(tree)):
            door.read("model/sub/own" if target == "secret" else "model/own")
        (tree / link).unlink()
        (tree / "away").rename(tree / link)
    monkeypatch.undo()
    monkeypatch.chdir(tree)
    assert door.read("model/sub/own") == b"model/sub/own"
    (tree / "secret").chmod(0o111)  # what may be passed through need not be listed
    assert files(Policy(read=("/",))).read("secret/own") == b"secret"
    (tree / "secret").chmod(0o755)


def test_links_among_the_files_of_a_checkpoint(tree: Path) -> None:
    (tree / "model/c.index").write_bytes(b"")
    (tree / "model/c.data-00000-of-00001").symlink_to(tree / "secret/key")
    with pytest.raises(RefusedError, match="secret/key"):
        files(Policy(read=(str(tree / "model"),))).checkpoint(Reach.READ, "model/c")
    (tree / "model/c.meta").symlink_to(tree / "secret/other")
    with pytest.raises(RefusedError, match=f"--allow read={tree}/secret/key,read={tree}/secret/other$"):
        files(Policy(read=(str(tree / "model"),))).checkpoint(Reach.READ, "model/c")
    assert files(Policy(read=(str(tree),))).checkpoint(Reach.READ, "way-in/c") == str(tree / "model/c")


def test_other_machines(tree: Path) -> None:
    for url in ("s3://bucket/key", "https://host/x", "gs://b/k"):
        assert not Policy().allows(Reach.READ, resolve(url))
        assert Policy(network=True).allows(Reach.WRITE, resolve(url))
        assert Policy().allowing(f"read={url}").allows(Reach.READ, resolve(url))
    assert not Policy().allowing("read=s3://bucket").allows(Reach.READ, resolve("s3://bucket-2/key"))
    # the network is no way round the files of this machine
    for url in ("local:///etc/passwd", "simplecache::s3://b/k", "zip://a::file:///b", "s3://bucket/../../x"):
        assert not Policy(network=True).allows(Reach.READ, resolve(url))
    assert Policy().allows(Reach.WRITE, resolve("memory://a/b"))  # nothing but this process


def test_what_a_user_allows() -> None:
    policy = Policy().allowing("network,python", "read=/a,write=/b", "exit")
    assert policy == Policy(read=("/a",), write=("/b",), network=True, python=True, exit=True)
    home = os.path.realpath(os.path.expanduser("~"))  # noqa: PTH111
    assert Policy().allowing("read=~").read == (home,)
    for text, told in (
        ("netwrok", "network"),
        ("read", "read=DIR"),
        ("write=", "write=DIR"),
        ("network=x", "Expected"),
    ):
        with pytest.raises(UsageError, match=told):
            Policy().allowing(text)


def test_the_default_of_a_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "m").mkdir()
    (tmp_path / "m" / "a.pb").write_bytes(b"")
    assert Policy.of_model(tmp_path / "m").read == (str(tmp_path / "m"),)
    assert Policy.of_model(tmp_path / "m" / "a.pb").read == (str(tmp_path / "m"),)
    for nowhere in ("-", "", None):
        assert Policy.of_model(nowhere) == Policy()
    # a file in a cache of models belongs to the folder in which it is named
    for folder in ("cache/snapshots/1", "cache/blobs", "other/1", "blobs"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "cache/blobs/hash").write_bytes(b"")
    for revision in (tmp_path / "cache/snapshots/1", tmp_path / "other/1"):
        (revision / "a.pb").symlink_to(tmp_path / "cache/blobs/hash")
    own = (str(tmp_path / "cache/snapshots/1"), str(tmp_path / "cache/blobs"))
    assert Policy.of_model(tmp_path / "cache/snapshots/1/a.pb").read == own
    assert Policy.of_model(tmp_path / "cache/snapshots/1").read == own
    assert Policy.of_model(tmp_path / "other/1/a.pb").read == (str(tmp_path / "other/1"),)
    monkeypatch.setenv("HOME", str(tmp_path / "m"))
    assert Policy.of_model(tmp_path / "m" / "a.pb").read == (str(tmp_path / "m" / "a.pb"),)
    (tmp_path / "b.pb").write_bytes(b"")
    assert Policy.of_model(tmp_path / "b.pb").read == (str(tmp_path / "b.pb"),)


def test_grants_do_not_narrow_what_is_trusted() -> None:
    access = Access(Policy.everything())
    access.grant(read="/a*", write="/b*")
    assert access.policy.is_everything
    access = Access(Policy(read=("/a",)))
    access.grant(read="/a/b*", write="/c/d*")
    assert access.policy == Policy(read=("/a",), write=("/c/d*",))


def test_the_names_that_a_pattern_lists(tree: Path) -> None:
    """What allows all names that begin so allows to list those, and no others."""
    for policy, allowed, denied in (
        (Policy().allowing(f"read={tree}/model*"), "{}/model*", "{}/mod*"),
        (Policy().allowing(f"read={tree}/mod*"), "{}/mod*", "{}/m*"),
        (Policy().allowing(f"read={tree}/mod*"), "{}/model*/own", "{}/*"),
        (Policy().allowing(f"read={tree}/mod\\*"), None, "{}/mod*"),
        (Policy().allowing(f"read={tree}/mod"), None, "{}/mod*"),
        (Policy().allowing(f"read={tree}"), "{}/m*", None),
        (Policy().allowing("read=secret"), "model/to-folder/k*", "model/k*"),
    ):
        door = Files(Access(policy), "n", "MatchingFiles")
        if allowed:
            assert matching(door, allowed.format(tree))
        if denied:
            with pytest.raises(RefusedError, match="may not list") as refused:
                matching(door, denied.format(tree))
            (given,) = shlex.split(str(refused.value).partition("; allow it with --allow ")[2])
            matching(Files(Access(policy.allowing(given)), "n", "MatchingFiles"), denied.format(tree))
