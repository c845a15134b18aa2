package io.github.factorflow.spark.recommend;

import io.github.factorflow.spark.version.Spark;
import java.util.Arrays;
import java.util.HashSet;
import java.util.Iterator;
import java.util.List;
import java.util.Set;
import org.apache.spark.api.java.function.FlatMapFunction;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;

/**
 * The different ids of a partition's rows, without nulls and ids beyond int, of which no model has one. Ends
 * after {@code most} + 1 of them.
 */
record ChosenIds(DataType type, long most) implements FlatMapFunction<Iterator<InternalRow>, int[]> {
  private static final Set<DataType> INTEGERS = Set.of(
    DataTypes.ByteType,
    DataTypes.ShortType,
    DataTypes.IntegerType,
    DataTypes.LongType
  );

  /** True if the first column has whole numbers. */
  static boolean has(Dataset<Row> frame) {
    return INTEGERS.contains(frame.schema().apply(0).dataType());
  }

  /** The different ids in a frame's first column, ascending; null if they are more than {@code most}. */
  static int[] of(Dataset<Row> frame, long most) {
    DataType type = frame.schema().apply(0).dataType();
    List<int[]> parts = Spark.rows(frame).toJavaRDD().mapPartitions(new ChosenIds(type, most)).collect();
    int[] ids = parts.stream().flatMapToInt(Arrays::stream).distinct().sorted().toArray();
    return ids.length > most ? null : ids;
  }

  @Override
  public Iterator<int[]> call(Iterator<InternalRow> rows) {
    Set<Integer> ids = new HashSet<>();
    while (ids.size() <= most && rows.hasNext()) {
      InternalRow row = rows.next();
      if (row.isNullAt(0)) continue;
      long id = ((Number) row.get(0, type)).longValue();
      if (id == (int) id) ids.add((int) id);
    }
    return List.of(ids.stream().mapToInt(Integer::intValue).toArray()).iterator();
  }
}
