"""
The import of factorflow_spark in applications of other people: their jars stay, and without the plugin's jar
Spark's own ALS trains.
"""

import json
import os
import subprocess
import sys

import pytest

from support import BLOCKS, OURS, base_conf

APPLICATION = """
import json, sys, warnings
warnings.simplefilter("always")
if {first}:
    import factorflow_spark
from pyspark.sql import SparkSession
builder = SparkSession.builder.master("local[1]")
for name, value in json.loads({conf!r}).items():
    builder = builder.config(name, value)
spark = builder.getOrCreate()
import factorflow_spark
from pyspark.ml.recommendation import ALS
from support import planted
ratings = spark.createDataFrame(planted(), "user int, item int, rating float")
with warnings.catch_warnings(record=True) as seen:
    als = ALS(rank=2, maxIter=1, **{blocks})
    models = [als.fit(ratings) for _ in range({fits})]
found = {{
    "jars": spark.sparkContext.getConf().get("spark.jars", ""),
    "class": als._java_obj.getClass().getName(),
    "users": [model.userFactors.count() for model in models],
    "warnings": [str(one.message) for one in seen if "FactorFlow" in str(one.message)],
    "jar": factorflow_spark.jar,
}}
print("FOUND" + json.dumps(found))
"""


def application(home, *, first, fits=1, **environment):
    script = APPLICATION.format(first=first, fits=fits, conf=json.dumps(base_conf(home)), blocks=BLOCKS)
    ended = subprocess.run(
        [sys.executable, "-c", script],
        cwd=os.path.dirname(__file__),
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=400,
    )
    found = [line for line in ended.stdout.splitlines() if line.startswith("FOUND")]
    assert found, ended.stdout + ended.stderr
    return json.loads(found[0].removeprefix("FOUND"))


@pytest.fixture
def jar(folder):
    import zipfile

    with zipfile.ZipFile(folder / "other.jar", "w") as file:
        file.writestr("META-INF/MANIFEST.MF", "Manifest-Version: 1.0\n")
    return str(folder / "other.jar")


def test_jars_of_spark_defaults_stay(home, folder, jar):
    (folder / "spark-defaults.conf").write_text(f"# of the cluster\nspark.jars  {jar}\n")
    found = application(home, first=True, SPARK_CONF_DIR=str(folder))
    assert found["jars"].split(",") == [jar, found["jar"]]
    assert (found["class"], found["warnings"]) == (OURS, [])


def test_a_session_without_the_jar_trains_by_spark_and_warns_once(home, jar):
    found = application(home, first=False, fits=2)
    assert found["class"] == "org.apache.spark.ml.recommendation.ALS"
    assert found["users"] == [60, 60]
    (warning,) = found["warnings"]
    assert "before the first session" in warning
    assert f"--jars {found['jar']}" in warning


@pytest.fixture
def merged(monkeypatch, folder):
    from factorflow_spark._submit import merged_jars

    def join(conf=None, defaults="", arguments=""):
        (folder / "spark-defaults.conf").write_text(defaults)
        monkeypatch.setenv("SPARK_CONF_DIR", str(folder))
        monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", arguments)
        return merged_jars({"spark.jars": conf} if conf else {}, "ours.jar")

    return join


def test_jars_of_every_source_stay(merged, folder):
    assert merged() == "ours.jar"
    assert merged(conf="a.jar", defaults="spark.jars d.jar") == "a.jar,ours.jar"
    assert merged(conf="a.jar,ours.jar") is None
    for line in (
        "spark.jars d.jar",
        "spark.jars=d.jar",
        "spark.jars: d.jar",
        "spark.jars  d.ja\\\n  r",
        "#spark.jars c.jar\nspark.jars\td.jar ",
    ):
        assert merged(defaults=line) == "d.jar,ours.jar", line
    (folder / "other.conf").write_text("spark.jars o.jar")
    assert (
        merged(defaults="spark.jars d.jar", arguments=f"--properties-file {folder}/other.conf pyspark-shell")
        == "o.jar,ours.jar"
    )
    (folder / "other.conf").write_text("spark.app.name x")
    assert (
        merged(
            defaults="spark.jars d.jar",
            arguments=f"--load-spark-defaults --properties-file={folder}/other.conf pyspark-shell",
        )
        == "d.jar,ours.jar"
    )


@pytest.mark.parametrize(
    "arguments",
    [
        "--jars a.jar",
        "--jars=a.jar",
        "--conf spark.jars=a.jar",
        "-c spark.jars=a.jar",
        "--conf=spark.jars=a.jar",
    ],
)
def test_submit_args_keep_their_jars(merged, arguments):
    assert (
        merged(defaults="spark.jars d.jar", arguments=f"--master local[2] {arguments} pyspark-shell") is None
    )


def test_each_series_of_spark_has_its_jar(folder):
    from factorflow_spark._jars import jar_for

    names = {"3.5": "factorflow-spark-3.5_2.12-0.1.0.jar", "4": "factorflow-spark-0.1.0.jar"}
    for name in names.values():
        (folder / name).touch()
    for version, series in {
        "3.5.0": "3.5",
        "3.5.9": "3.5",
        "4.0.1": "4",
        "4.3.0": "4",
        "4.4.0.dev1": "4",
    }.items():
        assert jar_for(version, folder) == str(folder / names[series])
    for version in ("3.4.4", "5.0.0", "2.4.8"):
        assert jar_for(version, folder) is None


def test_other_versions_of_spark_train_by_spark_and_warn(monkeypatch):
    import factorflow_spark

    monkeypatch.setattr(factorflow_spark, "jar", None)
    monkeypatch.setattr(factorflow_spark, "_warned", False)
    with pytest.warns(RuntimeWarning, match="for Spark 3.5 and 4, and this is PySpark"):
        factorflow_spark._warn_once()
