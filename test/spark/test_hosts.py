"""
Many hosts: blocks of rows in the workers of several executors give the factors of one host. The runner starts
local-cluster[3,1,2048].
"""

import pytest
from pyspark.ml.recommendation import ALS

from support import HOST_PARAMS, assert_close, factors, on_hosts, planted, rmse, wait_for, workers


@pytest.mark.parametrize(("hosts", "exchange"), [(3, "broadcast"), (3, "shuffle"), (2, "auto")])
def test_the_factors_are_those_of_one_host(spark, ratings, one_host, hosts, exchange):
    assert factors(on_hosts(spark, hosts, lambda: ALS(**HOST_PARAMS).fit(ratings), exchange)) == one_host
    wait_for(lambda: not workers(), 10, "the end of the workers")


@pytest.mark.parametrize("implicit", [False, True])
def test_rows_in_16_bits_give_close_factors_that_hosts_and_exchange_do_not_change(
    spark, ratings, one_host, implicit_host, implicit
):
    als = ALS(implicitPrefs=True, alpha=2.0, **HOST_PARAMS) if implicit else ALS(**HOST_PARAMS)

    def fit():
        return als.fit(ratings)

    two, three, copied = (
        factors(on_hosts(spark, hosts, fit, exchange, "float16"))
        for hosts, exchange in [(2, "shuffle"), (3, "shuffle"), (3, "broadcast")]
    )
    one = implicit_host if implicit else one_host
    assert three != one
    assert_close(one, three, 5e-3)
    assert copied == three
    if not implicit:
        assert two == three


def test_items_from_sums_of_equations_within_rounding(spark, ratings, one_host):
    assert_close(one_host, factors(on_hosts(spark, 3, lambda: ALS(**HOST_PARAMS).fit(ratings), "equations")))


@pytest.mark.parametrize("exchange", ["auto", "shuffle", "equations"])
def test_implicit_data_within_rounding(spark, ratings, implicit_host, exchange):
    als = ALS(implicitPrefs=True, alpha=2.0, **HOST_PARAMS)
    assert_close(implicit_host, factors(on_hosts(spark, 3, lambda: als.fit(ratings), exchange)))


def test_more_hosts_than_users_leave_blocks_empty(spark):
    few = spark.createDataFrame(planted(users=2, items=5, each=4), "user int, item int, rating float")
    one, three = (factors(on_hosts(spark, hosts, lambda: ALS(**HOST_PARAMS).fit(few))) for hosts in (1, 3))
    assert one == three


def test_no_ratings(spark):
    none = spark.createDataFrame([], "user int, item int, rating float")
    with pytest.raises(Exception, match="No ratings available"):
        on_hosts(spark, 3, lambda: ALS(**HOST_PARAMS).fit(none))


def test_the_model_fits(spark, ratings):
    model = on_hosts(spark, 3, lambda: ALS(coldStartStrategy="drop", **HOST_PARAMS).fit(ratings))
    assert rmse(model, ratings) < 0.3


def test_sparse_ratings_by_needed_rows_are_those_of_one_host(spark):
    """Each host needs few of the other side's rows, and some rows are needed by one host alone."""
    sparse = spark.createDataFrame(
        planted(users=300, items=200, each=2), "user int, item int, rating float"
    ).repartition(2)
    one, three = (
        factors(on_hosts(spark, hosts, lambda: ALS(**HOST_PARAMS).fit(sparse), "shuffle")) for hosts in (1, 3)
    )
    assert one == three


def test_checkpoints_of_a_shuffle_change_nothing(spark, ratings, folder):
    als = ALS(checkpointInterval=2, **HOST_PARAMS)
    expected = factors(on_hosts(spark, 1, lambda: als.fit(ratings)))
    spark.sparkContext.setCheckpointDir(str(folder / "checkpoints"))
    try:
        assert factors(on_hosts(spark, 3, lambda: als.fit(ratings), "shuffle")) == expected
        assert list((folder / "checkpoints").rglob("part-*"))
    finally:
        spark.sparkContext._jsc.sc().setCheckpointDir(None)


def test_too_little_memory_is_refused_with_the_plan(spark):
    """
    216 MiB are 1 MiB more than the process needs: enough to read these ratings, and 2 MiB less than their
    rows of rank 500 need.
    """
    many = spark.createDataFrame(
        planted(users=600, items=400, each=5), "user int, item int, rating float"
    ).repartition(2)
    with pytest.raises(
        Exception,
        match=r"A worker needs about \d+ MiB of memory, and it may have 216 .*"
        "rows sent to the average host.*Raise spark.factorflow.memory",
    ):
        als = ALS(**HOST_PARAMS | {"rank": 500})
        on_hosts(spark, 3, lambda: als.fit(many), spark__factorflow__memory="216m")
