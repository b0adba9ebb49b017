#!/bin/sh
# One history, as RDF Patch, as a folder of changesets and as a folder of versions: the changes are the same.
set -eu
cd "$(dirname "$0")"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

for source in history.rdfp changesets versions; do
    evergraph apply --store "$work/$source.db" --changes "$source" > "$work/$source.out"
done
cat "$work/history.rdfp.out"
cmp "$work/history.rdfp.out" "$work/changesets.out"
cmp "$work/history.rdfp.out" "$work/versions.out"
echo "# three sources, one history"
