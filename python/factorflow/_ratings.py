"""Ratings of any supported form as batches of Arrow for the worker."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ._arrays import array_of, column_of
from ._errors import DataError, UsageError
from ._matrix import MatrixRatings, is_matrix

# Rows of a batch.
BATCH = 1 << 18

_ROLES = ("user", "item", "rating", "timestamp")

_ARROW_ERRORS = (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError)


def ratings_of(given, names=("user", "item", "rating"), ones=False):
    """The ratings in `given`: a scipy matrix, a table, a stream, a structured array, or three arrays.

    `names`: columns of users, items and ratings, and of times where they are needed. `ones`: a table need not
    have ratings, which are then 1.
    """
    if is_matrix(given):
        if len(names) > 3:
            raise UsageError("a matrix has no times, which on_duplicates='last' needs: give a table")
        return MatrixRatings(given)
    if isinstance(given, pa.RecordBatchReader):
        return TableRatings(given.schema, given, names, ones, once=True)
    table = _table_of(given, names, ones)
    if table is None:
        raise TypeError(
            f"ratings are a {type(given).__name__}, need a scipy matrix of users by items, a DataFrame, an "
            "Arrow table, a structured array, or a tuple of three arrays"
        )
    return TableRatings(table.schema, table, names, ones)


def _table_of(given, names, ones):
    """A pyarrow Table; None for what is no table."""
    if isinstance(given, pa.Table):
        return given
    if isinstance(given, pa.RecordBatch):
        return pa.Table.from_batches([given])
    if isinstance(given, (tuple, list)) and len(given) in (2, 3, 4):
        return _of_arrays(given, names)
    if isinstance(given, np.ndarray):
        if given.dtype.names is None:
            raise TypeError(
                f"ratings are an array of shape {given.shape}: give a sparse matrix, a structured array, "
                "or a tuple of arrays (users, items, ratings)"
            )
        read = _named(given.dtype.names, names, ones)
        return pa.table({name: column_of(np.ascontiguousarray(given[name]), name) for name in read})
    kind = type(given).__module__.split(".")[0]
    try:
        if kind == "polars":
            given = given.lazy().collect()
            return given.select(_named(given.columns, names, ones)).to_arrow()
        if kind == "pandas" and getattr(given, "ndim", 0) == 2:
            return pa.table({name: _of_series(given[name]) for name in _named(given.columns, names, ones)})
        if hasattr(given, "__arrow_c_stream__"):
            return pa.table(given)
    except _ARROW_ERRORS as error:
        raise DataError(f"the ratings are no Arrow columns: {error}") from error
    return None


def _named(columns, names, ones):
    """The columns that are read; converting the others would take time."""
    columns = list(columns)
    found = [_column(columns, name, role, ones) for name, role in zip(names, _ROLES)]
    return [columns[at] for at in found if at is not None]


def _of_series(series):
    """A column of pandas: Arrow knows its types, but for sparse ones and those of numpy that it lacks."""
    if isinstance(series.dtype, np.dtype) or type(series.dtype).__name__ == "SparseDtype":
        return column_of(np.asarray(series), series.name, from_pandas=True)
    return pa.array(series, from_pandas=True)


def _of_arrays(given, names):
    arrays = [array_of(one) for one in given]
    lengths = {one.shape for one in arrays}
    if len(lengths) != 1 or arrays[0].ndim != 1:
        shapes = ", ".join(str(one.shape) for one in arrays)
        raise DataError(f"users, items and ratings need one length, and their shapes are {shapes}")
    if len(arrays) > len(names):
        raise UsageError("the fourth array has times, which act only with on_duplicates='last'")
    return pa.table({name: column_of(one, name) for name, one in zip(names, arrays)})


class TableRatings:
    """Ratings of a table with the ids of its columns. `once`: a stream, which can be read one time."""

    shape = None

    def __init__(self, schema, source, names, ones, once=False):
        self._source = source
        self.once = once
        columns = schema.names
        self._columns = [_column(columns, name, role, ones) for name, role in zip(names, _ROLES)]
        self.rows = None if once else source.num_rows
        # The numpy types of the ids, as callers get them back.
        self.dtypes = []
        fields = []
        for index, role in zip(self._columns[:2], ("user", "item")):
            field = schema.field(index)
            kind = id_type(field, role)
            self.dtypes.append(np.dtype(kind.to_pandas_dtype()))
            fields.append(pa.field(role, kind if once else _narrow(kind, source.column(index))))
        times = [pa.field("timestamp", _plain_type(schema.field(at).type)) for at in self._columns[3:]]
        self.schema = pa.schema([*fields, pa.field("rating", pa.float32()), *times])

    def batches(self, check=True):
        """Batches {user, item, rating}. Raises DataError for a value that cannot be used, if `check`."""
        first = 0
        source = self._source if self.once else self._source.to_batches(max_chunksize=BATCH)
        for batch in source:
            ids = [_ids(batch.column(at), self.schema.field(k)) for k, at in enumerate(self._columns[:2])]
            at = self._columns[2]
            if at is None:
                ratings = pa.array(np.ones(batch.num_rows, np.float32))
            else:
                ratings = _floats(batch.column(at), batch.schema.field(at).name)
            if check:
                _require_finite(ids, ratings, first)
            first += batch.num_rows
            times = [_decoded(batch.column(at)) for at in self._columns[3:]]
            if batch.num_rows > 0:
                yield pa.RecordBatch.from_arrays([*ids, ratings, *times], schema=self.schema)


def _column(columns, name, role, ones):
    """The position of a column in a list of names; None for ratings that are all 1."""
    if name is not None and columns.count(name) == 1:
        return columns.index(name)
    if role == "rating" and (name is None or ones):
        return None
    raise DataError(
        f"there is no column {name!r} of {role}s: the columns are {', '.join(map(repr, columns))}. "
        f"Name it: {role}='...'"
    )


def id_type(field, role):
    """The Arrow type of a column's ids for the worker."""
    kind = _plain_type(field.type)
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or kind == pa.string_view():
        return pa.string()
    if pa.types.is_integer(kind):
        return pa.int32() if kind.bit_width < 32 or kind == pa.int32() else pa.int64()
    raise DataError(f"ids of {role}s must be whole numbers or text, and {field.name!r} is {kind}")


def _narrow(kind, column):
    """int32 for 64-bit ids that fit: half the bytes, and a model that Spark can load."""
    if kind != pa.int64() or len(column) == column.null_count:
        return kind
    bounds = pc.min_max(pa.chunked_array([_decoded(chunk) for chunk in column.chunks]))
    least, most = bounds["min"].as_py(), bounds["max"].as_py()
    return pa.int32() if least >= -(2**31) and most < 2**31 else kind


def _plain_type(kind):
    """The type of a column's values, also of categories."""
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def _decoded(values):
    return values.dictionary_decode() if pa.types.is_dictionary(values.type) else values


def _ids(values, field):
    try:
        return _decoded(values).cast(field.type)
    except _ARROW_ERRORS as error:
        raise DataError(f"the ids of {field.name}s cannot be used: {error}") from error


def _floats(values, name):
    try:
        return _decoded(values).cast(pa.float32(), safe=False)
    except _ARROW_ERRORS as error:
        raise DataError(f"ratings must be numbers, and the column {name!r} is {values.type}") from error


def _require_finite(ids, ratings, first):
    """Raises DataError that names the first row with a null or with a rating that is not finite."""
    finite = ratings.null_count == 0 and bool(np.isfinite(ratings.to_numpy()).all())
    if finite and all(one.null_count == 0 for one in ids):
        return
    good = pc.fill_null(pc.is_finite(ratings), False)
    for one in ids:
        good = pc.and_(good, pc.is_valid(one))
    row = pc.index(good, False).as_py()
    user, item, rating = (one[row].as_py() for one in (*ids, ratings))
    raise DataError(
        f"row {first + row} cannot be used: user {user!r}, item {item!r}, rating {rating!r}. Remove it, or "
        "give on_bad_rows='skip' to the constructor"
    )
