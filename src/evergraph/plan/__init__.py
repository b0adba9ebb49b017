"""Plans of delta operators: what both engines execute."""
