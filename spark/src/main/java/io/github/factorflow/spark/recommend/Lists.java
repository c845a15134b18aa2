package io.github.factorflow.spark.recommend;

import io.github.factorflow.spark.data.Arrow;
import java.io.Serializable;
import java.util.Arrays;
import java.util.Iterator;
import java.util.List;
import java.util.stream.IntStream;
import org.apache.arrow.vector.Float4Vector;
import org.apache.arrow.vector.IntVector;
import org.apache.arrow.vector.VectorSchemaRoot;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.util.GenericArrayData;

/**
 * Lists of recommendations: the list of ids[i] has the entries from ends[i - 1] (of the first list 0) to
 * ends[i] of items and scores, best first.
 *
 * <p>A class, since Kryo as in Spark 3.5 cannot copy records.
 */
final class Lists implements Serializable {

  private static final long serialVersionUID = 1;
  final int[] ids;
  final int[] ends;
  final int[] items;
  final float[] scores;

  Lists(int[] ids, int[] ends, int[] items, float[] scores) {
    this.ids = ids;
    this.ends = ends;
    this.items = items;
    this.scores = scores;
  }

  /**
   * The lists of a worker's frame: rows (user, rank, item, prediction), a user's rows one after the other.
   */
  static List<Lists> decode(byte[] stream) {
    return Arrow.read(stream, "lists", Lists::of);
  }

  private static Lists of(VectorSchemaRoot root) {
    int rows = root.getRowCount();
    IntVector users = (IntVector) root.getVector("user");
    IntVector ranks = (IntVector) root.getVector("rank");
    IntVector items = (IntVector) root.getVector("item");
    Float4Vector scores = (Float4Vector) root.getVector("prediction");
    int[] ids = new int[rows];
    int[] ends = new int[rows];
    int[] item = new int[rows];
    float[] score = new float[rows];
    int lists = 0;
    for (int row = 0; row < rows; row++) {
      if (ranks.get(row) == 1) ids[lists++] = users.get(row);
      ends[lists - 1] = row + 1;
      item[row] = items.get(row);
      score[row] = scores.get(row);
    }
    return new Lists(Arrays.copyOf(ids, lists), Arrays.copyOf(ends, lists), item, score);
  }

  /** Rows of Spark's schema: id, and an array of (item, rating). */
  Iterator<InternalRow> rows() {
    return IntStream.range(0, ids.length)
      .mapToObj(list -> {
        int from = list == 0 ? 0 : ends[list - 1];
        Object[] entries = new Object[ends[list] - from];
        for (int at = 0; at < entries.length; at++) {
          entries[at] = new GenericInternalRow(new Object[] { items[from + at], scores[from + at] });
        }
        return (InternalRow) new GenericInternalRow(new Object[] {
          ids[list],
          new GenericArrayData(entries),
        });
      })
      .iterator();
  }
}
