#!/bin/sh
# What does an update change? Bea has both names already: she only loses one.
set -eu
cd "$(dirname "$0")"
store=$(mktemp -d)
trap 'rm -rf "$store"' EXIT

evergraph apply --store "$store/db" load.ru > "$store/load.rdfp"
evergraph apply --store "$store/db" rename.ru

echo "# rows in the log of the whole history:"
evergraph log "$store/db" | grep -c "^[AD] "
