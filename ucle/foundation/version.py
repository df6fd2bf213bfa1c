"""The version of ucle."""

__version__ = "0.1.0"
