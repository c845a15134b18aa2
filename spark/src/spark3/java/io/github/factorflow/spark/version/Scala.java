package io.github.factorflow.spark.version;

import java.util.List;
import scala.collection.Iterator;
import scala.collection.JavaConverters;
import scala.collection.Seq;

/** Collections of Scala 2.12 from and to Java. */
public final class Scala {

  private Scala() {}

  public static <T> List<T> java(Seq<T> seq) {
    return JavaConverters.seqAsJavaList(seq);
  }

  public static <T> java.util.Iterator<T> java(Iterator<T> iterator) {
    return JavaConverters.asJavaIterator(iterator);
  }

  public static <T> Iterator<T> scala(java.util.Iterator<T> iterator) {
    return JavaConverters.asScalaIterator(iterator);
  }

  public static <T> scala.collection.immutable.List<T> scala(List<T> list) {
    return JavaConverters.asScalaBuffer(list).toList();
  }
}
