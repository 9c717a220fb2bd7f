"""Strings against TensorFlow."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from itertools import product
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.kernels.op_suite import COMPLEX, FLOATS, INTS, SAME, UINTS, Case, check, run_ours, sample, special, suite
from toolkit.errors import InvalidArgumentError
from toolkit.kernels.cpu.strings import basic as string_basic

pytestmark = pytest.mark.tensorflow

BAD = {"error": "INVALID_ARGUMENT"}


def s(*values: Any, shape: Any = None) -> Any:
    """A string tensor; one value alone is a scalar unless `shape` says otherwise."""
    flat = np.empty(len(values), object)
    flat[:] = [v.encode() if isinstance(v, str) else v for v in values]
    return flat.reshape(() if shape is None and len(values) == 1 else (-1,) if shape is None else shape)


WORDS = s("Hello World", "", "  tab\tand\nline  ", "ÄÖü ß 漢字 😀", b"\x00\xff\xfe", "a,b,,c", "xyz" * 20, "İstanbul")
GRID = s("ab", "cd", "ef", "gh", "", "ij", shape=(2, 3))


def basics() -> Iterator[Case]:
    yield Case("StringJoin", [[WORDS, WORDS]], {"separator": "-"})
    yield Case("StringJoin", [[WORDS, s("x"), WORDS]])
    yield Case("StringJoin", [[s("a"), s("b")]], {"separator": ", "})
    yield Case("StringJoin", [[GRID, s("!")]])
    yield Case("StringJoin", [[GRID, WORDS]], **BAD)
    yield Case("StringJoin", [[np.zeros((0,), object), s("x")]])
    for op, encoding in product(("StringLower", "StringUpper"), ("", "utf-8")):
        yield Case(op, [s("Hello World", "", "a,b", "ÄÖü 漢字", shape=(2, 2))], {"encoding": encoding})
    yield Case("StringLower", [WORDS], {"encoding": "latin-1"}, **BAD)
    yield Case("StringStrip", [WORDS])
    for unit in ("BYTE", "UTF8_CHAR"):
        yield Case("StringLength", [WORDS], {"unit": unit})
        text = s("Hello", "wörld", "漢字かな😀", shape=(3,))
        for position, length in ((0, 2), (1, 100), (-2, 2), (-3, 1), (2, 0), (5, 1)):
            for index in (np.int32, np.int64):
                yield Case("Substr", [text, index(position), index(length)], {"unit": unit})
        yield Case("Substr", [text, np.int32([0, 1, -1]), np.int32([1, 2, 3])], {"unit": unit})
        yield Case("Substr", [s("Hello"), np.int32([0, 1, -1]), np.int32([1, 2, 3])], {"unit": unit})
        yield Case("Substr", [GRID[:, :2], np.int32([[0], [1]]), np.int32([[1], [1]])], {"unit": unit}, error=SAME)
        yield Case("Substr", [text, np.int32(40), np.int32(1)], {"unit": unit}, **BAD)
        yield Case("Substr", [text, np.int32(-40), np.int32(1)], {"unit": unit}, **BAD)
        yield Case("Substr", [text, np.int32([1, 1]), np.int32([1, 1])], {"unit": unit}, **BAD)
    lines = s("a b  c", "", " x ", "no", shape=(4,))
    for delimiter, skip in product((" ", "", "ab", "||"), (True, False)):
        yield Case("StringSplit", [lines, s(delimiter)], {"skip_empty": skip})
    for separator, limit in product(("", " ", "  ", ",", "b"), (-1, 0, 1, 2)):
        yield Case("StringSplitV2", [lines, s(separator)], {"maxsplit": limit})
        yield Case("StringSplitV2", [s("a,b,,c", ",", "\ta \n b", shape=(3,)), s(separator)], {"maxsplit": limit})
    yield Case("StringSplitV2", [np.zeros((0,), object), s("")])
    yield Case("StringSplitV2", [s("a b"), s("")], **BAD)
    yield Case("StringSplit", [s("a b"), s("")], **BAD)
    cube = s(*"abcdefgh", shape=(2, 2, 2))
    for axes, keep in product(([0], [1, 2], [2, 1], [-1], [0, 1, 2], [2, 0, 1], []), (True, False)):
        yield Case("ReduceJoin", [cube, np.int32(axes)], {"keep_dims": keep, "separator": "+"})
    yield Case("ReduceJoin", [s("a"), np.int32([])])
    yield Case("ReduceJoin", [cube, np.int32([3])], error="OUT_OF_RANGE")
    yield Case("ReduceJoin", [cube, np.int32([0, 0])], **BAD)
    for ids in ([0, 2, 0], [1, -1, 1]):
        yield Case(
            "UnsortedSegmentJoin", [s("x", "y", "z"), np.int32(ids), np.int32(3)], {"separator": ":"}, error=SAME
        )
    yield Case("UnsortedSegmentJoin", [GRID, np.int64([1, 1]), np.int32(2)])
    yield Case("UnsortedSegmentJoin", [s("x", "y"), np.int32([0, 3]), np.int32(3)], **BAD)
    for widths, pad, keep in product(([2], [3, 1], [4]), (-1, 0, 1), (True, False)):
        attrs = {
            "separator": "|", "ngram_widths": widths, "left_pad": "LP", "right_pad": "RP", "pad_width": pad,
            "preserve_short_sequences": keep,
        }  # fmt: skip
        for splits in (np.int64([0, 3, 3, 6]), np.int32([0, 1, 6])):
            yield Case("StringNGrams", [s(*"abcdef"), splits], attrs)
    yield Case("StringNGrams", [s(*"abc"), np.int64([0, 4])], attrs, **BAD)
    yield Case("StringNGrams", [s(*"abc"), np.int64([0, 2, 1, 3])], attrs, **BAD)
    yield Case("StringNGrams", [np.zeros((0,), object), np.int64([0, 0])], attrs, error=SAME)
    for pad in (True, False):
        yield Case("EncodeBase64", [WORDS], {"pad": pad})
        yield Case("DecodeBase64", [run_ours(Case("EncodeBase64", [WORDS], {"pad": pad}))[0]])
    for text in ("a", "ab+/", "ab=", "abc==", "a b c"):
        yield Case("DecodeBase64", [s(text)], error=SAME)


PATTERNS = [
    "", "a", "[a-c]+", "x*", r"\d+", r"\w", r"\s+", "^a", "b$", "(a)(b)?", "(?i)HELLO", r"[[:punct:]]", "[^[:alpha:] ]",
    r"[!\"#$%&()\*\+,-\./:;<=>?@\[\\\]^_`{|}~']", r"\pL", r"\p{Lu}+", r"\PL", ".", "l{2,3}", "(?:a|b)+?", r"\bo", "()",
    "a|", r"\Qa,b\E", r"(?P<n>o)", "[]a]", "[^]a]", r"\x41|\x{42}", "[a-]", r"[\d,]", "(?s).+", r"\z",
]  # fmt: skip


def regexes() -> Iterator[Case]:
    texts = s(
        "Hello World", "aab ab", "", "a,b,,c", "x.y[z]{!}~", "ÄÖü 漢字", "line\nbreak", "12 34x", "abAB", shape=(3, 3)
    )
    for pattern in PATTERNS:
        yield Case("StaticRegexFullMatch", [texts], {"pattern": pattern}, id=f"match-{pattern!a}")
        yield Case("RegexFullMatch", [texts, s(pattern)], id=f"match-{pattern!a}")
        for everywhere in (True, False):
            attrs = {"pattern": pattern, "rewrite": "<\\0>", "replace_global": everywhere}
            yield Case("StaticRegexReplace", [texts], attrs, id=f"{pattern!a}-{everywhere}")
    for rewrite in ("-", "", "\\1\\2", "\\\\", "\\0\\0", "\\3", "\\x", "\\"):
        for everywhere in (True, False):
            more = {"replace_global": everywhere}
            inputs = [texts, s("(a)(b)?"), s(rewrite)]
            yield Case("RegexReplace", inputs, more, id=f"rewrite-{rewrite!a}-{everywhere}", error=SAME)
    for pattern in ("(", "a)", "[", "a**b", "(?=a)", r"(a)\1", "*", r"\8", "(?<!a)", "[[:no:]]", "a{2,1}", "(?P<1>a)"):
        yield Case("RegexFullMatch", [texts, s(pattern)], id=f"bad-{pattern!a}", error=SAME)
        yield Case("RegexReplace", [texts, s(pattern), s("")], id=f"bad-{pattern!a}", error=SAME)
    yield Case("RegexFullMatch", [texts, s("a", shape=(1,))], **BAD)


# (no byte that is not UTF-8: TensorFlow's Python cannot decode its own message about that)
ATOMS = [b"a", b"b", b".", rb"\d", rb"\pL", b"[a-c]", b"[^a]", b"(a|ab)", b"(a*)", b"()", rb"\b", b"^", b"$",
         b"\xc3\xa4", b"(?i)A", b"x{2}", rb"\x{e4}", b"(b+)", rb"\C", b"[[:alpha:]]",
         rb"\z", b"|", b"(", b")"]  # fmt: skip
REPEATS = [b"", b"", b"", b"*", b"+", b"?", b"*?", b"{1,2}", b"{0}"]
ODD_TEXTS = s(
    "", "a", "aab ab", "abab", "ääb", b"\xff\xfea", "xxx1", "line\nb", "漢", b"\xed\xa0\x80z", b"a\xf4\x90\x80\x80"
)


def random_regexes() -> Iterator[Case]:
    """Patterns and rewrites as they come, over text that is not always UTF-8."""
    random = np.random.default_rng(5)
    for number in range(60):
        pattern = b"".join(
            ATOMS[random.integers(len(ATOMS))] + REPEATS[random.integers(len(REPEATS))]
            for _ in range(random.integers(1, 6))
        )
        rewrite = (b"-", rb"<\0>", rb"\1", rb"\2\1", b"", rb"\x", b"\\")[random.integers(7)]
        more = {"replace_global": bool(random.integers(2))}
        yield Case("RegexFullMatch", [ODD_TEXTS, s(pattern)], id=f"random-match-{number}", error=SAME)
        yield Case("RegexReplace", [ODD_TEXTS, s(pattern), s(rewrite)], more, id=f"random-replace-{number}", error=SAME)


@pytest.mark.parametrize("pattern", ["(a+)+$", "(a|a)*c", "(a?){50}a{50}b", "(.*)(.*)(.*)(.*)[^a]$"])
def test_no_pattern_takes_time_without_end(pattern: str) -> None:
    """With an engine that goes back, each of these takes longer than the universe is old."""
    texts = s("a" * 20_000 + "!")
    rewrite = {"pattern": pattern, "rewrite": "x", "replace_global": True}
    run_ours(Case("StaticRegexFullMatch", [texts], {"pattern": pattern}))
    run_ours(Case("RegexFullMatch", [texts, s(pattern)]))
    run_ours(Case("StaticRegexReplace", [texts], rewrite))


def hashes() -> Iterator[Case]:
    text = bytes(range(256))
    # every length has its own path through the hash
    many = s(*(text[i : i + n] for i, n in enumerate([*range(70), 100, 127, 128, 129, 191, 192, 193])))
    for buckets in (10, 2**31, 2**62 + 3):
        for op in ("StringToHashBucketFast", "StringToHashBucket"):
            yield Case(op, [many], {"num_buckets": buckets})
            yield Case(op, [WORDS.reshape(2, 4)], {"num_buckets": buckets})
        for key in ([1, 2], [0, 0], [-5, 2**62]):
            yield Case("StringToHashBucketStrong", [many], {"num_buckets": buckets, "key": key})
    yield Case("StringToHashBucketFast", [np.zeros((0,), object)], {"num_buckets": 3})
    yield Case("StringToHashBucketStrong", [s("a")], {"num_buckets": 3, "key": [1]}, **BAD)


def numbers() -> Iterator[Case]:
    for dtype in ("float32", "float64", "int32", "int64", "uint32", "uint64"):
        yield Case("StringToNumber", [s("0", "12", " 7 ", "+5")], {"out_type": dtype})
        for text in ("-3", "1.5", "1e3", ".5", "5.", "abc", "", "1_0", "0x10", "99999999999", "18446744073709551616",
                     "inf", "-Infinity", "nan", "1e400", "1 2", "1e", "--1", "٣"):  # fmt: skip
            yield Case("StringToNumber", [s(text)], {"out_type": dtype}, error=SAME, id=f"{dtype}-{text!a}")
    for dtype in (*FLOATS, *INTS, *UINTS, *COMPLEX, "bool"):
        yield Case("AsString", [sample(dtype, (2, 3))])
        yield Case("AsString", [special(dtype)], id=f"{dtype}-special")
    reals = np.array([0, 1.5, -2.25, 1e-7, 123456789.125, 1e20, np.inf, -np.inf, 1 / 3])
    for dtype, precision, width, fill in product(
        (np.float32, np.float64), (-1, 0, 3), (-1, 12), ("", "0", " ", "+", "-")
    ):
        for notation in ({}, {"scientific": True}, {"shortest": True}):
            attrs = {"precision": precision, "width": width, "fill": fill, **notation}
            yield Case("AsString", [reals.astype(dtype)], attrs)
    for width, fill in product((-1, 6), ("", "0", " ", "+", "-")):
        yield Case("AsString", [np.int32([0, 42, -7])], {"width": width, "fill": fill})
    yield Case("AsString", [np.int32([1])], {"precision": 2}, **BAD)
    yield Case("AsString", [np.int32([1])], {"scientific": True}, **BAD)
    yield Case("AsString", [np.float32([1])], {"scientific": True, "shortest": True}, **BAD)
    yield Case("AsString", [np.float32([1])], {"fill": "ab"}, **BAD)
    yield Case("AsString", [np.float32([1])], {"fill": "x"}, **BAD)
    yield Case("AsString", [WORDS])
    arrays = [
        np.arange(20), np.arange(24).reshape(2, 3, 4), np.float32([0.1, 1 / 3, 1e10, 1e-5]), np.array(5), s("a", "b c"),
        s("x"), np.array([True, False]), np.zeros((0,), np.float32),
        # not complex numbers, which TensorFlow prints as "?", nor empty rows, which it prints as dots
        np.float64([[1 / 3, 2], [3, 4]]), np.uint8([200, 7]),
    ]  # fmt: skip
    for array, count in product(arrays, (-1, 1, 3)):
        yield Case("StringFormat", [[array]], {"template": "<%s>", "summarize": count})
    yield Case("StringFormat", [[np.arange(3), s("x")]], {"template": "a {} b {} c", "placeholder": "{}"})
    yield Case("StringFormat", [[np.arange(3)]], {"template": "{} {}", "placeholder": "{}"}, **BAD)


def unicode_cases() -> Iterator[Case]:
    texts = s("Hello", "", "ÄÖ漢字😀", b"a\xffb", b"\xe6\xbc", b"\xf0\x9f\x98x", "a\x01\x1f\x7f", shape=(7,))
    for errors, controls, replacement in product(("replace", "ignore"), (False, True), (65533, 33)):
        attrs = {
            "input_encoding": "UTF-8", "errors": errors, "replace_control_characters": controls,
            "replacement_char": replacement,
        }  # fmt: skip
        for splits in ("int32", "int64"):
            yield Case("UnicodeDecode", [texts], {**attrs, "Tsplits": splits})
        # TensorFlow 2.21 aborts with int32 splits
        yield Case("UnicodeDecodeWithOffsets", [texts], {**attrs, "Tsplits": "int64"})
        for output in ("UTF-8", "UTF-16-BE", "UTF-32-BE"):
            yield Case("UnicodeTranscode", [texts], {**attrs, "output_encoding": output})
    for encoding in ("UTF-16-BE", "UTF-32-BE"):
        coded = s(*(t.encode(encoding.replace("-BE", "BE").lower()) for t in ("Hello", "", "ÄÖ漢字😀")))
        attrs = {"input_encoding": encoding}
        yield Case("UnicodeDecodeWithOffsets", [coded], attrs)
        yield Case("UnicodeTranscode", [coded], {**attrs, "output_encoding": "UTF-8"})
    coded = s("naïve".encode("latin-1"))
    yield Case("UnicodeTranscode", [coded], {"input_encoding": "ISO-8859-1", "output_encoding": "UTF-8"})
    strict = {"input_encoding": "UTF-8", "errors": "strict"}
    yield Case("UnicodeDecode", [texts], strict, **BAD)
    yield Case("UnicodeTranscode", [texts], {**strict, "output_encoding": "UTF-8"}, **BAD)
    yield Case("UnicodeDecode", [s("ok")], strict)
    yield Case("UnicodeDecode", [s("ok")], {"input_encoding": "no-such"}, **BAD)
    codes = np.int32([72, 228, 0x6F22, 0x1F600, 33])
    for output, splits in product(("UTF-8", "UTF-16-BE", "UTF-32-BE"), (np.int32, np.int64)):
        yield Case("UnicodeEncode", [codes, splits([0, 2, 2, 5])], {"output_encoding": output})
    wrong = np.int32([72, 0xD800, 0x110000, -1, 65])
    for errors in ("replace", "ignore"):
        attrs = {"output_encoding": "UTF-8", "errors": errors}
        yield Case("UnicodeEncode", [wrong, np.int32([0, 5])], attrs)
    yield Case("UnicodeEncode", [wrong, np.int32([0, 5])], {"output_encoding": "UTF-8", "errors": "strict"}, **BAD)
    for splits in ([0, 2], [1, 5], [0, 3, 2, 5], []):
        yield Case("UnicodeEncode", [codes, np.int32(splits)], {"output_encoding": "UTF-8"}, **BAD)


CASES = [*basics(), *regexes(), *random_regexes(), *hashes(), *numbers(), *unicode_cases()]


@suite(CASES)
def test_string(case: Case, device: str, tf: ModuleType) -> None:
    check(case, device)


def test_assert(capsys: pytest.CaptureFixture[str], tf: ModuleType) -> None:
    check(Case("Assert", [np.bool_(True), [np.arange(3)]]))
    check(Case("Assert", [np.bool_(False), [np.arange(9), s("why")]], **BAD))
    with pytest.raises(Exception, match=re.escape("assertion failed: [0 1 2...] [why]")):
        run_ours(Case("Assert", [np.bool_(False), [np.arange(9), s("why")]]))


def test_print(capsys: pytest.CaptureFixture[str]) -> None:
    x = np.float32([[1, 2.5], [3, 4]])
    assert run_ours(Case("Print", [x, [x, s("b")]], {"message": "m: ", "summarize": 3}))[0] is not None
    assert capsys.readouterr().err == "m: [[1 2.5][3]...][b]\n"
    run_ours(Case("PrintV2", [s("hello")], {"output_stream": "stdout", "end": "!\n"}))
    assert capsys.readouterr().out == "hello!\n"


def test_timestamp() -> None:
    import time

    before = time.time()
    now = float(run_ours(Case("Timestamp"))[0])
    assert before - 1 <= now <= time.time() + 1  # the two clocks may have other resolutions


@settings(max_examples=50, deadline=None, print_blob=True)
@given(text=st.lists(st.text(max_size=8), min_size=1, max_size=4), sep=st.text(max_size=2), n=st.integers(-1, 3))
def test_split_any_text(text: list[str], sep: str, n: int, tf: ModuleType) -> None:
    check(Case("StringSplitV2", [s(*text, shape=(-1,)), s(sep)], {"maxsplit": n}, error=SAME))


@settings(max_examples=50, deadline=None, print_blob=True)
@given(text=st.lists(st.binary(max_size=90), min_size=1, max_size=6))
def test_hash_any_bytes(text: list[bytes], tf: ModuleType) -> None:
    for op in ("StringToHashBucketFast", "StringToHashBucket"):
        check(Case(op, [s(*text, shape=(-1,))], {"num_buckets": 2**63 - 1}))


def test_an_installation_without_its_regular_expressions(monkeypatch: pytest.MonkeyPatch) -> None:
    from toolkit.errors import GraphmillError
    from toolkit.kernels.encodings.regular import compile_pattern

    monkeypatch.setitem(sys.modules, "re2", None)
    with pytest.raises(GraphmillError, match="the installation is broken: google-re2") as raised:
        compile_pattern(b"a pattern that no other test compiles")
    assert raised.value.exit_code == 2


def test_lengths_beyond_an_int32_are_told() -> None:
    """TensorFlow returns a negative length."""

    class Long(bytes):  # without the memory that so long a string takes
        length = 0

        def __len__(self) -> int:
            return self.length

    text = Long()
    text.length = (1 << 31) - 1
    assert string_basic._length(text) == text.length  # pyright: ignore[reportPrivateUsage] -- what both units ask
    text.length += 1
    with pytest.raises(InvalidArgumentError, match="a string has length 2147483648, out of range for an int32"):
        string_basic._length(text)  # pyright: ignore[reportPrivateUsage]
