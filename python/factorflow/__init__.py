"""Matrix factorization: ALS and SGD on ratings in numpy, scipy, pandas, polars or Arrow.

import factorflow
model = factorflow.ALS(factors=32).fit(ratings)
ids, scores = model.recommend(user, N=10)
"""

# Registers its work at the interpreter's end, which pandas, imported by Arrow when it is needed first, cannot
# do any more in a thread that outlives the main thread.
import concurrent.futures.thread

from ._errors import (
    CapacityError,
    DataError,
    DeviceLostError,
    DivergedError,
    FactorFlowError,
    FactorFlowWarning,
    NodeError,
    NotFittedError,
    UsageError,
    WorkerError,
)
from ._version import __version__
from .als import ALS
from .model import load
from .sgd import SGD

__all__ = [
    "ALS",
    "SGD",
    "load",
    "CapacityError",
    "DataError",
    "DeviceLostError",
    "DivergedError",
    "FactorFlowError",
    "FactorFlowWarning",
    "NodeError",
    "NotFittedError",
    "UsageError",
    "WorkerError",
    "__version__",
]
