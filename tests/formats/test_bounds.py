"""Files that ask for more than they are: few bytes that would take hours or gigabytes, each refused with one line."""

from __future__ import annotations

import gzip
import json
import resource
import warnings
import zipfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO, cast

import numpy as np
import pytest

from schemas.tensor_pb2 import TensorProto
from schemas.tensor_shape_pb2 import TensorShapeProto
from tests.formats.bundle_cases import small_checkpoint
from tests.fuzz import formats_table
from toolkit.errors import DataLossError, FormatError, GraphError, GraphmillError
from toolkit.formats import bounds, io
from toolkit.formats.arrays.given import read_array, read_arrays
from toolkit.formats.arrays.tensor import to_array
from toolkit.formats.bundle import BundleReader, check, wire
from toolkit.formats.bundle.regions import first_overlap
from toolkit.formats.bundle.state import read_state
from toolkit.formats.bundle.table import TableReader
from toolkit.formats.bundle.transfer import convert
from toolkit.formats.inflate import GZIP, ZLIB, inflate
from toolkit.formats.inspection import report
from toolkit.formats.models.collections import variable_def
from toolkit.formats.records import crc, tfrecord
from toolkit.formats.settings.cluster import parse_cluster
from toolkit.formats.settings.documents import load_json, load_yaml


@pytest.fixture(autouse=True)
def little_memory() -> Iterator[None]:
    """Two gigabytes more than there are: what takes memory before it checks fails here, not the machine."""
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (used + (2 << 30), hard))
    yield
    resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def table_of(data: bytes) -> TableReader:
    return TableReader(lambda at, size: data[at : at + size], len(data), "t")


# -- checkpoints -----------------------------------------------------------------------------------------


def rewrite(prefix: Path, change: Callable[[list[tuple[bytes, bytes]]], None]) -> None:
    index = prefix.with_name(prefix.name + ".index")
    entries = formats_table.read(index.read_bytes())
    change(entries)
    index.write_bytes(formats_table.write([formats_table.pack(entries)]))


@pytest.mark.parametrize("count", [2**31 - 1, 2**62, 100_000])
def test_a_header_with_impossibly_many_data_files(tmp_path: Path, count: int) -> None:
    small_checkpoint(tmp_path / "m")
    rewrite(tmp_path / "m", lambda entries: entries.__setitem__(0, (b"", wire.encode_header(count))))
    with pytest.raises(DataLossError, match="data files; there can be 1 to 99,999"):
        BundleReader(tmp_path / "m")
    assert [finding.kind for finding in check.check(str(tmp_path / "m")).findings] == ["index"]


def test_many_data_files_that_hold_nothing_are_one_finding(tmp_path: Path) -> None:
    small_checkpoint(tmp_path / "m")
    rewrite(tmp_path / "m", lambda entries: entries.__setitem__(0, (b"", wire.encode_header(99_999))))
    findings = [finding.message for finding in check.check(str(tmp_path / "m")).findings]
    assert any("99998 of them hold nothing" in message for message in findings)
    assert len(findings) < 10


def test_an_index_that_leads_to_one_block_many_times() -> None:
    block = formats_table.pack([(b"", b""), (b"a", b"x" * 1000)])
    assert len(list(table_of(formats_table.write([block])).entries())) == 2
    with pytest.raises(DataLossError, match="two blocks that share bytes, at offset 0"):
        table_of(formats_table.write([block], [(0, len(block))] * 20_000))


def test_keys_whose_prefixes_repeat() -> None:
    key = b"k" * 50_000
    entry = formats_table.varint(len(key)) + b"\1\0x"
    block = b"\0" + formats_table.varint(len(key)) + b"\0" + key + entry * 60_000 + b"\0\0\0\0\1\0\0\0"
    with pytest.raises(DataLossError, match="share prefixes of more than 32 times its size"):
        list(table_of(formats_table.write([block])).entries())


def test_long_names_in_one_folder_are_no_repetition(tmp_path: Path) -> None:
    names = [("folder/" * 300 + f"{at:06}").encode() for at in range(300)]
    data = formats_table.write([formats_table.pack([(name, b"") for name in names])])
    with pytest.raises(DataLossError):  # without restarts
        list(table_of(data).entries())
    from toolkit.formats.bundle.table import TableWriter

    pieces: list[bytes] = []
    writer = TableWriter(pieces.append)
    for name in names:
        writer.add(name, b"")
    writer.finish()
    assert [key for key, _ in table_of(b"".join(pieces)).entries()] == names


@pytest.mark.parametrize(
    ("dims", "expected"),
    [
        ((2**40, 2**40), "its sizes multiply to more than 2^63 bytes"),
        ((0, 2**62, 2**62), "its sizes multiply to more than 2^63 bytes"),
        ((-1,), "a dimension has the size -1"),
        ((1,) * 65, "it has more than 64 dimensions"),
    ],
)
def test_entries_of_impossible_shapes(tmp_path: Path, dims: tuple[int, ...], expected: str) -> None:
    small_checkpoint(tmp_path / "m")

    def change(entries: list[tuple[bytes, bytes]]) -> None:
        entries.append((b"zz", wire.encode_entry(wire.RawEntry(dtype=1, dims=dims))))

    rewrite(tmp_path / "m", change)
    with pytest.raises(DataLossError, match="'zz' has an impossible shape: " + expected.replace("^", r"\^")):
        BundleReader(tmp_path / "m")


def test_a_part_that_is_listed_many_times(tmp_path: Path) -> None:
    small_checkpoint(tmp_path / "m")

    def change(entries: list[tuple[bytes, bytes]]) -> None:
        at = next(at for at, (key, _) in enumerate(entries) if key == b"part")
        entry = wire.decode_entry(entries[at][1])
        entry.slices *= 1000
        entries[at] = (b"part", wire.encode_entry(entry))

    rewrite(tmp_path / "m", change)
    with BundleReader(tmp_path / "m") as reader, pytest.raises(DataLossError, match="'part' lists a part twice"):
        reader.read("part")


def test_an_entry_without_a_name(tmp_path: Path) -> None:
    small_checkpoint(tmp_path / "m")
    rewrite(tmp_path / "m", lambda entries: entries.insert(1, (b"", entries[2][1])))
    with pytest.raises(DataLossError, match="it has no name"):
        BundleReader(tmp_path / "m")


def test_overlaps_are_found_in_any_dimension() -> None:
    grid = [((y, y + 1), (x, x + 2)) for y in range(40) for x in range(0, 40, 2)]
    assert first_overlap(grid) is None
    assert first_overlap([*grid, ((7, 8), (3, 5))]) is not None
    assert first_overlap([(), ()]) == (0, 1)
    assert first_overlap([()]) is None


# -- compressed data -------------------------------------------------------------------------------------


def test_inflate_takes_what_gzip_takes() -> None:
    data = bytes(range(256)) * 5000
    assert inflate(gzip.compress(data) + b"\0" * 300_000 + gzip.compress(data), GZIP) == data + data
    assert inflate(zlib.compress(data), ZLIB) == data
    assert inflate(zlib.compress(bytes(50 << 20)), ZLIB) == bytes(50 << 20)  # a thousand times, and small


@pytest.mark.parametrize("damage", [b"", b"abc", gzip.compress(b"abc" * 1000, mtime=0)[:-3]], ids=["", "abc", "cut"])
def test_inflate_of_damaged_data(damage: bytes) -> None:
    with pytest.raises(FormatError, match="compressed data"):
        inflate(damage, GZIP)


def test_inflate_stops_at_its_bound() -> None:
    with pytest.raises(FormatError, match="compressed bytes become more than 67,108,864; if they should"):
        inflate(zlib.compress(bytes(65 << 20), 1), ZLIB)


def test_a_compressed_record_that_is_mostly_nothing(tmp_path: Path) -> None:
    length = (1 << 40).to_bytes(8, "little")
    head = length + crc.masked(length).to_bytes(4, "little")
    (tmp_path / "a.gz").write_bytes(gzip.compress(head + bytes(1 << 20)))
    with pytest.raises(DataLossError, match="record 0 at offset 0 has 1,099,511,627,776 bytes; from a compressed"):
        list(tfrecord.read_records(tmp_path / "a.gz", tfrecord.GZIP))


# -- text ------------------------------------------------------------------------------------------------


def laughs(merge: bool) -> str:
    rows = ["x0: &x0 {a: 1}"]
    for level in range(1, 30):
        many = ", ".join([f"*x{level - 1}"] * 10)
        rows.append(f"x{level}: &x{level} {{<<: [{many}], k{level}: 1}}" if merge else f"x{level}: &x{level} [{many}]")
    return "\n".join(rows)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (laughs(False), "f:6: the aliases stand for more than 100,000 values"),
        (laughs(True), "f:6: the aliases stand for more than 100,000 values"),
        ("a: &a\n  - *a", "f:1: an alias contains itself"),
        ("[" * 100_000, "f:1: not valid YAML: it is nested more than 100 levels deep"),
        ("- " * 100_000, "f:1: not valid YAML: it is nested more than 100 levels deep"),
        ("{a: " * 100_000, "f:1: not valid YAML: it is nested more than 100 levels deep"),
        ("a: 1\nb: " + "9" * 5000, "f:2: not valid YAML: a number has more than 4,300 characters"),
        ("a: 2020-99-99", "f:1: not valid YAML: '2020-99-99' is not timestamp"),
        ("a: !!int x", "f:1: not valid YAML: 'x' is not a whole number"),
        ("a: !!bool x", "f:1: not valid YAML: 'x' is not bool"),
        ("a: !!python/name:os.system", "f:1: not valid YAML: could not determine a constructor"),
        ("a: \0", "f: not valid YAML: control characters are not allowed"),
    ],
)
def test_yaml(text: str, expected: str) -> None:
    with pytest.raises(FormatError) as caught:
        load_yaml(text, "f")
    assert str(caught.value).startswith(expected)


def test_yaml_with_honest_aliases() -> None:
    assert load_yaml("base: &b {x: 1, y: 2}\none: {<<: *b, y: 3}\nlist: [*b, *b]")["one"] == {"x": 1, "y": 3}
    assert load_yaml(b"\xff\xfea\0:\0 \x001\0") == {"a": 1}
    assert load_yaml("") is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[" * 100_000, "f: the JSON is nested too deeply"),
        ("9" * 5000, "f: not JSON: a number has more than 4,300 digits"),
        ('{\n"a" 1}', "f:2:5: not JSON: Expecting ':' delimiter"),
        (b'"\xff"', "f: JSON that is not UTF-8"),
        ('{"a": "\\ud800"}', "f: JSON with half of a surrogate pair (\\uD800 to \\uDFFF)"),
        ('{"a": 1, "a": 2}', "f: the key 'a' is given twice"),
    ],
)
def test_json(text: str | bytes, expected: str) -> None:
    with pytest.raises(FormatError) as caught:
        load_json(text, "f", unique=True)
    assert str(caught.value) == expected


@pytest.mark.parametrize("text", ["local: {CPU: 1000000000}", "local: {GPU: " + "9" * 5000 + "}"])
def test_clusters_of_too_many_devices(text: str) -> None:
    with pytest.raises(FormatError, match="devices can be 65,536 at most"):
        parse_cluster(text, "c")
    tasks = "\n".join(f"    - {{devices: {{CPU: 60000, GPU: {at}}}}}" for at in range(3))
    with pytest.raises(FormatError, match="c:4: the cluster has more than 65,536 devices"):
        parse_cluster(f"jobs:\n  w:\n{tasks}", "c")
    with pytest.raises(FormatError, match="must be at least 1"):
        parse_cluster("local: {CPU: \u00b2}", "c")


# -- tensors ---------------------------------------------------------------------------------------------


def tensor(dims: tuple[int, ...], **fields: object) -> TensorProto:
    shape = TensorShapeProto(dim=[TensorShapeProto.Dim(size=size) for size in dims])
    return TensorProto(**{"dtype": 1, "tensor_shape": shape, **fields})  # type: ignore[arg-type]


@pytest.mark.parametrize("values", [[], [1.0], [1.0, 2.0]])
def test_tensors_that_repeat_their_last_value(values: list[float]) -> None:
    with pytest.raises(GraphError, match="repeats its last value to 4,398,046,511,104 bytes; a tensor of a graph has"):
        to_array(tensor((2**40,), float_val=values))
    assert to_array(tensor((1000, 1000), float_val=values)).shape == (1000, 1000)


@pytest.mark.parametrize("dims", [(2**40, 2**40), (0, 2**62, 2**62), (1,) * 65])
def test_tensors_of_impossible_shapes(dims: tuple[int, ...]) -> None:
    for fields in ({"float_val": [1.0]}, {"tensor_content": b"\0" * 4}):
        with pytest.raises(GraphError):
            to_array(tensor(dims, **fields))


def test_string_tensors() -> None:
    for content in (b"\xff" * 100, b"\x80" * 1000 + b"\1", b"\xff" * 9 + b"\1" + b"x"):
        with pytest.raises(GraphError):
            to_array(tensor((1,), dtype=7, tensor_content=content))
    with pytest.raises(GraphError, match="repeats its last value"):
        to_array(tensor((2**30,), dtype=7, string_val=[b"a", b"b"]))
    assert to_array(tensor((3,), dtype=7)).tolist() == [b"", b"", b""]


def test_half_values_keep_their_low_bits() -> None:
    found = to_array(tensor((2,), dtype=19, half_val=[0x13C00, -1]))
    assert found.view(np.uint16).tolist() == [0x3C00, 0xFFFF]


def test_every_bound_is_named_in_the_table() -> None:
    names = [name for name in vars(bounds) if name.isupper()]
    assert [name for name in names if name not in (bounds.__doc__ or "")] == []
    assert issubclass(FormatError, GraphmillError)


# -- arrays ----------------------------------------------------------------------------------------------


def npy(header: str, data: bytes = b"", version: bytes = b"\1\0") -> bytes:
    text = header.encode("latin-1")
    return b"\x93NUMPY" + version + len(text).to_bytes(2 if version == b"\1\0" else 4, "little") + text + data


def described(descr: str, shape: str, order: str = "False") -> str:
    return f"{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}, }}"


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (npy(described("'<f4'", "(1099511627776,)")), r"takes 4,398,046,511,104 bytes, of which 0 are there"),
        (npy(described("'<f4'", "(0, 4611686018427387904)")), "its sizes multiply to more than 2^63 bytes"),
        (npy(described("'<f4'", "(-1,)")), "a dimension has the size -1"),
        (npy(described("'<f4'", "(1.5,)")), "the header is damaged"),
        (npy(described("'<f4'", "(True,)")), "the header is damaged"),
        (npy(described("'<f4'", "(2,)", "2")), "the header is damaged"),
        (npy("(" * 5000), "the header is damaged"),
        (npy("-" * 9999), "the header is damaged"),
        (npy("__import__('os')"), "the header is damaged"),
        (npy("{}"), "the header is damaged"),
        (npy(described("'|O'", "(1,)"), b"x" * 8), "holds Python objects (a pickle), which are never loaded"),
        (npy(described("[('a', '|O')]", "(1,)"), b"x" * 8), "holds records of several fields"),
        (npy(described("'<i4,<i4'", "(1,)"), b"x" * 8), "holds records of several fields"),
        (npy(described("'|S0'", "(1099511627776,)")), "elements of type '|S0', which have no bytes"),
        (npy(described("'<f3'", "(1,)"), b"x" * 8), "there is no type '<f3'"),
        (npy(described("'<U1'", "(1,)"), b"\xff" * 4), "strings that are not Unicode"),
        (npy(described("'<f4'", "(1,)"), b"x" * 8, b"\7\0"), "version 7 is not known"),
        (b"\x93NUMPY\2\0\xff\xff\xff\x7f{}", "a header of 2,147,483,647 bytes"),
        (b"\x93NUM", "it does not begin as one"),
    ],
)
def test_npy_files(data: bytes, expected: str, tmp_path: Path) -> None:
    (tmp_path / "a.npy").write_bytes(data)
    with pytest.raises(FormatError) as caught:
        read_array(str(tmp_path / "a.npy"))
    assert expected in str(caught.value) and str(caught.value).startswith(str(tmp_path / "a.npy"))
    assert "\n" not in str(caught.value)
    with zipfile.ZipFile(tmp_path / "a.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("x.npy", data)
    with pytest.raises(FormatError) as caught:
        read_array(str(tmp_path / "a.npz"))
    assert expected in str(caught.value) and ":x: " in str(caught.value)
    assert check.check_file(str(tmp_path / "a.npz")).findings


def test_npy_files_that_numpy_writes(tmp_path: Path) -> None:
    for array in (np.asfortranarray(np.ones((3, 4))), np.array(5), np.zeros((0, 3)), np.arange(3, dtype=">i2")):
        np.save(tmp_path / "a.npy", array)
        assert np.array_equal(read_array(str(tmp_path / "a.npy")), array)
    python_2 = npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2L,), }", np.array([1, 2], np.float32).tobytes())
    (tmp_path / "b.npy").write_bytes(python_2)
    assert read_array(str(tmp_path / "b.npy")).tolist() == [1, 2]


def archive_of(path: Path, members: list[tuple[str, bytes]], kind: int = zipfile.ZIP_STORED) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of names that come twice
        with zipfile.ZipFile(path, "w", kind) as archive:
            for name, data in members:
                archive.writestr(name, data)


ONE = npy(described("'<f4'", "(1,)"), b"\0" * 4)


@pytest.mark.parametrize(
    ("members", "kind", "expected"),
    [
        ([("x.npy", ONE), ("x.npy", ONE)], zipfile.ZIP_STORED, "'x.npy' is in it twice"),
        ([("x.npy", ONE)], zipfile.ZIP_BZIP2, "'x.npy' is compressed in way 12"),
        ([("x.npy", ONE), ("__graphmill__.json", b"[]")], zipfile.ZIP_STORED, "is not as graphmill writes it"),
        (
            [("x.npy", ONE), ("__graphmill__.json", b'{"x": {"dtype": "string"}}')],
            zipfile.ZIP_STORED,
            "cannot be string",
        ),
        ([("x.npy", ONE), ("__graphmill__.json", b'{"x": {"dtype": "int4"}}')], zipfile.ZIP_STORED, "cannot be int4"),
        ([("x.npy", ONE), ("__graphmill__.json", b"{" * 5000)], zipfile.ZIP_STORED, "not JSON"),
    ],
)
def test_archives(members: list[tuple[str, bytes]], kind: int, expected: str, tmp_path: Path) -> None:
    archive_of(tmp_path / "a.npz", members, kind)
    found = check.check_file(str(tmp_path / "a.npz"))
    assert [expected in finding.message for finding in found.findings] == [True]


def test_archives_whose_members_share_bytes(tmp_path: Path) -> None:
    archive_of(tmp_path / "a.npz", [("x.npy", ONE), ("y.npy", ONE), ("z.npy", ONE)])
    data = (tmp_path / "a.npz").read_bytes()
    start = data.index(b"PK\1\2")
    entry = data[start : data.index(b"PK\1\2", start + 4)]
    entries = b"".join(entry.replace(b"x.npy", name) for name in (b"0.npy", b"1.npy", b"2.npy", b"3.npy"))
    end = b"PK\5\6" + bytes(4) + (4).to_bytes(2, "little") * 2
    head = data[:200]
    end += len(entries).to_bytes(4, "little") + len(head).to_bytes(4, "little") + bytes(2)
    (tmp_path / "b.npz").write_bytes(head + entries + end)
    with pytest.raises(FormatError, match="its members take 284 bytes, and there are 200"):
        read_arrays(tmp_path / "b.npz")


def test_archives_that_claim_too_much(tmp_path: Path) -> None:
    archive_of(tmp_path / "a.npz", [("x.npy", ONE)], zipfile.ZIP_DEFLATED)
    data = bytearray((tmp_path / "a.npz").read_bytes())
    at = data.index(b"PK\1\2") + 24
    data[at : at + 4] = (2**31).to_bytes(4, "little")
    (tmp_path / "a.npz").write_bytes(data)
    with pytest.raises(FormatError, match=r"'x\.npy' cannot become 2,147,483,648 bytes from"):
        read_arrays(tmp_path / "a.npz")


def safetensors(path: Path, header: object, data: bytes) -> str:
    text = (header if isinstance(header, str) else json.dumps(header)).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)
    return str(path)


def flat(start: int, end: int, dtype: str = "U8") -> dict[str, object]:
    return {"dtype": dtype, "shape": [end - start], "data_offsets": [start, end]}


@pytest.mark.parametrize(
    ("header", "kind", "expected"),
    [
        ({"a": flat(0, 4), "b": flat(2, 6)}, "index", "tensor 'b' shares bytes with 'a'"),
        ({"a": flat(0, 4), "b": flat(0, 4)}, "index", "tensor 'b' shares bytes with 'a'"),
        ({"a": flat(0, 3), "b": flat(5, 8)}, "gap", "2 bytes at offset"),
        ({"a": flat(0, 6)}, "gap", "2 bytes at offset"),
        ('{"a": {"dtype": "U8", "shape": [8], "data_offsets": [0, 8]}, "a": 1}', "index", "the key 'a' is given twice"),
        ({"a": {"dtype": "U8", "shape": [2**62, 4, 0], "data_offsets": [0, 0]}}, "index", "more than 2^63 bytes"),
        ({"a": {"dtype": "U8", "shape": [1] * 65, "data_offsets": [0, 1]}}, "index", "more than 64 dimensions"),
        ({"a": {"dtype": "U8", "shape": [-1], "data_offsets": [0, 8]}}, "index", "not a list of sizes"),
        ({"a": {"dtype": [], "shape": [8], "data_offsets": [0, 8]}}, "index", "has type []"),
        ("[" * 100_000, "index", "nested too deeply"),
        ("null", "index", "it is no object"),
        ({"__metadata__": 1}, "index", "'__metadata__' is no object"),
        ({"__metadata__": {"graphmill.strings": "[]"}}, "index", "'graphmill.strings' is no object"),
        (
            {"__metadata__": {"graphmill.strings": '{"s": {"dtype": "string", "shape": [9], "base64": ["YQ=="]}}'}},
            "index",
            "has 1 strings, or some that are not base64",
        ),
        ({"a": flat(0, 8), "__metadata__": {"graphmill.dtypes": '{"a": "resource"}'}}, "index", "cannot hold resource"),
    ],
)
def test_safetensors(header: object, kind: str, expected: str, tmp_path: Path) -> None:
    found = check.check_file(safetensors(tmp_path / "a.safetensors", header, bytes(8)))
    assert (found.findings[0].kind, expected in found.findings[0].message) == (kind, True)


def test_safetensors_without_gaps(tmp_path: Path) -> None:
    path = safetensors(tmp_path / "a.safetensors", {"b": flat(0, 4), "e": flat(4, 4), "a": flat(4, 8)}, bytes(8))
    assert check.check_file(path).findings == []


def test_tensors_that_share_their_bytes_are_not_copied(tmp_path: Path) -> None:
    small_checkpoint(tmp_path / "m")

    def change(entries: list[tuple[bytes, bytes]]) -> None:
        value = dict(entries)[b"bias"]
        entries += [(f"x{at:03}".encode(), value) for at in range(200)]

    rewrite(tmp_path / "m", change)
    with BundleReader(tmp_path / "m") as reader:
        assert reader.read("x000").tolist() == reader.read("bias").tolist()
    assert {finding.kind for finding in check.check(str(tmp_path / "m")).findings} == {"overlap"}
    with pytest.raises(DataLossError, match="some share their bytes"):
        convert(tmp_path / "m", tmp_path / "c")
    assert not list(tmp_path.glob("c*"))


# -- what else -------------------------------------------------------------------------------------------


class Endless:
    """A pipe from which zeros come."""

    def read(self, size: int) -> bytes:
        return bytes(size)


def test_a_pipe_that_does_not_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(io, "PROTO_LIMIT", 10 << 20)
    with pytest.raises(FormatError, match="more than 10,485,760 bytes come through the pipe"):
        io.read_stream(cast(BinaryIO, Endless()), "standard input")


@pytest.mark.parametrize("seconds", [1e308, -1e18, float("nan"), float("inf")])
def test_times_that_no_calendar_has(seconds: float) -> None:
    times: dict[str, object] = {
        "steps": None,
        "wall_time": [0.0, seconds],
        "events": {},
        "tags": {},
        "version": "",
        "bytes": 1,
    }
    assert "from 1970-01-01 00:00:00 to " in report.render({"kind": "events", "file": "e", **times})


def test_what_parsers_say_of_long_texts_is_short(tmp_path: Path) -> None:
    (tmp_path / "checkpoint").write_text("(" * 100_000)
    with pytest.raises(FormatError) as caught:
        read_state(tmp_path)
    assert "checkpoint:1:1: not a checkpoint state file: " in str(caught.value)
    assert len(str(caught.value)) < 1000


def test_collections_whose_items_are_no_variables() -> None:
    with pytest.raises(FormatError, match="an item that is no VariableDef"):
        variable_def(b"\xff\xff")
