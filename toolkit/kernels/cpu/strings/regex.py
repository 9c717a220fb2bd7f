"""Regular expressions and hashes of strings."""

# numpy's overloads answer arrays typed Any with Unknown
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Callable

from toolkit.errors import InvalidArgumentError
from toolkit.kernels.cpu.common import np, require_scalar
from toolkit.kernels.cpu.strings.basic import map_strings
from toolkit.kernels.encodings.hashing import fingerprint64, hash64, hash_all, siphash24
from toolkit.kernels.encodings.regular import compile_pattern, compile_rewrite, replace
from toolkit.kernels.registry import Compute, KernelNode, kernel, simple
from toolkit.kernels.types import Array


def _matches(x: Array, pattern: bytes) -> Array:
    compiled = compile_pattern(pattern)
    return map_strings(lambda s: compiled.fullmatch(s) is not None, x, np.bool_)


@simple("RegexFullMatch")
def regex_full_match(x: Array, pattern: Array) -> Array:
    require_scalar(pattern, "Pattern")
    return _matches(x, pattern.item())


@kernel("StaticRegexFullMatch")
def static_regex_full_match(op: KernelNode) -> Compute:
    pattern = op.attr("pattern")
    compile_pattern(pattern)
    return lambda x: _matches(x, pattern)


def _replace(x: Array, pattern: bytes, rewrite: bytes, everywhere: bool) -> Array:
    compiled = compile_pattern(pattern)
    with_what = compile_rewrite(rewrite, compiled.groups, everywhere)
    if with_what is None:
        return x
    return map_strings(lambda s: replace(compiled, s, with_what, everywhere=everywhere), x)


@kernel("RegexReplace")
def regex_replace(op: KernelNode) -> Compute:
    everywhere = op.attr("replace_global")

    def compute(x: Array, pattern: Array, rewrite: Array) -> Array:
        require_scalar(pattern, "Pattern")
        require_scalar(rewrite, "Rewrite")
        return _replace(x, pattern.item(), rewrite.item(), everywhere)

    return compute


@kernel("StaticRegexReplace")
def static_regex_replace(op: KernelNode) -> Compute:
    pattern, rewrite, everywhere = op.attr("pattern"), op.attr("rewrite"), op.attr("replace_global")
    compile_pattern(pattern)
    return lambda x: _replace(x, pattern, rewrite, everywhere)


def _bucket(op: KernelNode, function: Callable[[Array], Array]) -> Compute:
    buckets = op.attr("num_buckets")

    def compute(x: Array) -> Array:
        hashes = hash_all(x.ravel().tolist(), function)
        return (hashes % np.uint64(buckets)).astype(np.int64).reshape(x.shape)

    return compute


@kernel("StringToHashBucketFast")
def string_to_hash_bucket_fast(op: KernelNode) -> Compute:
    return _bucket(op, fingerprint64)


@kernel("StringToHashBucket")
def string_to_hash_bucket(op: KernelNode) -> Compute:
    return _bucket(op, hash64)


@kernel("StringToHashBucketStrong")
def string_to_hash_bucket_strong(op: KernelNode) -> Compute:
    key: list[int] = op.attr("key")
    if len(key) != 2:
        raise InvalidArgumentError("Key must have 2 elements", node=op.name)
    return _bucket(op, siphash24((key[0], key[1])))
