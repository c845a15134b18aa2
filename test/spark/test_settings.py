"""
An application with a fake GPU and a small driver: devices, workers that cannot be started, memory that does
not suffice. The runner starts local-cluster[1,2,1024].
"""

import os

import pytest
from pyspark.ml.recommendation import ALS

from support import (
    BLOCKS,
    base_conf,
    on_the_processor,
    other_version,
    planted,
    program,
    settings,
    start_session,
    workers,
)

NODE, MAIN = os.environ["FACTORFLOW_NODE"], os.environ["FACTORFLOW_MAIN"]


@pytest.fixture(scope="module")
def spark(home):
    discovery = program(home / "gpus.sh", '#!/bin/sh\necho \'{"name": "gpu", "addresses": ["3"]}\'\n')
    resource = {
        f"spark.{who}.resource.gpu.{what}": value
        for who in ("worker", "executor")
        for what, value in (("amount", "1"), ("discoveryScript", discovery))
    }
    session = start_session(
        "classic",
        os.environ["FACTORFLOW_MASTER"],
        {**base_conf(home), **resource, "spark.task.resource.gpu.amount": "1", "spark.driver.memory": "512m"},
    )
    yield session
    session.stop()


@pytest.fixture(scope="module")
def ratings(spark):
    return spark.createDataFrame(planted(), "user int, item int, rating float")


@pytest.fixture
def refused(spark, ratings):
    """A function that fits with other settings and returns the error message."""

    def fit(**changed):
        with settings(spark, **changed), pytest.raises(Exception) as caught:
            ALS(rank=3, maxIter=2, seed=1).fit(ratings)
        assert workers() == []
        return str(caught.value)

    return fit


@pytest.mark.parametrize("device", ["auto", "gpu"])
def test_the_index_of_a_gpu_becomes_the_workers_device(spark, ratings, folder, device):
    executable = on_the_processor(folder, f'echo "$@" >> {folder}/seen')
    with settings(spark, spark__factorflow__executable=executable, spark__factorflow__device=device):
        assert ALS(rank=3, maxIter=2, seed=1).fit(ratings).userFactors.count() == 60
    flags = (folder / "seen").read_text().split()
    assert flags[flags.index("--device") + 1] == "gpu:3"
    assert os.path.isabs(flags[flags.index("--spill-dir") + 1])


@pytest.mark.parametrize("hosts", [1, 2])
def test_a_model_larger_than_the_driver(spark, hosts):
    rank, users = 512, 280_000
    assert 4 * rank * users > spark.sparkContext._jvm.java.lang.Runtime.getRuntime().maxMemory()
    wide = spark.range(0, users, 1, 4).selectExpr(
        "int(id) user", "int(id % 97) item", "float(1 + id % 5) rating"
    )
    with settings(spark, spark__factorflow__workers=str(hosts)):
        model = ALS(
            rank=rank,
            maxIter=1,
            seed=1,
            finalStorageLevel="DISK_ONLY",
            intermediateStorageLevel="DISK_ONLY",
            **BLOCKS,
        ).fit(wide)
    found = model.userFactors.selectExpr("count(*)", "count(distinct id)", "min(size(features))").first()
    assert tuple(found) == (users, users, rank)


@pytest.mark.parametrize("setting", ["node", "executable"])
def test_without_node_or_the_package(refused, setting):
    error = refused(**{f"spark__factorflow__{setting}": "/no/such/file"})
    assert "FactorFlow cannot be started" in error
    assert "/no/such/file" in error
    assert "spark.factorflow.executable" in error


def test_with_a_node_that_is_too_old(refused, folder):
    old = program(
        folder / "node",
        "#!/bin/sh\necho 'factorflow needs Node 22.12 or newer, and this is 18.0.0' >&2\nexit 2\n",
    )
    assert "22.12 or newer" in refused(spark__factorflow__node=old, spark__factorflow__executable=MAIN)


def test_with_another_version(refused, folder):
    error = refused(spark__factorflow__executable=program(folder / "other", f"#!{NODE}\n{other_version()}"))
    assert "FactorFlow 0.0.9" in error
    assert "does not fit the plugin" in error


def test_with_too_little_memory(refused):
    assert "spark.factorflow.memory" in refused(spark__factorflow__memory="100m")


def test_memory_overhead_that_holds_no_worker(refused):
    error = refused(spark__executor__memoryOverhead="400m")
    assert "spark.executor.memoryOverhead to 1408m" in error


def test_an_unknown_setting_is_refused(refused):
    assert "is no setting of FactorFlow" in refused(spark__factorflow__devise="cpu")
