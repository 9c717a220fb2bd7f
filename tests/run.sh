#!/bin/sh
# Runs the test suite. Uses the environment it is called in if graphmill and its test extra are installed there,
# else makes .venv and installs into it. Arguments go to pytest: sh tests/run.sh -m long
set -eu
here=$(CDPATH= cd -- "$(dirname -- "$0")" && pwd)
root=$(dirname -- "$here")
cd "$root"

. "$root/samples/environment.sh"
use_environment "$root" "[test]" pytest xdist hypothesis tensorflow keras

# each of both processes takes one half, file after file, so that what files prepare is prepared once; then they share what is left
exec python -m pytest -n 2 --dist worksteal "$@"
