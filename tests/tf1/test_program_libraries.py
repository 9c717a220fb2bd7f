"""What Python's library, NumPy and SciPy had when programs were written, while a program runs and no longer."""

from __future__ import annotations

import collections
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from toolkit.tensorflow import python_names, scipy_images


def _run(program: Path, source: str) -> subprocess.CompletedProcess[str]:
    program.write_text(source)
    code = "import sys; from toolkit.tensorflow import programs as p; sys.exit(p.run(p.Program(sys.argv[1], None, [])))"
    return subprocess.run([sys.executable, "-c", code, str(program)], capture_output=True, text=True, check=False)


def test_the_library_has_the_names_that_it_had(tmp_path: Path) -> None:
    source = (
        "import base64, collections, fractions, inspect, threading, time\n"
        "print(collections.MutableMapping.__name__, fractions.gcd(4, 6), base64.encodestring(b'a'))\n"
        "print(time.clock() >= 0, tuple(inspect.getargspec(lambda a, b=1, *c, **d: 0)))\n"
        "print(threading.Thread().isAlive(), collections.OrderedDict.__name__)\n"
    )
    done = _run(tmp_path / "program.py", source)
    wanted = "MutableMapping 2 b'YQ==\\n'\nTrue (['a', 'b'], 'c', 'd', (1,))\nFalse OrderedDict\n"
    assert (done.stdout, done.stderr) == (wanted, "")
    with python_names.restored():
        assert hasattr(collections, "Iterable")
    assert not hasattr(collections, "Iterable")


def test_arguments_by_name_alone_are_told(tmp_path: Path) -> None:
    done = _run(tmp_path / "program.py", "import inspect\ninspect.getargspec(lambda *, a: a)\n")
    assert "write inspect.getfullargspec" in done.stderr.splitlines()[-1]


@pytest.mark.parametrize("has_misc", [True, False])
def test_scipy_misc_has_its_functions_for_images(tmp_path: Path, has_misc: bool) -> None:
    pytest.importorskip("PIL")
    (tmp_path / "scipy").mkdir()
    (tmp_path / "scipy" / "__init__.py").write_text("")
    if has_misc:
        (tmp_path / "scipy" / "misc.py").write_text("def imrotate():\n    return 'its own'\n")
    source = (
        "import os, sys\nimport numpy as np\nimport scipy.misc\nfrom scipy.misc import imread, imsave\n"
        "file = os.path.join(os.path.dirname(__file__), 'x.png')\n"
        "imsave(file, np.arange(24).reshape(2, 4, 3) * 10.0)\n"
        "print(imread(file)[0, 0].tolist(), imread(file)[1, 3].tolist(), imread(file, flatten=True).dtype)\n"
        "print(scipy.misc.imresize(imread(file), (4, 8)).shape, scipy.misc.imresize(imread(file), 50).shape)\n"
    )
    done = _run(tmp_path / "program.py", source)
    assert done.stdout == "[0, 11, 22] [233, 244, 255] float32\n(4, 8, 3) (1, 2, 3)\n", done.stderr
    own = _run(tmp_path / "program.py", "import scipy.misc\nprint(scipy.misc.imrotate())\n")
    assert (own.stdout == "its own\n") == has_misc


def test_numbers_become_bytes() -> None:
    scaled = scipy_images.bytescale(np.array([-1.0, 0.0, 1.0]))
    assert scaled.dtype == np.uint8 and scaled.tolist() == [0, 128, 255]
    assert scipy_images.bytescale(np.array([0.0, 2.0]), cmin=0, cmax=4).tolist() == [0, 128]
    assert scipy_images.bytescale(np.array([3, 9], np.uint8)).tolist() == [3, 9]
    assert scipy_images.bytescale(np.ones(2)).tolist() == [0, 0]
    with pytest.raises(ValueError, match="expected 0 <= low <= high <= 255"):
        scipy_images.bytescale(np.ones(2), low=9, high=3)


def test_what_is_no_image_is_told() -> None:
    pytest.importorskip("PIL")
    channels_first = scipy_images.toimage(np.zeros([3, 4, 6]))
    assert (channels_first.size, channels_first.mode) == ((6, 4), "RGB")
    with pytest.raises(ValueError, match=r"an array \(5, 6, 7\) is no image"):
        scipy_images.toimage(np.zeros([5, 6, 7]))
    with pytest.raises(ValueError, match="interp 'best': expected one of nearest"):
        scipy_images.imresize(np.zeros([4, 4]), 50, "best")


@pytest.mark.parametrize("has_eigen", [True, False])
def test_arpack_is_found_where_it_was(tmp_path: Path, has_eigen: bool) -> None:
    folder = tmp_path / "scipy" / "sparse" / "linalg"
    folder.mkdir(parents=True)
    (tmp_path / "scipy" / "__init__.py").write_text("")
    (tmp_path / "scipy" / "sparse" / "__init__.py").write_text("")
    (folder / "__init__.py").write_text("def eigs():\n    return 1\ndef eigsh():\n    return 2\n")
    if has_eigen:
        (folder / "eigen.py").write_text("")
    done = _run(tmp_path / "program.py", "from scipy.sparse.linalg.eigen.arpack import eigsh\nprint(eigsh())\n")
    assert (done.stdout, done.stderr) == ("2\n", "")
