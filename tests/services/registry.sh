#!/bin/sh
# Prints a folder with the Apicurio schema registry 3.0.9; fetches it once into a cache folder.
#
#   registry.sh [CACHE_FOLDER]       default: target/services/registry beside this repository
#
# Needs Maven and Java 17 or newer. Start it (everything in memory) with
#   QUARKUS_HTTP_PORT=8081 java -jar "$(registry.sh)/apicurio-registry-app-3.0.9-runner.jar"
# Confluent's interface is then below http://127.0.0.1:8081/apis/ccompat/v7.
set -eu
version=3.0.9
here=$(cd "$(dirname "$0")" 2>/dev/null && pwd || pwd)
cache=${1:-$here/../../target/services/registry}
home=$cache/app-$version

if [ -d "$home" ]; then
    echo "$home"
    exit 0
fi
for tool in java mvn tar; do
    if ! command -v $tool >/dev/null 2>&1; then
        echo "registry.sh: $tool is needed to fetch and run the schema registry $version; install it (Debian: apt-get install openjdk-17-jre-headless maven tar)" >&2
        exit 1
    fi
done
mkdir -p "$cache"
work=$(mktemp -d "$cache/fetch.XXXXXX")
trap 'rm -rf "$work"' EXIT INT TERM
# The artifact alone: its parent is in no public repository.
if ! mvn -q -B dependency:copy -Dartifact="io.apicurio:apicurio-registry-app:$version:tar.gz:all" \
    -DoutputDirectory="$work/all" >"$work/log" 2>&1; then
    tail -20 "$work/log" >&2
    echo "registry.sh: Maven could not fetch the schema registry $version; check that it can reach its repository" >&2
    exit 1
fi
mkdir "$work/app"
tar -xzf "$work"/all/*.tar.gz -C "$work/app"
# Another caller may have been faster; its folder is as good.
mv -T "$work/app" "$home" 2>/dev/null || [ -d "$home" ]
echo "$home"
