#!/bin/sh
# Prints a folder with the Python package pymssql 2.4.6 (FreeTDS inside), for PYTHONPATH; fetches it once
# into a cache folder.
#
#   pymssql.sh [CACHE_FOLDER]       default: target/services/pymssql beside this repository
#
# Needs python3 with pip.
set -eu
version=2.4.6
here=$(cd "$(dirname "$0")" 2>/dev/null && pwd || pwd)
cache=${1:-$here/../../target/services/pymssql}
python=$(command -v python3 || true)
if [ -z "$python" ] || ! "$python" -m pip --version >/dev/null 2>&1; then
    echo "pymssql.sh: python3 with pip is needed to fetch pymssql $version; install it (Debian: apt-get install python3-pip)" >&2
    exit 1
fi
# A compiled module fits one version of Python.
home=$cache/$version-$("$python" -c 'import sys; print("py%d.%d" % sys.version_info[:2])')
if [ -d "$home" ]; then
    echo "$home"
    exit 0
fi
mkdir -p "$cache"
work=$(mktemp -d "$cache/fetch.XXXXXX")
trap 'rm -rf "$work"' EXIT INT TERM
if ! "$python" -m pip install --quiet --disable-pip-version-check --no-deps --only-binary :all: --target "$work/home" "pymssql==$version" >"$work/log" 2>&1 ||
    ! PYTHONPATH=$work/home "$python" -c 'import pymssql' >"$work/log" 2>&1; then
    cat "$work/log" >&2
    echo "pymssql.sh: could not fetch pymssql $version, or it does not run here; check that pip can reach its index and that it has a wheel for this system" >&2
    exit 1
fi
# Another caller may have been faster; its folder is as good.
mv -T "$work/home" "$home" 2>/dev/null || [ -d "$home" ]
echo "$home"
