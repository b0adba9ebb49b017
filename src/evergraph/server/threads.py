"""Threads in which the store evaluates something. It goes down its stack for each level of a pattern."""

import threading
from collections.abc import Callable

from evergraph.server.guard import STACK


def start_thread(work: Callable[[], None], name: str) -> threading.Thread:
    """Run something in a thread with a stack that is large enough for all that is let through."""
    before = threading.stack_size(STACK)
    try:
        thread = threading.Thread(target=work, name=name, daemon=True)
        thread.start()
        return thread
    finally:
        threading.stack_size(before)
