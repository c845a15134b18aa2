"""The version of the package, which its worker must have."""

__version__ = "0.1.0"
