#!/bin/sh
# Makes an emulated 64-bit Arm machine with Python and what graphmill needs: sh tests/aarch64.sh FOLDER
# Then FOLDER/bin/python is its interpreter. Variables of the emulator's hold: with QEMU_PAGESIZE=65536 pages have 64 KB.
#
# Needs a Debian-like system with apt-get, dpkg-deb and pip, qemu-aarch64-static (package qemu-user-static), and the network:
# packages for arm64 come from the system's own sources, wheels from where pip gets them. Nothing of the system is changed.
set -eu
case ${1:-} in
"" | -*)
    echo "usage: sh tests/aarch64.sh FOLDER" >&2
    exit 2
    ;;
esac
mkdir -p "$1"
folder=$(CDPATH= cd -- "$1" && pwd)
for program in qemu-aarch64-static apt-get dpkg-deb python3; do
    command -v "$program" >/dev/null 2>&1 || {
        echo "aarch64.sh: there is no $program here; it needs Debian or Ubuntu with the package qemu-user-static" >&2
        exit 2
    }
done

# the system: apt's own idea of another machine on which nothing is installed
if [ ! -d "$folder/system" ]; then
    apt=$folder/apt
    mkdir -p "$apt/lists/partial" "$apt/archives/partial"
    : >"$apt/status"
    set -- -q -o APT::Architecture=arm64 -o APT::Architectures::=arm64 -o Dir::State="$apt" -o Dir::State::lists="$apt/lists" \
        -o Dir::State::status="$apt/status" -o Dir::Cache="$apt" -o Dir::Cache::archives="$apt/archives" \
        -o Debug::NoLocking=1 -o APT::Sandbox::User=root
    apt-get "$@" update
    apt-get "$@" install -y --no-install-recommends --download-only python3 libstdc++6 libgomp1
    rm -rf "$folder/system.new"
    mkdir "$folder/system.new"
    for package in "$apt"/archives/*.deb; do
        dpkg-deb -x "$package" "$folder/system.new"
    done
    mv "$folder/system.new" "$folder/system"
fi

# an environment whose interpreter is the emulator: what tests start is emulated as well
interpreter=$(find "$folder/system/usr/bin" -name 'python3.*' -type f | sort | head -n 1)
version=${interpreter##*python}
mkdir -p "$folder/bin"
cat >"$folder/pyvenv.cfg" <<CONFIGURATION
home = $folder/system/usr/bin
include-system-site-packages = false
CONFIGURATION
cat >"$folder/bin/python" <<SCRIPT
#!/bin/sh
exec qemu-aarch64-static -L "$folder/system" -0 "$folder/bin/python" "$interpreter" "\$@"
SCRIPT
chmod +x "$folder/bin/python"

packages=$folder/lib/python$version/site-packages
if [ ! -d "$packages/numpy" ]; then
    set --
    for tag in manylinux2014 manylinux_2_17 manylinux_2_26 manylinux_2_27 manylinux_2_28; do
        set -- "$@" --platform "${tag}_aarch64"
    done
    root=$(CDPATH= cd -- "$(dirname -- "$0")/.." && pwd)
    # what pyproject.toml names for running, for compiled loops and for testing without TensorFlow
    python3 - "$root/pyproject.toml" >"$folder/requirements" <<'PYTHON'
import pathlib, sys, tomllib
project = tomllib.loads(pathlib.Path(sys.argv[1]).read_text())["project"]
extras = project["optional-dependencies"]
wanted = ("pytest", "hypothesis", "pillow", "jsonschema", "fsspec")
more = [each for extra in ("test", "image", "remote") for each in extras[extra] if each.startswith(wanted) and "xdist" not in each]
print(*project["dependencies"], *extras["native"], *more, sep="\n")
PYTHON
    python3 -m pip install --quiet --target "$packages" "$@" --python-version "$version" --only-binary=:all: \
        --requirement "$folder/requirements"
fi
"$folder/bin/python" -c 'import platform; assert platform.machine() == "aarch64", platform.machine()'
