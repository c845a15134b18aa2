package io.github.factorflow.spark.run;

import scala.reflect.ClassTag;
import scala.reflect.ClassTag$;

/** Scala's tag of a generic class. */
record ClassTagOf<T>(Class<?> type) {
  @SuppressWarnings("unchecked")
  ClassTag<T> get() {
    return (ClassTag<T>) ClassTag$.MODULE$.apply(type);
  }
}
