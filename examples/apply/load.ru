PREFIX foaf: <http://xmlns.com/foaf/0.1/>
PREFIX : <http://harbour.example/>
INSERT DATA {
  GRAPH :pier1 { :ada foaf:name "Pietro" . :bea foaf:name "Pietro", "Mario" }
  GRAPH :pier2 { :carl foaf:name "Pietro"@it }
}
