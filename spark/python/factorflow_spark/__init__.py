"""ALS of PySpark, trained by FactorFlow.

    import factorflow_spark
    from pyspark.ml.recommendation import ALS

After that, ``ALS().fit(df)`` of classic PySpark trains with FactorFlow, and sessions that Python starts have the plugin's jar. An application under
spark-submit gets it by ``--jars`` (``factorflow_spark.jar`` is its path). A client of Spark Connect needs nothing: there the server has the plugin.
"""

from pathlib import Path

from pyspark.ml.recommendation import ALS

__all__ = ["jar"]

_jars = sorted(Path(__file__).parent.joinpath("jars").glob("factorflow-spark-*.jar"))

#: Path of the plugin's jar, for ``spark.jars``.
jar = str(_jars[-1]) if _jars else None

_CLASS = "io.github.factorflow.spark.FactorFlowALS"
_spark_fit = ALS._fit_java


def _fit(self, dataset):
    """Fits with FactorFlow's estimator, even if the estimator was created or loaded before the import."""
    if self._java_obj.getClass().getName() != _CLASS:
        self._java_obj = _estimator(self.uid)
    return _spark_fit(self, dataset)


def _estimator(uid):
    from py4j.java_gateway import JavaClass
    from pyspark import SparkContext

    found = SparkContext._active_spark_context._jvm
    for name in _CLASS.split("."):
        found = getattr(found, name)
    if not isinstance(found, JavaClass):
        raise RuntimeError(
            "this Spark application runs without FactorFlow's plugin: it was started before factorflow_spark was imported, or by spark-submit. "
            f"Start it with --jars {jar}"
        )
    return found(uid)


def _bring_jar():
    """Adds the jar to the class path of sessions that this process starts."""
    try:
        from pyspark import SparkConf, SparkContext
    except ImportError:
        return  # A client of Spark Connect alone has no SparkContext.
    start = SparkContext._ensure_initialized.__func__

    @classmethod
    def started(cls, instance=None, gateway=None, conf=None):
        if gateway is None and not SparkContext._gateway and jar is not None:
            conf = conf or SparkConf()
            given = conf.get("spark.jars", "")
            if jar not in given.split(","):
                conf.set("spark.jars", f"{given},{jar}" if given else jar)
        return start(cls, instance, gateway, conf)

    SparkContext._ensure_initialized = started


ALS._fit_java = _fit
_bring_jar()
