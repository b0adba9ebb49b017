"""Names of our own in requests that we write. They are random, so that no request of a user holds one."""

from secrets import token_hex

OWN = f"urn:evergraph:{token_hex(8)}:"
"""What IRIs of our own begin with."""

OWN_VARIABLE = f"evergraph_{token_hex(8)}"
