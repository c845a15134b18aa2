package io.github.factorflow.spark.recommend;

import io.github.factorflow.spark.version.Scala;
import java.util.List;
import java.util.function.Supplier;
import org.apache.spark.Dependency;
import org.apache.spark.OneToOneDependency;
import org.apache.spark.Partition;
import org.apache.spark.SparkContext;
import org.apache.spark.TaskContext;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.catalyst.InternalRow;
import scala.collection.Iterator;
import scala.reflect.ClassTag;

/** The rows of an RDD that is made when an action first needs it, in the thread of the action. */
final class Deferred extends RDD<InternalRow> {

  private static final long serialVersionUID = 1;
  private static final ClassTag<InternalRow> ROW = Scala.tag(InternalRow.class);
  private final transient Supplier<RDD<InternalRow>> make;
  private transient RDD<InternalRow> made;

  Deferred(SparkContext context, Supplier<RDD<InternalRow>> make) {
    super(context, Scala.scala(List.<Dependency<?>>of()), ROW);
    this.make = make;
  }

  private synchronized RDD<InternalRow> made() {
    if (made == null) made = make.get();
    return made;
  }

  @Override
  public Partition[] getPartitions() {
    return made().partitions();
  }

  @Override
  public scala.collection.immutable.List<Dependency<?>> getDependencies() {
    return Scala.scala(List.<Dependency<?>>of(new OneToOneDependency<>(made())));
  }

  @Override
  public Iterator<InternalRow> compute(Partition split, TaskContext context) {
    return this.<InternalRow>firstParent(ROW).iterator(split, context);
  }
}
