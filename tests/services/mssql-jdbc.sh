#!/bin/sh
# Prints the path of Microsoft's JDBC driver for SQL Server, 13.6.2; fetches it once into a cache folder.
#
#   mssql-jdbc.sh [CACHE_FOLDER]       default: target/services/mssql-jdbc beside this repository
#
# Needs Maven, and a Java development kit of version 17 or newer to run a source file with it:
#   java -cp "$(mssql-jdbc.sh)" Program.java
set -eu
version=13.6.2.jre11
here=$(cd "$(dirname "$0")" 2>/dev/null && pwd || pwd)
cache=${1:-$here/../../target/services/mssql-jdbc}
jar=$cache/mssql-jdbc-$version.jar

if [ -f "$jar" ]; then
    echo "$jar"
    exit 0
fi
for tool in java javac mvn; do
    if ! command -v $tool >/dev/null 2>&1; then
        echo "mssql-jdbc.sh: $tool is needed to fetch and run the JDBC driver $version; install it (Debian: apt-get install openjdk-17-jdk-headless maven)" >&2
        exit 1
    fi
done
mkdir -p "$cache"
work=$(mktemp -d "$cache/fetch.XXXXXX")
trap 'rm -rf "$work"' EXIT INT TERM
if ! mvn -q -B dependency:copy -Dartifact="com.microsoft.sqlserver:mssql-jdbc:$version" \
    -DoutputDirectory="$work" >"$work/log" 2>&1; then
    tail -20 "$work/log" >&2
    echo "mssql-jdbc.sh: Maven could not fetch the JDBC driver $version; check that it can reach its repository" >&2
    exit 1
fi
mv "$work/mssql-jdbc-$version.jar" "$jar"
echo "$jar"
