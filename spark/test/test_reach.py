"""FactorFlow's part beyond Spark's ALS: parameters of its own, and a summary of a fit. The runner starts local[2]."""

import pytest
from pyspark.ml.recommendation import ALS, ALSModel

from support import BLOCKS, factors, rmse, settings


def message(work):
    with pytest.raises(Exception) as caught:
        work()
    return str(caught.value)


def test_biases_are_two_more_features(ratings, folder):
    import factorflow_spark

    als = ALS(rank=3, maxIter=6, regParam=0.02, seed=1, coldStartStrategy="drop", **BLOCKS)
    plain = als.fit(ratings)
    model = factorflow_spark.options(als.copy(), biases=True, biasDamping=[3, 5]).copy().fit(ratings)
    assert model.rank == 5
    users, items = factors(model)
    assert {(len(row), row[4]) for row in users.values()} == {(5, 1.0)}
    assert {(len(row), row[3]) for row in items.values()} == {(5, 1.0)}
    assert 2.5 < sum(row[3] for row in users.values()) / len(users) < 3.5
    assert rmse(model, ratings) < 0.4
    pair = ratings.first()
    [found] = [row.prediction for row in model.transform(ratings).where(f"user = {pair.user} and item = {pair.item}").collect()]
    assert abs(found - sum(a * b for a, b in zip(users[pair.user], items[pair.item]))) < 1e-5
    model.write().overwrite().save(f"{folder}/model")
    assert ALSModel.load(f"{folder}/model").rank == 5
    assert (plain.rank, factors(plain)) == (3, factors(als.fit(ratings)))


def test_parameters_of_the_application_and_of_an_estimator(spark, ratings):
    import factorflow_spark

    als = ALS(rank=3, maxIter=2, seed=1, **BLOCKS)
    own = factors(als.fit(ratings))
    with settings(spark, spark__factorflow__param__regExponent="0.5"):
        of_application = factors(als.fit(ratings))
        assert factors(factorflow_spark.options(als.copy(), regExponent=1).fit(ratings)) == own
    assert of_application != own
    assert factors(factorflow_spark.options(als, regExponent=0.5).fit(ratings)) == of_application


def test_parameters_are_refused_at_once_in_factorflows_words(spark, started, ratings):
    import factorflow_spark

    als = ALS(rank=3, maxIter=1, **BLOCKS)
    before = started()
    assert "biases must be true or false, got 3" in message(lambda: factorflow_spark.options(als, biases=3))
    assert "unknown ALS parameter bias" in message(lambda: factorflow_spark.options(als, bias=True))
    with settings(spark, spark__factorflow__param__cgSteps="0"):
        assert "cgSteps must be auto or a whole number from 1 to 1,000, got 0" in message(lambda: als.fit(ratings))
    assert "maxIter is 0, and Spark's own ALS does not have biases" in message(lambda: factorflow_spark.options(als.copy({als.maxIter: 0}), biases=True).fit(ratings))
    assert started() == before
    both = factorflow_spark.options(als.copy({als.implicitPrefs: True}), biases=True)
    assert "implicit data have no level to learn" in message(lambda: both.fit(ratings))
