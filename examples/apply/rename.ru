PREFIX foaf: <http://xmlns.com/foaf/0.1/>
DELETE { GRAPH ?pier { ?who foaf:name "Pietro" } }
INSERT { GRAPH ?pier { ?who foaf:name "Mario" } }
WHERE  { GRAPH ?pier { ?who foaf:name "Pietro" } }
