"""Ratings and models that tests share. A model is trained once; tests that change one train their own."""

import numpy as np
import pytest
import scipy.sparse as sparse

import factorflow


def pytest_configure():
    # A machine with a GPU gives the same tests: they are about the package.
    global MACHINE
    MACHINE = {"device": "cpu", "num_threads": 1}


MACHINE = {"device": "cpu", "num_threads": 1}


@pytest.fixture(scope="session")
def machine():
    return dict(MACHINE)


@pytest.fixture(scope="session")
def triples():
    """Arrays (users, items, ratings) of a planted signal; user 7 and item 5 have no ratings."""
    draw = np.random.default_rng(3)
    users, items = np.divmod(draw.choice(60 * 40, 900, replace=False), 40)
    kept = (users != 7) & (items != 5)
    users, items = users[kept], items[kept]
    ratings = 3 + np.sin(users) * np.cos(items) + draw.uniform(-0.2, 0.2, len(users))
    return users, items, ratings.astype(np.float32)


@pytest.fixture(scope="session")
def matrix(triples):
    users, items, ratings = triples
    return sparse.csr_matrix((ratings, (users, items)), shape=(60, 40))


@pytest.fixture(scope="session")
def model(matrix, machine):
    """Of the matrix; for reading."""
    with factorflow.ALS(factors=4, iterations=4, **machine).fit(matrix) as trained:
        yield trained


@pytest.fixture(scope="session")
def named(triples, machine):
    """Of a table whose ids are text; for reading."""
    users, items, ratings = triples
    table = {
        "user": [f"u{one:02}" for one in users],
        "item": [f"i{one:02}" for one in items],
        "rating": ratings,
    }
    import pyarrow as pa

    with factorflow.ALS(factors=4, iterations=4, **machine).fit(pa.table(table)) as trained:
        yield trained
