"""The bound on the size of decompressed content."""


class ExpansionError(ValueError):
    """A file expands to more bytes than its budget."""


class Budget:
    """Counts the bytes that a file expands to; raises `ExpansionError` above `max_bytes`."""

    def __init__(self, max_bytes: int):
        self.max_bytes, self.left = max_bytes, max_bytes

    def take(self, count: int):
        """Counts `count` further bytes, before memory is allocated for them."""
        self.left -= count
        if self.left < 0:
            raise ExpansionError(
                f"it expands to more than the {self.max_bytes} bytes allowed; if you trust it, raise the limit"
            )
