"""numpy arrays of what callers give, and Arrow columns of them."""

import numpy as np
import pyarrow as pa

from ._errors import DataError


def array_of(given):
    """`given` as an array that numpy and Arrow both understand; a masked array keeps its mask.

    Values of several types stay objects, of which numpy would make one type: text of [1, "a"], 1 of True.
    """
    if isinstance(given, (list, tuple)) and len({type(one) for one in given}) > 1:
        array = np.empty(len(given), object)
        array[:] = given
        return array
    try:
        array = given if isinstance(given, np.ma.MaskedArray) else np.asarray(given)
    except ValueError as error:
        raise DataError(f"the values are no array: {error}") from error
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    return array.astype(np.float64) if array.dtype == np.longdouble else array


def column_of(given, name, from_pandas=False):
    """An Arrow array; masked values are null. Raises DataError for values that Arrow does not have."""
    array = array_of(given)
    mask = np.ma.getmaskarray(array) if isinstance(array, np.ma.MaskedArray) else None
    try:
        return pa.array(np.ma.getdata(array), mask=mask, from_pandas=from_pandas)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as error:
        raise DataError(f"the column {name!r} of {array.dtype} values cannot be used: {error}") from error
