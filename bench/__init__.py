"""Benchmarks: ratios against a named baseline in the same run. ``evergraph bench NAME`` runs one."""
