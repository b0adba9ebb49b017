#!/bin/sh
# Standing queries over a history: the first line is the result at the start, every other one what a change did to it.
set -eu
cd "$(dirname "$0")"

for query in untranslated complete; do
    echo "# $query"
    evergraph watch $query.rq --init mints.ttl --changes changes
done
echo "# the mints on the map, maintained and from scratch"
evergraph check map.rq --init mints.ttl --changes changes --every 1
