"""What Spark's Python workers may print when a task no longer needs them: nothing that a program said."""

import re

_NOISE = re.compile(
    r"^Traceback \(most recent call last\):\n"
    r"(?:(?:  .*\n)*(?:BrokenPipeError|ConnectionResetError).*\n|(?!  ))",
    re.MULTILINE,
)


def without_noise(text: str) -> str:
    """Drop tracebacks of workers whose connection was closed, whole or cut off after their first line."""
    return _NOISE.sub("", text)
