#!/bin/sh
# Links between two gazetteers, one of which changes: a full run, then one that matches again only what changed.
set -eu
cd "$(dirname "$0")"
trap 'rm -rf mints.state changes links.nt later.rdfp' EXIT

echo "# the first run"
mv gazetteer/2024-05.rdfp later.rdfp
printf 'TX .\nTC .\n' > gazetteer/2024-04.rdfp
evergraph link mints.toml
cat links.nt
echo "# why"
evergraph explain mints.toml --link http://example.org/mint/cyme http://example.org/place/2
echo "# a place is renamed"
mv later.rdfp gazetteer/2024-05.rdfp
evergraph link mints.toml
cat changes/000002.rdfp
rm gazetteer/2024-04.rdfp
