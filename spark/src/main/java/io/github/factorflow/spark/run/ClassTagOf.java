package io.github.factorflow.spark.run;

import scala.reflect.ClassTag;
import scala.reflect.ClassTag$;

/** Scala's tag of a generic class. */
public record ClassTagOf<T>(Class<?> type) {
  @SuppressWarnings("unchecked")
  public ClassTag<T> get() {
    return (ClassTag<T>) ClassTag$.MODULE$.apply(type);
  }
}
