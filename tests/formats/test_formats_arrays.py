"""Arrays given on the command line, and arrays written for users."""

from __future__ import annotations

import json
import math
import pickle
import zipfile
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from toolkit.errors import FormatError, GraphmillError, UsageError
from toolkit.formats.arrays.given import read_array, read_arrays, split_key
from toolkit.formats.arrays.output import write_arrays
from toolkit.formats.arrays.tensor import from_array, to_array


def same(actual: Any, expected: Any) -> None:
    expected = np.asarray(expected)
    assert actual.shape == expected.shape
    assert actual.dtype == expected.dtype
    np.testing.assert_array_equal(actual, expected)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[[1,2],[3,4]]", np.array([[1, 2], [3, 4]])),
        ("3.5", np.array(3.5)),
        ("-7", np.array(-7)),
        ("1e-3", np.array(1e-3)),
        ("true", np.array(True)),
        ("[true, false]", np.array([True, False])),
        ("True", np.array(True)),
        ("[1, 2.5]", np.array([1, 2.5])),
        ("[]", np.array([])),
        ("[[], []]", np.zeros((2, 0))),
        ("nan", np.array(math.nan)),
        ("-inf", np.array(-math.inf)),
        ("[NaN, 1]", np.array([math.nan, 1])),
        ('["NaN", 1, "-Infinity"]', np.array([math.nan, 1, -math.inf])),
        ("(1, 2)", np.array([1, 2])),
        ("1+2j", np.array(1 + 2j)),
        ('"text"', np.array(b"text", object)),
        ('[["a"], ["\u00e9"]]', np.array([[b"a"], ["\u00e9".encode()]], object)),
        ("b'\\xff'", np.array(b"\xff", object)),
        ('{"base64": "/w=="}', np.array(b"\xff", object)),
    ],
)
def test_literals(text: str, expected: Any) -> None:
    same(read_array(text), expected)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("foo", "neither an array file .* nor a literal"),
        ("", "neither an array file .* nor a literal"),
        ("[[[[", "neither an array file .* nor a literal"),
        # longer than the name of any file
        (f"[[{'1,' * 200}", r"^'\[\[1,1.{50,60}\.\.\.' is neither an array file .* nor a literal"),
        ("[" * 3000 + "]" * 3000, "neither an array file .* nor a literal"),
        ("__import__('os').getcwd()", "neither an array file .* nor a literal"),
        ("[[1],[1,2]]", "the lists are ragged"),
        ("[" * 90 + "]" * 90, "the lists are nested 89 levels deep; no array is"),
        ('[1, "a"]', "mix strings, numbers or null"),
        ("[1, null]", "mix strings, numbers or null"),
        ('{"a": 1}', "not an object"),
        ("99999999999999999999", "does not fit into 64 bits"),
    ],
)
def test_what_is_no_array(text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        read_array(text)


def test_numpy_files(tmp_path: Path) -> None:
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    np.save(tmp_path / "a.npy", array)
    same(read_array(str(tmp_path / "a.npy")), array)
    (tmp_path / "renamed").write_bytes((tmp_path / "a.npy").read_bytes())
    same(read_array(str(tmp_path / "renamed")), array)
    np.savez_compressed(tmp_path / "b.npz", **{"y:0": array, "text": np.array(["a", "é"])})
    same(read_array(f"{tmp_path}/b.npz:y:0"), array)
    assert read_array(f"{tmp_path}/b.npz:text").tolist() == [b"a", "é".encode()]
    assert list(read_arrays(tmp_path / "b.npz")) == ["y:0", "text"]
    np.savez(tmp_path / "one.npz", only=array)
    same(read_array(f"{tmp_path}/one.npz"), array)
    with pytest.raises(UsageError, match=r"holds 2 arrays; choose one with .*b\.npz:KEY: 'y:0', 'text'"):
        read_array(f"{tmp_path}/b.npz")
    with pytest.raises(UsageError, match=r"has no array 'y'; it holds: 'y:0', 'text'"):
        read_array(f"{tmp_path}/b.npz:y")


def test_pickles_are_not_loaded(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.array([{}], object))
    with pytest.raises(FormatError, match=r"a\.npy: holds Python objects \(a pickle\), which are never loaded"):
        read_array(str(tmp_path / "a.npy"))
    np.savez(tmp_path / "a.npz", x=np.array([{}], object))
    with pytest.raises(FormatError, match=r"a\.npz:x: holds Python objects"):
        read_array(f"{tmp_path}/a.npz")
    (tmp_path / "b.npy").write_bytes(pickle.dumps([1]))
    with pytest.raises(FormatError, match=r"not a whole \.npy array"):
        read_array(str(tmp_path / "b.npy"))


def test_damaged_files(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.arange(100))
    data = (tmp_path / "a.npy").read_bytes()
    for size in range(0, len(data), 37):
        (tmp_path / "cut.npy").write_bytes(data[:size])
        with pytest.raises(FormatError, match=r"cut\.npy: not a whole \.npy array"):
            read_array(str(tmp_path / "cut.npy"))
    np.savez(tmp_path / "a.npz", x=np.arange(100))
    data = (tmp_path / "a.npz").read_bytes()
    for size in range(0, len(data), 53):
        (tmp_path / "cut.npz").write_bytes(data[:size])
        with pytest.raises(FormatError, match=r"cut\.npz"):
            read_array(str(tmp_path / "cut.npz"))
    (tmp_path / "bad.npz").write_bytes(data[:300] + b"!" + data[301:])
    with pytest.raises(FormatError, match=r"bad\.npz:x: damaged"):
        read_array(f"{tmp_path}/bad.npz:x")
    with pytest.raises(GraphmillError, match="there is no such file"):
        read_array(f"{tmp_path}/none.npz:x")


def test_bfloat16_saved_by_numpy(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.array([1.5], ml_dtypes.bfloat16))
    with pytest.raises(FormatError, match="numpy saves bfloat16 so"):
        read_array(str(tmp_path / "a.npy"))


def test_json_files(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text("[[1, 2.5]]")
    same(read_array(str(path)), np.array([[1, 2.5]]))
    path.write_text('{"y:0": [1, "NaN"], "s": "a"}')
    same(read_array(f"{path}:y:0"), np.array([1, math.nan]))
    with pytest.raises(UsageError, match=r"is an object; choose one with .*:KEY: 'y:0', 's'"):
        read_array(str(path))
    with pytest.raises(UsageError, match=r"has no key 'y:1'; did you mean 'y:0'\? It holds"):
        read_array(f"{path}:y:1")
    path.write_text('{"a": [1,\n 2,]}')
    with pytest.raises(FormatError, match=r"a\.json:2:4: not JSON"):
        read_array(str(path))


def test_csv_files(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("1,2\n3,4\n")
    same(read_array(str(path)), np.array([[1, 2], [3, 4]]))
    path.write_text("width, height\n1.5, 2\n\n3, nan\n")
    same(read_array(str(path)), np.array([[1.5, 2], [3, math.nan]]))
    path.write_text("a,b\nc,d\n")
    assert read_array(str(path)).tolist() == [[b"a", b"b"], [b"c", b"d"]]
    path.write_text("1,2\n3\n")
    with pytest.raises(FormatError, match=r"a\.csv:2: a row of 1 value\(s\) after rows of 2"):
        read_array(str(path))
    path.write_text("\n\n")
    with pytest.raises(FormatError, match="holds no rows"):
        read_array(str(path))


def test_split_key() -> None:
    assert split_key("a.npz:y:0") == ("a.npz", "y:0")
    assert split_key("dir.npz/a.NPZ:k") == ("dir.npz/a.NPZ", "k")
    assert split_key("a.npz") == ("a.npz", None)
    assert split_key("[1]") == ("[1]", None)


# -- writing ---------------------------------------------------------------------------------------------

EVERYTHING: dict[str, Any] = {
    "y:0": np.array([[1.1, math.nan, math.inf]], np.float32),
    "file": np.array([b"a", b"\xff"], object),
    "a/b.npy": np.array([1.5, -2], ml_dtypes.bfloat16),
    "f8": np.array([0.5], ml_dtypes.float8_e4m3fn),
    "i4": np.array([-3, 7], ml_dtypes.int4),
    "u4": np.array([15], ml_dtypes.uint4),
    "c": np.array([1 + 2j]),
    "empty": np.zeros((2, 0, 3), np.int32),
    "none": np.zeros((0, 2)),
    "scalar": np.float16(0.1),
    "flag": np.array(True),
    "big": np.array([2**63], np.uint64),
    "unicode": np.array(["é", "long"]),
}


def test_npz(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    write_arrays(path, EVERYTHING)
    back = read_arrays(path)
    assert list(back) == list(EVERYTHING)
    same(back["y:0"], EVERYTHING["y:0"])
    assert back["file"].tolist() == [b"a", b"\xff"]
    same(back["a/b.npy"], np.array([1.5, -2], np.float32))
    same(back["f8"], np.array([0.5], np.float32))
    same(back["i4"], np.array([-3, 7], np.int8))
    same(back["u4"], np.array([15], np.uint8))
    same(back["empty"], EVERYTHING["empty"])
    same(back["scalar"], np.array(0.1, np.float16))
    assert back["unicode"].tolist() == ["é".encode(), b"long"]
    with np.load(path) as archive:  # numpy alone reads it
        assert archive.files == list(EVERYTHING)
    first = path.read_bytes()
    write_arrays(path, EVERYTHING)
    assert path.read_bytes() == first
    assert zipfile.ZipFile(path).testzip() is None


def test_json(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    write_arrays(path, EVERYTHING)
    text = path.read_text()
    assert "NaN," not in text.replace('"NaN",', "")
    value = json.loads(text)
    assert value["y:0"] == [[1.1, "NaN", "Infinity"]]
    assert value["file"] == ["a", {"base64": "/w=="}]
    assert value["c"] == [[1.0, 2.0]]
    assert value["empty"] == [[], []]
    assert value["scalar"] == 0.1
    assert value["big"] == [2**63]
    for key, array in EVERYTHING.items():
        if key not in ("c", "none"):
            read = read_array(f"{path}:{key}")
            assert read.shape == array.shape or array.size == 0
    same(read_array(f"{path}:y:0").astype(np.float32), EVERYTHING["y:0"])


@settings(max_examples=60, deadline=None)
@given(
    array=hnp.arrays(
        st.sampled_from(["f2", "f4", "f8", "i1", "i8", "u8", "?"]), hnp.array_shapes(min_dims=0, min_side=1)
    )
)
def test_json_keeps_every_value(array: Any, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.getbasetemp() / "kept.json"
    write_arrays(path, {"x": array})
    with np.errstate(over="ignore"):
        back = read_array(f"{path}:x").astype(array.dtype)
    same(back, array)


def test_npy(tmp_path: Path) -> None:
    write_arrays(tmp_path / "a.npy", {"x": np.arange(3)})
    same(np.load(tmp_path / "a.npy"), np.arange(3))
    with pytest.raises(UsageError, match=r"a \.npy file holds one array, not 2 \('x', 'y'\)"):
        write_arrays(tmp_path / "b.npy", {"x": 1, "y": 2})
    with pytest.raises(UsageError, match=r"arrays are written to \.npz, \.npy or \.json files"):
        write_arrays(tmp_path / "b.txt", {"x": 1})
    assert [p.name for p in tmp_path.iterdir()] == ["a.npy"]


def test_standard_output_is_json(capsys: pytest.CaptureFixture[str]) -> None:
    write_arrays("-", {"x": np.array([1, 2])})
    assert json.loads(capsys.readouterr().out) == {"x": [1, 2]}


def test_what_has_no_array_form(tmp_path: Path) -> None:
    for name in ("a.npz", "a.json"):
        with pytest.raises(GraphmillError, match="'x' is a resource or variant"):
            write_arrays(tmp_path / name, {"x": np.array([object()])})
    with pytest.raises(GraphmillError, match=r"'x' holds strings that end in NUL bytes.*write \.json"):
        write_arrays(tmp_path / "a.npz", {"x": np.array([b"a\0"], object)})
    assert not list(tmp_path.iterdir())
    write_arrays(tmp_path / "a.json", {"x": np.array([b"a\0"], object)})
    assert read_array(f"{tmp_path}/a.json:x").tolist() == [b"a\0"]


@pytest.mark.parametrize("name", ["float64", "float32", "float16", "int64", "int32", "int16", "uint32", "complex128"])
def test_constants_of_a_file_keep_their_type(name: str, tmp_path: Path) -> None:
    """A constant's array may have a type that is equal to numpy's own and another object."""
    array = np.array([1, 2, 300], name)
    for held in (to_array(from_array(array)), array.astype(array.dtype.newbyteorder("<"))):
        write_arrays(tmp_path / "out.npz", {"x": held})
        with np.load(tmp_path / "out.npz") as read:
            assert read["x"].dtype == array.dtype
            np.testing.assert_array_equal(read["x"], array)
    assert to_array(from_array(array)).dtype is array.dtype
