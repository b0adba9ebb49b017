"""Words that say little about what they stand in."""

_ENGLISH = """
a about an and are as at be been by for from had has have he her his i in is it its of on or she that the their them
they this to was we were which who will with you
"""

ENGLISH_STOP_WORDS = frozenset(_ENGLISH.split())
"""What the transformation ``stop-words`` leaves out if it is not told otherwise."""
