"""Fixtures that every test may use."""

from __future__ import annotations

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
# The same TensorFlow on every machine: by itself it uses oneDNN where the processor has AVX512-VNNI or better, and
# some quantized ops round in another way without.
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "1")
os.environ.setdefault("KERAS_BACKEND", "tensorflow")
# Test processes share the machine: threads of OpenBLAS must not spin while they wait (see commands/main.py).
os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", "4")
# For the same reason one OpenMP thread each: threads that spin beside a busy neighbour are many times slower.
os.environ.setdefault("OMP_NUM_THREADS", "1")
# What tests fork has no use for gRPC, which some tests before may have used, and should not hear of it.
os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "false")
os.environ.setdefault("GRPC_VERBOSITY", "NONE")
# Code is compiled anew in every test process, and nothing of the user's is read or written.
os.environ.setdefault("GRAPHMILL_CACHE", "off")
# A mistake of the segment compiler falls back to running node by node; here it must show.
os.environ.setdefault("GRAPHMILL_SEGMENTS", "strict")
# And the pass that made it: what each leaves is verified.
os.environ.setdefault("GRAPHMILL_VERIFY", "on")

import gc
from collections.abc import Generator
from types import ModuleType
from typing import Any

import pytest
from hypothesis import settings

# Whether a change lands must not depend on luck: .ci/run takes the same examples every time, people take new ones.
settings.register_profile("landing", derandomize=True)
if os.environ.get("GRAPHMILL_EXAMPLES") == "same":
    settings.load_profile("landing")


#: what only tests need, and not all of them: without it those are skipped that ask for it
_ORACLE = ("tensorflow", "keras", "tensorflow-cpu", "tensorboard")


def _skip_without_oracle(error: ModuleNotFoundError) -> None:
    package = (error.name or "").partition(".")[0]
    if package in _ORACLE:
        pytest.skip(f"compares with TensorFlow, and {package} is not installed (extra `test`)")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="write what passes make of the golden programs")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, Any, Any]:
    """What is collected lives as long as the process: nobody looks for garbage in a million objects meanwhile or later,
    which takes a fifth of the time that collecting the whole suite does, and half a second at every `gc.collect()`."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.collect()
        gc.freeze()


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Any:
    try:
        return (yield)
    except ModuleNotFoundError as error:
        _skip_without_oracle(error)
        raise


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Any:
    try:
        return (yield)
    except ModuleNotFoundError as error:
        _skip_without_oracle(error)
        raise


@pytest.fixture(scope="session")
def tf() -> ModuleType:
    """TensorFlow, the oracle. Tests that use it carry `@pytest.mark.tensorflow`."""
    import tensorflow

    return tensorflow
