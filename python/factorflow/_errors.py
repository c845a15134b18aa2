"""Errors. Each is also the built-in error of its kind, so that code need not know this package."""


class FactorFlowError(Exception):
    """Base of all errors of this package."""


class UsageError(FactorFlowError, ValueError):
    """A parameter or argument that cannot be used."""


class DataError(FactorFlowError, ValueError):
    """Ratings or files that cannot be used."""


class CapacityError(FactorFlowError, MemoryError):
    """The work does not fit into the memory budget, the device or the disk."""


class DivergedError(FactorFlowError, ArithmeticError):
    """The training diverged."""


class DeviceLostError(FactorFlowError, RuntimeError):
    """The last GPU was lost."""


class WorkerError(FactorFlowError, RuntimeError):
    """The worker process ended, or failed by a bug."""


class WorkerEndedError(WorkerError):
    """The worker process ended without a reason of its own."""


class NodeError(FactorFlowError, RuntimeError):
    """Node.js is missing or too old."""


class NotFittedError(FactorFlowError, ValueError, AttributeError):
    """The model was not fitted yet."""


class FactorFlowWarning(UserWarning):
    """A warning about ratings or parameters."""


_BY_CODE = {
    "USAGE": UsageError,
    "DATA": DataError,
    "CAPACITY": CapacityError,
    "DIVERGED": DivergedError,
    "DEVICE_LOST": DeviceLostError,
}


def error_of(fields, translate):
    """The exception of an error that the worker reports. `translate` puts names into Python's form."""
    kind = _BY_CODE.get(fields.get("code"), WorkerError)
    return kind(translate(fields.get("message", "the worker failed")))
