"""Evergraph keeps what you derive from changing RDF data up to date."""

__version__ = "0.1.0"
