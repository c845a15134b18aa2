"""The jars in this package, one for each series of Spark."""

from pathlib import Path

_JARS = Path(__file__).parent / "jars"
# The name of the jar for Spark 3.5 has its versions of Spark and Scala.
_MARK = "3.5_2.12"


def jar_for(version, folder=_JARS):
    """Path of the jar for a version of PySpark, or None."""
    is_old = version.startswith("3.5.")
    if not is_old and not version.startswith("4."):
        return None
    found = [
        str(one) for one in sorted(folder.glob("factorflow-spark-*.jar")) if (_MARK in one.name) == is_old
    ]
    return found[-1] if found else None
