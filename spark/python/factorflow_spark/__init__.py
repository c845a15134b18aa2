"""ALS of PySpark, trained by FactorFlow.

    import factorflow_spark
    from pyspark.ml.recommendation import ALS, ALSModel

After that, ``ALS().fit(df)`` of classic PySpark trains with FactorFlow, and sessions that Python starts have
the plugin's jar, in addition to their own. Recommendations of models are FactorFlow's too. An application
under spark-submit gets it by ``--jars`` (``factorflow_spark.jar`` is its path). In an application without the
jar Spark's own ALS trains, with a warning. A client of Spark Connect needs nothing: there the server has the
plugin.
"""

import functools
import json
import warnings

import pyspark
from pyspark.ml.recommendation import ALS, ALSModel

from ._jars import jar_for
from ._submit import merged_jars

__all__ = ["jar", "options", "summary"]

#: Path of the plugin's jar for this version of PySpark, for ``spark.jars``; None if there is none for it.
jar = jar_for(pyspark.__version__)

_CLASS = "io.github.factorflow.spark.FactorFlowALS"
_SPARK_MODEL = "org.apache.spark.ml.recommendation.ALSModel"
_spark_fit = ALS._fit_java
_warned = False


def options(als, **values):
    """
    Sets FactorFlow's own parameters of an ALS, such as ``biases=True``, by the names of FactorFlow's options;
    returns the ALS.

    They replace those that an earlier call set, and ``spark.factorflow.param.*`` of the application. Copies
    of the estimator keep them; a saved one does not. Raises IllegalArgumentException for an unknown name or a
    value out of range.
    """
    if not hasattr(als, "_java_obj"):
        raise TypeError(
            "options are for ALS of classic PySpark. On a server of Spark Connect, "
            "spark.factorflow.param.* sets them for all"
        )
    create = _estimator_class()
    if create is None:
        raise RuntimeError(f"FactorFlow's parameters need its plugin: {_reason()}")
    create(als.uid).setFactorFlowParams(values)
    als._factorflow_options = values
    return als


def summary():
    """
    The outcome of this application's last fit, and its cost: a dict with iterations (seconds, loss,
    trainRmse), devices, kernels and bytes.

    None before the first fit, after one that failed, and after one by Spark's own ALS.
    """
    create = _estimator_class()
    found = create.lastSummary() if create is not None else None
    return json.loads(found.get().toJson()) if found is not None and found.isPresent() else None


def _fit(self, dataset):
    """Fits with FactorFlow's estimator, even if the estimator was created or loaded before the import."""
    create = _estimator_class()
    given = getattr(self, "_factorflow_options", {})
    if create is None:
        _warn_once()
    else:
        if self._java_obj.getClass().getName() != _CLASS:
            self._java_obj = create(self.uid)
        self._java_obj.setFactorFlowParams(given)
    return _spark_fit(self, dataset)


def _recommend_by_workers(name):
    """
    Replaces a method of ALSModel by one that gives the JVM's model FactorFlow's methods first: models that
    were loaded do not have them.
    """
    own = getattr(ALSModel, name)

    @functools.wraps(own)
    def recommend(self, *args, **named):
        model = getattr(self, "_java_obj", None)
        # A client of Spark Connect has a name of the server's model.
        if hasattr(model, "_target_id") and model.getClass().getName() == _SPARK_MODEL:
            create = _jvm_class(_CLASS + "Model")
            if create is not None:
                self._java_obj = create.of(model)
        return own(self, *args, **named)

    setattr(ALSModel, name, recommend)


def _estimator_class():
    """FactorFlow's estimator in the application's JVM; None if the JVM runs without the plugin's jar."""
    return _jvm_class(_CLASS)


def _jvm_class(path):
    from py4j.java_gateway import JavaClass
    from pyspark import SparkContext

    found = SparkContext._active_spark_context._jvm
    for name in path.split("."):
        found = getattr(found, name)
    return found if isinstance(found, JavaClass) else None


def _warn_once():
    global _warned
    if _warned:
        return
    _warned = True
    warnings.warn(f"Spark's own ALS trains: {_reason()}", RuntimeWarning, stacklevel=2)


def _reason():
    if jar is None:
        return f"FactorFlow's plugin is for Spark 3.5 and 4, and this is PySpark {pyspark.__version__}"
    return (
        "this application has no FactorFlow plugin. Import factorflow_spark before the first session of the "
        f"process, or, with spark-submit, PYSPARK_SUBMIT_ARGS or a notebook's own session, add --jars {jar}"
    )


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
            jars = merged_jars(conf, jar)
            if jars is not None:
                conf.set("spark.jars", jars)
        return start(cls, instance, gateway, conf)

    SparkContext._ensure_initialized = started


ALS._fit_java = _fit
for _name in (
    "recommendForAllUsers",
    "recommendForAllItems",
    "recommendForUserSubset",
    "recommendForItemSubset",
):
    _recommend_by_workers(_name)
_bring_jar()
