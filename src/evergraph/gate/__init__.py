"""From requested changes to exact deltas: the only place that knows what is really there."""
