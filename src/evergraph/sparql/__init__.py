"""SPARQL text to a closed, typed algebra, and its evaluation from scratch."""
