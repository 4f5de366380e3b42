"""crashcart: finds the root cause of a GPU job that crashed, hangs or crawls."""

__version__ = "0.1.0"
