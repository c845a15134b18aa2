"""
The cases of Spark's ALSSuite about recommendations. In classic sessions workers of FactorFlow search the
lists of this loaded model; through Connect Spark's own methods do.
"""

import json

import pyspark
import pytest
from pyspark.ml.recommendation import ALSModel

USERS = {0: [6.0, 4.0], 1: [3.0, 4.0], 2: [3.0, 6.0]}
ITEMS = {3: [5.0, 6.0], 4: [6.0, 2.0], 5: [3.0, 6.0], 6: [4.0, 1.0]}


@pytest.fixture(scope="module")
def known(spark, tmp_path_factory):
    """A model of known factors, loaded from files, since its constructor is private."""
    folder = tmp_path_factory.mktemp("known")
    (folder / "metadata").mkdir()
    metadata = {
        "class": "org.apache.spark.ml.recommendation.ALSModel",
        "timestamp": 0,
        "sparkVersion": pyspark.__version__,
        "uid": "als_known",
        "paramMap": {"userCol": "user", "itemCol": "item"},
        "defaultParamMap": {"coldStartStrategy": "nan", "blockSize": 4096, "predictionCol": "prediction"},
        "rank": 2,
    }
    (folder / "metadata/part-00000").write_text(json.dumps(metadata) + "\n")
    for name, rows in (("userFactors", USERS), ("itemFactors", ITEMS)):
        spark.createDataFrame(list(rows.items()), "id int, features array<float>").write.parquet(
            f"{folder}/{name}"
        )
    return ALSModel.load(str(folder))


def best(rows, others, k):
    """The k largest products of each row with the rows of the other side, without ties here."""
    products = {
        key: [(other, sum(a * b for a, b in zip(row, values))) for other, values in others.items()]
        for key, row in rows.items()
    }
    return {key: sorted(found, key=lambda one: -one[1])[:k] for key, found in products.items()}


def lists(df, key, other):
    rows = df.collect()
    assert df.columns == [key, "recommendations"]
    assert all(list(one.asDict()) == [other, "rating"] for row in rows for one in row.recommendations)
    found = {row[key]: [tuple(one) for one in row.recommendations] for row in rows}
    assert len(found) == len(rows)
    return found


@pytest.mark.parametrize("k", [2, 3, 4, 6])
def test_recommendations_for_all(known, k):
    assert lists(known.recommendForAllUsers(k), "user", "item") == best(USERS, ITEMS, k)
    assert lists(known.recommendForAllItems(k), "item", "user") == best(ITEMS, USERS, k)


def test_recommendations_for_chosen_rows_and_repeated_ones(spark, known):
    chosen = lambda ids, column: spark.createDataFrame([(one,) for one in ids], f"{column} int")
    only = lambda rows, ids: {key: rows[key] for key in ids}
    for users, items, k in (([0, 2], [3, 6], 2), ([0, 1, 0, 1], [3, 4, 5, 4, 5], 4), (USERS, ITEMS, 6)):
        by_user = known.recommendForUserSubset(chosen(users, "user"), k)
        assert lists(by_user, "user", "item") == best(only(USERS, users), ITEMS, k)
        by_item = known.recommendForItemSubset(chosen(items, "item"), k)
        assert lists(by_item, "item", "user") == best(only(ITEMS, items), USERS, k)
