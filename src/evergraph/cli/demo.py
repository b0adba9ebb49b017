"""``evergraph demo``: the main job on built-in data."""

from evergraph.demo import run_demo


def demo() -> None:
    """Show on built-in data, step by step, what Evergraph does.

    **Example**

    `evergraph demo`
    """
    run_demo()
