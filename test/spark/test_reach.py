"""
FactorFlow's part beyond Spark's ALS: parameters of its own, a summary of a fit, and recommendations by
workers. The runner starts local[2].
"""

import pytest
from pyspark.ml.recommendation import ALS, ALSModel

from support import BLOCKS, assert_close, factors, plain, rmse, settings


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
    [found] = [
        row.prediction
        for row in model.transform(ratings).where(f"user = {pair.user} and item = {pair.item}").collect()
    ]
    assert abs(found - sum(a * b for a, b in zip(users[pair.user], items[pair.item]))) < 1e-5
    model.write().overwrite().save(f"{folder}/model")
    assert ALSModel.load(f"{folder}/model").rank == 5
    assert (plain.rank, factors(plain)) == (3, factors(als.fit(ratings)))


@pytest.mark.parametrize(
    ("params", "most"),
    [
        ({"rank": 5, "maxIter": 10, "seed": -7, **BLOCKS}, 2e-3),
        ({"rank": 4, "maxIter": 3}, 2e-3),
        ({"rank": 4, "maxIter": 6, "implicitPrefs": True, "seed": 1 << 40, "numUserBlocks": 7}, 2e-3),
        ({"rank": 3, "maxIter": 5, "nonnegative": True, "seed": 2}, 2e-3),
    ],
)
def test_the_same_seed_gives_the_factors_of_sparks_own_als(ratings, params, most):
    als = ALS(**params)
    own, found = (factors(fit.fit(ratings)) for fit in (plain(als), als))
    assert_close(own, found, most)
    others = factors(als.copy({als.seed: 3}).fit(ratings))
    assert max(abs(a - b) for key, row in own[0].items() for a, b in zip(row, others[0][key])) > 0.1


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
    assert "unknown parameter bias" in message(lambda: factorflow_spark.options(als, bias=True))
    with settings(spark, spark__factorflow__param__cgSteps="0"):
        assert "cgSteps must be auto or a whole number from 1 to 1,000, got 0" in message(
            lambda: als.fit(ratings)
        )
    assert "maxIter is 0, and Spark's own ALS does not have biases" in message(
        lambda: factorflow_spark.options(als.copy({als.maxIter: 0}), biases=True).fit(ratings)
    )
    assert started() == before
    both = factorflow_spark.options(als.copy({als.implicitPrefs: True}), biases=True)
    assert "implicit data have no level to learn" in message(lambda: both.fit(ratings))


@pytest.mark.parametrize("biases", [False, True])
def test_sgd_trains_on_one_host(spark, ratings, biases):
    import factorflow_spark

    als = ALS(rank=3, maxIter=20, regParam=0.02, seed=1, coldStartStrategy="drop", **BLOCKS)
    sgd = {"algorithm": "sgd", "biases": biases, "learningRate": 0.1}
    with settings(spark, spark__factorflow__workers="2"):
        model = factorflow_spark.options(als.copy(), **sgd).fit(ratings)
    found = factorflow_spark.summary()
    assert (found["algorithm"], found["hosts"], len(found["iterations"])) == ("sgd", 1, 20)
    assert any("sgd" in kernel for kernel in found["kernels"])
    assert model.rank == (5 if biases else 3)
    assert rmse(model, ratings) < 0.5
    with settings(spark, spark__factorflow__param__algorithm="sgd"):
        assert factors(als.fit(ratings)) != factors(model)
        assert factorflow_spark.summary()["algorithm"] == "sgd"


def test_parameters_that_the_algorithm_does_not_have_are_refused(spark, started, ratings):
    import factorflow_spark

    als = ALS(rank=3, maxIter=1, **BLOCKS)
    before = started()
    fit = lambda als, **own: message(lambda: factorflow_spark.options(als.copy(), **own).fit(ratings))
    assert "cgSteps is a parameter of als, and algorithm is sgd" in fit(als, algorithm="sgd", cgSteps=3)
    assert "learningRate is a parameter of sgd, and algorithm is als" in fit(als, learningRate=0.1)
    assert "implicitPrefs cannot be used with algorithm sgd" in fit(
        als.copy({als.implicitPrefs: True}), algorithm="sgd"
    )
    assert "algorithm must be als or sgd, got svd" in fit(als, algorithm="svd")
    assert started() == before


@pytest.mark.parametrize("hosts", [1, 2])
def test_the_summary_of_a_fit(spark, ratings, hosts):
    import factorflow_spark

    with settings(spark, spark__factorflow__workers=str(hosts)):
        ALS(rank=3, maxIter=4, seed=1, **BLOCKS).fit(ratings)
    found = factorflow_spark.summary()
    assert (found["rank"], found["hosts"], found["ratings"]) == (3, hosts, 900)
    assert [one["iteration"] for one in found["iterations"]] == [1, 2, 3, 4]
    assert all(0 < one["seconds"] < found["seconds"] for one in found["iterations"])
    assert found["devices"][0].startswith("cpu on ")
    # a rating has two ids and a value, a row of factors an id and three values
    assert found["bytesToWorkers"] > 12 * 900
    assert found["bytesFromWorkers"] > 16 * 100
    losses = [one["loss"] for one in found["iterations"]]
    assert losses == sorted(losses, reverse=True)
    assert found["kernels"][0].startswith("update")
    assert 0 < found["iterations"][-1]["trainRmse"] < 1
    ALS(rank=3, maxIter=0, **BLOCKS).fit(ratings)
    assert factorflow_spark.summary() is None


def same(one, other):
    return (one is None and other is None) or abs(one / other - 1) < 1e-3


@pytest.mark.parametrize("implicit", [False, True])
def test_losses_of_several_hosts_are_those_of_one(spark, ratings, implicit):
    """Also with sums of the users' equations, where the items are more than the users."""
    import factorflow_spark

    swapped = ratings.selectExpr("item user", "user item", "rating")
    for data, exchange in ((ratings, "shuffle"), (ratings, "equations"), (swapped, "equations")):
        found = []
        for hosts in ("1", "2"):
            with settings(
                spark,
                spark__factorflow__workers=hosts,
                spark__factorflow__exchange=exchange,
                spark__factorflow__param__start="spark",
            ):
                ALS(rank=3, maxIter=3, seed=1, implicitPrefs=implicit, **BLOCKS).fit(data)
            found.append(factorflow_spark.summary()["iterations"])
        for one, two in zip(*found):
            if implicit and data is swapped:
                assert (two["loss"], two["trainRmse"]) == (None, None)
            else:
                assert same(one["loss"], two["loss"]) and same(one["trainRmse"], two["trainRmse"])


def test_factors_are_persisted_with_sparks_names(spark, ratings):
    kept = lambda: {
        rdd.id(): (rdd.name(), rdd.getStorageLevel().toString())
        for rdd in spark.sparkContext._jsc.getPersistentRDDs().values()
    }
    before = kept()
    level = "StorageLevel(disk, memory, deserialized, 1 replicas)"
    models = []
    for hosts in ("1", "2"):
        with settings(spark, spark__factorflow__workers=hosts):
            models.append(ALS(rank=2, maxIter=1, **BLOCKS).fit(ratings))
    found = [
        value
        for rdd, value in kept().items()
        if rdd not in before and value[0] is not None and value[0].endswith("Factors")
    ]
    assert sorted(found) == sorted([("itemFactors", level), ("userFactors", level)] * 2)
    assert len(models) == 2


def lists(df):
    return {row[0]: [tuple(one) for one in row.recommendations] for row in df.collect()}


def outcome(work):
    """A result, or the class and the first words of an error."""
    try:
        return work()
    except Exception as error:
        return type(error).__name__, str(error)[:40]


def close(ours, own):
    """The same items, with scores that differ by rounding."""
    assert ours.keys() == own.keys()
    for key, entries in own.items():
        assert [one[0] for one in ours[key]] == [one[0] for one in entries]
        assert all(abs(a[1] - b[1]) < 1e-5 for a, b in zip(ours[key], entries))
    return True


CALLS = [
    ("recommendForAllUsers", None, 60),
    ("recommendForAllItems", None, 40),
    ("recommendForUserSubset", "user", 2),
    ("recommendForItemSubset", "item", 2),
]


@pytest.mark.parametrize("by", ["workers", "true"])
@pytest.mark.parametrize("name, column, rows", CALLS, ids=[call[0] for call in CALLS])
def test_recommendations_are_sparks(spark, ratings, started, folder, name, column, rows, by):
    """By workers, and from the driver's copy of the factors, which starts none."""
    model = ALS(rank=4, maxIter=3, seed=1, **BLOCKS).fit(ratings)
    chosen = [] if column is None else [spark.createDataFrame([(3,), (3,), (9,), (1000,)], f"{column} int")]
    with settings(spark, spark__factorflow__recommend="false"):
        own = getattr(model, name)(*chosen, 5)
        expected = lists(own)
    assert len(expected) == rows
    with settings(spark, spark__factorflow__recommend=by):
        before = started()
        found = getattr(model, name)(*chosen, 5)
        assert found.schema == own.schema
        assert started() == before
        assert close(lists(found), expected)
        assert (started() > before) == (by == "workers")
        model.write().overwrite().save(f"{folder}/model")
        loaded = ALSModel.load(f"{folder}/model")
        before = started()
        assert close(lists(getattr(loaded, name)(*chosen, 5)), expected)
        assert started() == before + (by == "workers")
        assert lists(getattr(loaded.copy(), name)(*chosen, 1000)).keys() == expected.keys()


def test_ids_of_any_type_choose_rows(spark, ratings, started):
    """As Spark's own join does: by value, without nulls and ids that the model does not have."""
    model = ALS(rank=2, maxIter=1, seed=1, **BLOCKS).fit(ratings)
    before = started()
    for kind in ("tinyint", "smallint", "int", "bigint", "double", "string"):
        ids = [(3,), (None,), (9,), (100,)] + ([((1 << 32) + 3,)] if kind == "bigint" else [])
        chosen = spark.createDataFrame(ids, "id bigint").selectExpr(f"cast(id as {kind}) user")
        assert sorted(lists(model.recommendForUserSubset(chosen, 2))) == [3, 9], kind
    with settings(spark, spark__factorflow__recommend="false"):
        own = message(lambda: model.recommendForUserSubset(ratings.select("item"), 2))
    assert message(lambda: model.recommendForUserSubset(ratings.select("item"), 2))[:60] == own[:60]
    assert started() == before


def test_recommendations_are_lazy_and_searched_once(spark, ratings, started):
    model = ALS(rank=2, maxIter=1, seed=1, userCol="user", **BLOCKS).fit(ratings)
    with settings(spark, spark__factorflow__recommend="workers"):
        model.recommendForAllUsers(2).count()
        before = started()
        found = model.recommendForAllUsers(2)
        assert started() == before
        assert (found.count(), found.where("size(recommendations) = 2").count()) == (60, 60)
        assert started() == before + 1


def test_sparks_own_recommends_where_no_worker_starts(spark, ratings, started):
    model = ALS(rank=2, maxIter=2, seed=1, **BLOCKS).fit(ratings)
    expected = lists(model.recommendForAllItems(3))
    before = started()
    nowhere = {"spark__factorflow__executable": "/no/such/file", "spark__factorflow__recommend": "workers"}
    with settings(spark, **nowhere):
        assert close(lists(model.recommendForAllItems(3)), expected)
    assert len(lists(model.recommendForAllItems(1001))) == 40
    for n in (0, -1):
        with settings(spark, spark__factorflow__recommend="false"):
            own = outcome(lambda: lists(model.recommendForAllItems(n)))
        assert outcome(lambda: lists(model.recommendForAllItems(n))) == own
    assert started() == before
