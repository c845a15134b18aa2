package io.github.factorflow.spark.version;

import java.util.List;
import scala.collection.Iterator;
import scala.collection.Seq;
import scala.jdk.javaapi.CollectionConverters;

/** Collections of Scala 2.13 from and to Java. */
public final class Scala {

  private Scala() {}

  public static <T> List<T> java(Seq<T> seq) {
    return CollectionConverters.asJava(seq);
  }

  public static <T> java.util.Iterator<T> java(Iterator<T> iterator) {
    return CollectionConverters.asJava(iterator);
  }

  public static <T> Iterator<T> scala(java.util.Iterator<T> iterator) {
    return CollectionConverters.asScala(iterator);
  }

  public static <T> scala.collection.immutable.List<T> scala(List<T> list) {
    return CollectionConverters.asScala(list).toList();
  }
}
