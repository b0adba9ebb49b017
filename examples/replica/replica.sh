#!/bin/sh
# Two replicas of parts of a gazetteer: what each change did to each of them, and what they hold in the end.
set -eu
cd "$(dirname "$0")"
out=$(mktemp -d)
trap 'rm -r "$out"' EXIT

evergraph replicate interests --init mints.ttl --changes changes --target "$out/target" --potential "$out/potential"
for name in map regions; do
    echo "# $name: $(wc -l < "$out/target/$name/data.nt") triples," \
        "$(wc -l < "$out/potential/$name/data.nt") potentially interesting"
    cat "$out/target/$name/data.nt"
done
