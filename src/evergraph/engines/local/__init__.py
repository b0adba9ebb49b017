"""The local engine: plans in one process, for latency."""
