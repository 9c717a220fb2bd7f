# Sourced by quickstart.sh and tests/run.sh.

# installed MODULE ...: the environment on the PATH has graphmill and these modules.
installed() {
    command -v graphmill >/dev/null 2>&1 && python - "$@" <<'PYTHON' 2>/dev/null
import importlib.metadata, importlib.util, sys
importlib.metadata.version("graphmill")
sys.exit(not all(importlib.util.find_spec(name) for name in sys.argv[1:]))
PYTHON
}

# use_environment ROOT EXTRAS MODULE ...: use the environment on the PATH if graphmill and MODULEs are installed
# there; else make ROOT/.venv, install the project with EXTRAS ("" or "[test]") into it, and use that.
use_environment() {
    root_folder=$1
    extras=$2
    shift 2
    if installed "$@"; then
        return 0
    fi
    venv="$root_folder/.venv"
    if [ ! -x "$venv/bin/python" ]; then
        interpreter=
        for candidate in python3 python3.13 python3.12 python3.11; do
            if command -v "$candidate" >/dev/null 2>&1 &&
                "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then
                interpreter=$candidate
                break
            fi
        done
        if [ -z "$interpreter" ]; then
            echo "graphmill needs Python 3.11 or newer; there is none on the PATH" >&2
            exit 2
        fi
        echo "making $venv" >&2
        "$interpreter" -m venv "$venv"
    fi
    PATH="$venv/bin:$PATH"
    export PATH
    if ! installed "$@"; then
        echo "installing graphmill$extras into $venv" >&2
        python -m pip install --quiet --editable "$root_folder$extras"
    fi
}
