package io.github.factorflow.spark.version;

import java.util.List;
import scala.collection.Iterator;
import scala.collection.JavaConverters;
import scala.collection.Seq;
import scala.reflect.ClassTag;
import scala.reflect.ClassTag$;

/** Collections of Scala from and to Java, by methods that both Scala 2.12 and 2.13 have. */
@SuppressWarnings("deprecation")
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

  /** The tag of a class, which may be generic. */
  @SuppressWarnings("unchecked")
  public static <T> ClassTag<T> tag(Class<?> type) {
    return (ClassTag<T>) ClassTag$.MODULE$.apply(type);
  }
}
