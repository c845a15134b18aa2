"""The best rows of a matrix for some queries: products, partitions, and bounds by length."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

#: Positions (or numbers of queries), ascending where it is said.
Positions = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float32]

# Rows of one product, and scores of one: enough for a processor to be quick, and 16 MB.
_ROWS = 4096
_SCORES = 1 << 22

# Above the rounding errors of a float32 product, in parts of the lengths of both vectors.
_ROUNDING = np.float32(2e-6)

# Of float32; what is left out has -inf, which is below.
_LEAST = np.finfo(np.float32).min


class Search:
    """Finds the rows of `vectors` (rows x width) that have the highest products with queries.

    Rows are taken by descending length until no product with those that are left can be high enough. A
    product of float32 selects rows; their scores are then computed with float64 and rounded, so a list does
    not depend on the number of queries of a call, whose products round differently.
    """

    def __init__(self, vectors: Floats) -> None:
        lengths = _lengths_of(vectors)
        self._order = np.argsort(-lengths, kind="stable")
        self._vectors = np.ascontiguousarray(vectors[self._order])
        self._lengths = lengths[self._order]

    def best(
        self,
        queries: Floats,
        n: int,
        left_out: tuple[Positions, Positions] | None = None,
        mask: npt.NDArray[np.bool_] | None = None,
    ) -> tuple[Positions, Floats]:
        """The n best rows for each query as matrices (positions, scores), best first, equal ones by position.

        Ends of lists that are short are -1 and -inf. `left_out`: pairs (numbers of queries, positions) that
        are in no list, by ascending query. `mask`: True for each row that may be in a list.
        """
        found = np.full((len(queries), n), -1, np.int64)
        scores = np.full((len(queries), n), -np.inf, np.float32)
        order, vectors, lengths = self._order, self._vectors, self._lengths
        if mask is not None:
            kept = mask[order]
            order, vectors, lengths = order[kept], vectors[kept], lengths[kept]
        if n == 0 or len(order) == 0:
            return found, scores
        hidden = left_out and (left_out[0], _columns_of(left_out[1], order, len(self._order)))
        step = max(1, _SCORES // min(_ROWS, len(order)))
        for first in range(0, len(queries), step):
            some = queries[first : first + step]
            own = None
            if hidden is not None:
                start, end = np.searchsorted(hidden[0], (first, first + len(some)))
                own = (hidden[0][start:end] - first, hidden[1][start:end])
            rows, columns = _candidates(some, vectors, lengths, n, own)
            exact = np.einsum("ij,ij->i", some[rows], vectors[columns], dtype=np.float64).astype(np.float32)
            columns = order[columns]
            by_score = np.lexsort((columns, -exact, rows))
            rows, columns, exact = rows[by_score], columns[by_score], exact[by_score]
            places = np.arange(len(rows)) - np.searchsorted(rows, rows)
            best = places < n
            rows, places = rows[best] + first, places[best]
            found[rows, places], scores[rows, places] = columns[best], exact[best]
        return found, scores


def _lengths_of(vectors: Floats) -> Floats:
    return np.sqrt(np.einsum("ij,ij->i", vectors, vectors))


def _columns_of(positions: Positions, order: Positions, count: int) -> Positions:
    """Where the positions are in `order`; -1 for those that it does not have."""
    columns = np.full(count, -1, np.int64)
    columns[order] = np.arange(len(order))
    return columns[positions]


def _candidates(
    queries: Floats,
    vectors: Floats,
    lengths: Floats,
    n: int,
    hidden: tuple[Positions, Positions] | None,
) -> tuple[Positions, Positions]:
    """Pairs of a query and a row of `vectors` that have all n best rows of each query.

    `lengths`: of the vectors, descending. `hidden`: pairs that are left out.
    """
    own_lengths = _lengths_of(queries)
    margins = _ROUNDING * lengths[0] * own_lengths
    # No more than the nth best score of each query.
    bounds = np.full(len(queries), _LEAST, np.float32)
    active = np.arange(len(queries))
    found = []
    for first in range(0, len(vectors), _ROWS):
        if first > 0:
            active = active[own_lengths[active] * lengths[first] + margins[active] >= bounds[active]]
        if len(active) == 0:
            break
        some = vectors[first : first + _ROWS]
        groups = max(1, int(np.sqrt(len(some) / n)))
        width = -(-len(some) // groups)
        products = np.empty((len(active), groups * width), np.float32)
        products[:, len(some) :] = -np.inf
        asked = queries if len(active) == len(queries) else queries[active]
        np.matmul(asked, some.T, out=products[:, : len(some)])
        if hidden is not None:
            inside = (hidden[1] >= first) & (hidden[1] < first + len(some))
            place = np.full(len(queries), -1)
            place[active] = np.arange(len(active))
            rows = place[hidden[0][inside]]
            products[rows[rows >= 0], hidden[1][inside][rows >= 0] - first] = -np.inf
        tables = products.reshape(len(active), groups, width)
        # The best of each column of groups is one score of the query: the nth best of these is a bound.
        highest = tables.max(axis=1)
        if width >= n:
            nth = np.partition(highest, width - n, axis=1)[:, width - n]
            bounds[active] = np.maximum(bounds[active], nth - margins[active])
        least = bounds[active]
        rows, places = np.nonzero(highest >= least[:, None])
        hits, group = np.nonzero(tables[rows, :, places] >= least[rows, None])
        rows, places = rows[hits], places[hits]
        columns = group * width + places
        found.append((active[rows], columns + first, products[rows, columns]))
    rows, columns, scores = (np.concatenate(one) for one in zip(*found))
    kept = scores >= bounds[rows]
    return rows[kept], columns[kept]
