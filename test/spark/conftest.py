"""Sessions of Spark for the tests. The runner (scripts/test-spark.ts) selects them by environment variables:

FACTORFLOW_MODE     classic, or connect: a server inside this process's JVM and a client of it
FACTORFLOW_MASTER   local[2], local-cluster[2,1,1024], ...
FACTORFLOW_NODE, FACTORFLOW_MAIN   the worker's executable
FACTORFLOW_JAR      the plugin, which the wheel adds to classic sessions
"""

import os
from pathlib import Path

import pytest
from pyspark.ml.recommendation import ALS

from support import HOST_PARAMS, base_conf, factors, on_hosts, planted, start_session


@pytest.fixture(scope="session")
def mode():
    return os.environ.get("FACTORFLOW_MODE", "classic")


@pytest.fixture(scope="session")
def home(tmp_path_factory):
    return tmp_path_factory.mktemp("spark")


@pytest.fixture
def started(home):
    """A function that returns the number of workers that have been started."""
    return lambda: len((home / "started").read_text().splitlines()) if (home / "started").exists() else 0


@pytest.fixture(scope="session")
def spark(mode, home):
    session = start_session(mode, os.environ.get("FACTORFLOW_MASTER", "local[2]"), base_conf(home))
    yield session
    session.stop()


@pytest.fixture(scope="session")
def ratings(spark):
    return spark.createDataFrame(planted(), "user int, item int, rating float").repartition(2).cache()


@pytest.fixture(scope="session")
def one_host(spark, ratings):
    """The factors of one host, by the worker itself."""
    return factors(on_hosts(spark, 1, lambda: ALS(**HOST_PARAMS).fit(ratings)))


@pytest.fixture(scope="session")
def implicit_host(spark, ratings):
    """The factors of implicit data on one host."""
    return factors(on_hosts(spark, 1, lambda: ALS(implicitPrefs=True, alpha=2.0, **HOST_PARAMS).fit(ratings)))


@pytest.fixture
def folder(tmp_path) -> Path:
    return tmp_path
