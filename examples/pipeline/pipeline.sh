#!/bin/sh
# One run of a pipeline: what every committed batch did, and what the sinks hold then.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cp -r "$(dirname "$0")/." "$folder"
cd "$folder"

# The times differ from run to run.
evergraph run gazetteer.toml | sed 's/,"seconds".*/}/'
for file in out/names.jsonl out/map.nt out/map.rdfp out/exact/*; do
    echo "# $file"
    cat "$file"
done
