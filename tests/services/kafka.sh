#!/bin/sh
# Prints a folder with the jars of a Kafka 4.4.0 broker; fetches them once into a cache folder.
#
#   kafka.sh [CACHE_FOLDER]       default: target/services/kafka beside this repository
#
# Needs Maven and Java 17 or newer. Start a broker with
#   java -Xmx512m -cp "$(kafka.sh)/*" kafka.Kafka server.properties
set -eu
version=4.4.0
here=$(cd "$(dirname "$0")" 2>/dev/null && pwd || pwd)
cache=${1:-$here/../../target/services/kafka}
libs=$cache/libs-$version

if [ -d "$libs" ]; then
    echo "$libs"
    exit 0
fi
for tool in java mvn; do
    if ! command -v $tool >/dev/null 2>&1; then
        echo "kafka.sh: $tool is needed to fetch and run Kafka $version; install it (Debian: apt-get install openjdk-17-jre-headless maven)" >&2
        exit 1
    fi
done
mkdir -p "$cache"
work=$(mktemp -d "$cache/fetch.XXXXXX")
trap 'rm -rf "$work"' EXIT INT TERM
cat > "$work/pom.xml" <<POM
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>thalweg</groupId><artifactId>broker</artifactId><version>1</version><packaging>pom</packaging>
  <dependencies>
    <dependency><groupId>org.apache.kafka</groupId><artifactId>kafka_2.13</artifactId><version>$version</version></dependency>
    <dependency><groupId>org.apache.kafka</groupId><artifactId>kafka-tools</artifactId><version>$version</version></dependency>
  </dependencies>
</project>
POM
if ! mvn -q -B -f "$work/pom.xml" dependency:copy-dependencies -DoutputDirectory="$work/libs" >"$work/log" 2>&1; then
    tail -20 "$work/log" >&2
    echo "kafka.sh: Maven could not fetch the Kafka $version artifacts; check that it can reach its repository" >&2
    exit 1
fi
# Another caller may have been faster; its folder is as good.
mv -T "$work/libs" "$libs" 2>/dev/null || [ -d "$libs" ]
echo "$libs"
