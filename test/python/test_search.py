"""Lists are the best rows of float64 products, equal ones by position, and those that the worker finds."""

import numpy as np
import pytest
import scipy.sparse as sparse

import factorflow
from factorflow import _recommend
from factorflow._search import Search


@pytest.mark.parametrize(("rows", "n"), [(9500, 10), (9500, 1), (5000, 300), (30, 10), (7, 10)])
def test_lists_are_those_of_all_products(rows, n):
    draw = np.random.default_rng(rows + n)
    # Lengths differ, so that a search ends early; every fifth row is equal to another.
    vectors = draw.standard_normal((rows, 12)) * draw.exponential(1, (rows, 1)) ** 2
    vectors = vectors.astype(np.float32)
    vectors[4::5] = vectors[draw.integers(0, rows, len(vectors[4::5]))]
    queries = draw.standard_normal((40, 12)).astype(np.float32)
    queries[11] = 0
    hidden = np.unique(np.stack([draw.integers(0, 40, 900), draw.integers(0, rows, 900)]), axis=1)
    mask = draw.random(rows) < 0.8
    search = Search(vectors)
    for left_out in (None, tuple(hidden)):
        for kept in (None, mask):
            scores = (queries.astype(np.float64) @ vectors.T.astype(np.float64)).astype(np.float32)
            if left_out is not None:
                scores[left_out] = -np.inf
            if kept is not None:
                scores[:, ~kept] = -np.inf
            found, values = search.best(queries, n, left_out, kept)
            order = np.argsort(-scores, axis=1, kind="stable")[:, :n]
            best = np.take_along_axis(scores, order, axis=1)
            width = order.shape[1]
            np.testing.assert_array_equal(found[:, :width], np.where(np.isfinite(best), order, -1))
            np.testing.assert_array_equal(values[:, :width], best)
            assert (found[:, width:] == -1).all()
    one, _ = search.best(queries[3:4], n)
    np.testing.assert_array_equal(one[0], search.best(queries, n)[0][3])


def test_lists_are_those_of_the_worker(monkeypatch):
    draw = np.random.default_rng(8)
    pairs = (draw.integers(0, 300, 4000), (draw.random(4000) ** 2 * 200).astype(int))
    clicks = sparse.csr_matrix((np.ones(4000, np.float32), pairs), shape=(300, 200))
    for implicit in (True, False):
        with factorflow.ALS(factors=6, iterations=3, implicit=implicit, num_threads=1) as model:
            model.fit(clicks.astype(np.float32))
            users = np.arange(300)
            own = [model.recommend(users, N=9), model.recommend(users, N=9, items=range(90))]
            monkeypatch.setattr(_recommend, "_is_for_worker", lambda work, device: True)
            theirs = [model.recommend(users, N=9), model.recommend(users, N=9, items=range(90))]
            monkeypatch.undo()
            for (ids, scores), (other_ids, other_scores) in zip(own, theirs):
                near = np.abs(np.diff(scores, axis=1)).min(axis=1) > 2e-6
                assert near.sum() > 200
                np.testing.assert_array_equal(ids[near], other_ids[near])
                np.testing.assert_allclose(scores, other_scores, rtol=0, atol=1e-6)
