"""Every form of ratings gives the same model."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sparse

import factorflow


def frame(triples):
    return pd.DataFrame(dict(zip(("user", "item", "rating"), triples)))


def structured(triples):
    users, items, ratings = triples
    made = np.zeros(len(users), [("user", "i8"), ("item", "i4"), ("rating", "f8")])
    made["user"], made["item"], made["rating"] = users, items, ratings
    return made


FORMS = {
    "csc": lambda triples, matrix: matrix.tocsc(),
    "coo": lambda triples, matrix: matrix.tocoo(),
    "lil": lambda triples, matrix: matrix.tolil(),
    "csr array of float64": lambda triples, matrix: sparse.csr_array(matrix).astype(np.float64),
    "pandas": lambda triples, matrix: frame(triples),
    "pandas with an index": lambda triples, matrix: frame(triples).sample(frac=1, random_state=1),
    "polars": lambda triples, matrix: pl.from_pandas(frame(triples)),
    "polars, lazy": lambda triples, matrix: pl.from_pandas(frame(triples)).lazy(),
    "arrow table": lambda triples, matrix: pa.Table.from_pandas(frame(triples), preserve_index=False),
    "arrow batch": lambda triples, matrix: pa.RecordBatch.from_pandas(frame(triples), preserve_index=False),
    "arrow stream": lambda triples, matrix: pa.table(frame(triples)).to_reader(max_chunksize=100),
    "arrays": lambda triples, matrix: triples,
    "big-endian": lambda triples, matrix: tuple(one.astype(one.dtype.newbyteorder(">")) for one in triples),
    "big-endian pandas": lambda triples, matrix: frame(triples).astype({"user": ">i8", "rating": ">f4"}),
    "longdouble": lambda triples, matrix: (*triples[:2], triples[2].astype(np.longdouble)),
    "masked without a mask": lambda triples, matrix: (*triples[:2], np.ma.array(triples[2])),
    "sparse pandas": lambda triples, matrix: frame(triples).astype({"rating": pd.SparseDtype("float32", 3)}),
    "categories": lambda triples, matrix: frame(triples).astype({"user": "category", "item": "category"}),
    "arrow categories": lambda triples, matrix: pa.table(
        {
            name: pa.array(one).dictionary_encode() if name != "rating" else one
            for name, one in zip(("user", "item", "rating"), triples)
        }
    ),
    "structured": lambda triples, matrix: structured(triples),
}


@pytest.mark.parametrize("form", FORMS)
def test_forms(form, triples, matrix, model, machine):
    with factorflow.ALS(factors=4, iterations=4, **machine).fit(FORMS[form](triples, matrix)) as other:
        rows = np.setdiff1d(np.arange(60), [7])
        own = other.user_factors if other.user_factors.shape[0] == 59 else other.user_factors[rows]
        np.testing.assert_array_equal(own, model.user_factors[rows])
        np.testing.assert_array_equal(other.predict([3], [9]), model.predict([3], [9]))


def test_row_order_and_empty_rows(model, matrix):
    assert model.user_factors.shape == (60, 4) and model.user_factors.dtype == np.float32
    assert model.item_factors.shape == (40, 4)
    assert not model.user_factors[7].any() and not model.item_factors[5].any()
    assert list(model.user_ids) == list(range(60))
    with pytest.raises(ValueError, match="read-only"):
        model.user_factors[0, 0] = 1


def test_text_ids_are_kept(triples, named, model):
    assert list(named.user_ids) == [f"u{one:02}" for one in range(60) if one != 7]
    ids, scores = named.recommend("u03", N=4)
    assert [one[0] for one in ids] == ["i"] * 4
    # The start of a user is drawn by the id, so that the factors of other ids differ.
    np.testing.assert_allclose(scores, model.recommend(3, N=4)[1], rtol=0.01)
    users, items, _ = triples
    np.testing.assert_array_equal(
        named.predict(["u03", "nobody"], ["i09", "i09"]), [named.predict("u03", "i09"), np.nan]
    )


@pytest.mark.parametrize(
    "convert",
    [
        lambda frame: frame.astype({"user": "category", "item": "category"}),
        lambda frame: frame.astype({"user": "string"}),
        lambda frame: pl.from_pandas(frame).with_columns(pl.col("item").cast(pl.Categorical)),
        lambda frame: pa.table(frame).cast(
            pa.schema([("user", pa.large_string()), ("item", pa.string()), ("rating", pa.float64())])
        ),
    ],
)
def test_kinds_of_text(triples, named, machine, convert):
    users, items, ratings = triples
    made = pd.DataFrame(
        {"user": [f"u{u:02}" for u in users], "item": [f"i{i:02}" for i in items], "rating": ratings}
    )
    with factorflow.ALS(factors=4, iterations=4, **machine).fit(convert(made)) as other:
        np.testing.assert_array_equal(other.item_factors, named.item_factors)
        assert list(other.item_ids) == list(named.item_ids)


@pytest.mark.parametrize("kind", ["int64", "uint32", "int16", "uint64"])
def test_numbers_keep_their_type(triples, machine, kind):
    users, items, ratings = triples
    with factorflow.ALS(factors=2, iterations=1, **machine).fit(
        (users.astype(kind), items, ratings)
    ) as model:
        assert model.user_ids.dtype.kind == "i" and model.item_ids.dtype == np.int64
        assert model.recommend(users[0], N=2)[0].dtype == np.int64


def test_ids_of_64_bits(triples, machine):
    users, items, ratings = triples
    far = users.astype(np.int64) + 2**60
    with factorflow.ALS(factors=2, iterations=1, **machine).fit((far, items, ratings)) as model:
        assert model.user_ids[0] == 2**60
        assert len(model.recommend(2**60 + 3, N=2)[0]) == 2
        assert model.similar_users(2**60 + 3, N=3)[0][0] == 2**60 + 3
        with pytest.raises(KeyError, match="no user"):
            model.recommend(2**60 + 7)


def test_ids_near_each_other_above_2_to_53(triples, machine):
    users, items, ratings = triples
    far = users.astype(np.uint64) + np.uint64(2**62 + 1)
    with factorflow.ALS(factors=2, iterations=1, **machine).fit((far, items, ratings)) as model:
        assert np.isfinite(model.predict(far, items)).all()
        assert model.recommend(far[:3], N=2)[0].shape == (3, 2)
        with pytest.raises(KeyError, match=f"no user {2**63 + 1}"):
            model.recommend(np.uint64(2**63 + 1))


def test_masked_rows_may_be_skipped(triples, matrix, machine):
    users, items, ratings = triples
    masked = np.ma.array(np.append(ratings, -9999), mask=[*[False] * len(users), True])
    with factorflow.ALS(factors=4, iterations=4, on_bad_rows="skip", **machine) as model:
        model.fit((np.append(users, 3), np.append(items, 4), masked))
        assert model.report_["badRows"] == 1
        expected = factorflow.ALS(factors=4, iterations=4, **machine).fit(triples)
        np.testing.assert_array_equal(model.user_factors, expected.user_factors)
        expected.close()


def test_the_last_of_repeated_pairs(triples, matrix, machine):
    users, items, ratings = triples
    with factorflow.ALS(factors=2, iterations=2, **machine).fit(triples) as model:
        expected = model.item_factors
    twice = [np.concatenate([one, one]) for one in triples[:2]]
    twice += [np.concatenate([ratings, ratings - 1]), np.repeat([20, 10], len(users))]
    named = pd.DataFrame(dict(zip(("user", "item", "rating", "at"), twice)))
    with factorflow.ALS(factors=2, iterations=2, on_duplicates="last", **machine) as model:
        for given, column in (
            (tuple(twice), "timestamp"),
            (named, "at"),
            (named.assign(at=pd.to_datetime(named["at"])), "at"),
            (named.assign(timestamp=named["at"]), "timestamp"),
        ):
            np.testing.assert_array_equal(model.fit(given, timestamp=column).item_factors, expected)
        with pytest.raises(factorflow.DataError, match="no column 'timestamp' of timestamps"):
            model.fit(named)
        with pytest.raises(factorflow.UsageError, match="a matrix has no times"):
            model.fit(matrix)


def test_names_of_columns(triples, machine):
    renamed = frame(triples).rename(columns={"user": "who", "item": "film", "rating": "stars"})
    with factorflow.ALS(factors=2, iterations=1, **machine) as model:
        model.fit(renamed, user="who", item="film", rating="stars")
        with pytest.raises(factorflow.DataError, match=r"no column 'user' of users: .*user='...'"):
            model.fit(renamed)


def test_without_ratings(triples, machine):
    pairs = frame(triples)[["user", "item"]]
    with factorflow.ALS(factors=2, iterations=2, implicit=True, **machine) as model:
        ones = model.fit(pairs.assign(rating=1.0)).item_factors
        np.testing.assert_array_equal(model.fit(pairs).item_factors, ones)
        np.testing.assert_array_equal(model.fit((pairs.user, pairs.item)).item_factors, ones)
    with factorflow.ALS(factors=2, **machine) as model, pytest.raises(
        factorflow.DataError, match="no column 'rating'"
    ):
        model.fit(pairs)
