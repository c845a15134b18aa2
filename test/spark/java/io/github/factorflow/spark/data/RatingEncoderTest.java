package io.github.factorflow.spark.data;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.Iterator;
import java.util.List;
import java.util.Set;
import java.util.stream.IntStream;
import org.apache.arrow.memory.RootAllocator;
import org.apache.arrow.vector.Float4Vector;
import org.apache.arrow.vector.IntVector;
import org.apache.arrow.vector.ipc.ArrowStreamReader;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.junit.jupiter.api.Test;
import scala.Tuple2;

class RatingEncoderTest {

  private record Rating(int block, int user, int item, float rating) {}

  private static Iterator<InternalRow> rows(int count) {
    return IntStream.range(0, count)
      .mapToObj(row -> (InternalRow) new GenericInternalRow(new Object[] { row * 7 - 3, -row, row / 2f }))
      .iterator();
  }

  private static List<Rating> read(Iterator<Tuple2<Integer, RatingBatch>> batches) throws IOException {
    List<Rating> read = new ArrayList<>();
    while (batches.hasNext()) {
      Tuple2<Integer, RatingBatch> batch = batches.next();
      try (
        RootAllocator allocator = new RootAllocator();
        ArrowStreamReader reader = new ArrowStreamReader(
          new ByteArrayInputStream(batch._2().stream()),
          allocator
        )
      ) {
        assertTrue(reader.loadNextBatch());
        var root = reader.getVectorSchemaRoot();
        assertEquals(batch._2().rows, root.getRowCount());
        for (int row = 0; row < root.getRowCount(); row++) {
          read.add(
            new Rating(
              batch._1(),
              ((IntVector) root.getVector("user")).get(row),
              ((IntVector) root.getVector("item")).get(row),
              ((Float4Vector) root.getVector("rating")).get(row)
            )
          );
        }
        assertFalse(reader.loadNextBatch());
      }
    }
    return read;
  }

  @Test
  void encodesEveryRowInOrder() throws IOException {
    for (int count : new int[] {
      1,
      RatingEncoder.ROWS - 1,
      RatingEncoder.ROWS,
      RatingEncoder.ROWS + 1,
      2 * RatingEncoder.ROWS + 5
    }) {
      List<Rating> read = read(new RatingEncoder(1).call(rows(count)));
      assertEquals(
        IntStream.range(0, count)
          .mapToObj(row -> new Rating(0, row * 7 - 3, -row, row / 2f))
          .toList(),
        read
      );
    }
  }

  @Test
  void givesNothingForAnEmptyPartition() {
    assertFalse(new RatingEncoder(1).call(rows(0)).hasNext());
    assertFalse(new RatingEncoder(3).call(rows(0)).hasNext());
  }

  @Test
  void givesEachRatingToItsUsersBlockAndToItsItemsBlock() throws IOException {
    int hosts = 3;
    List<Rating> read = read(new RatingEncoder(hosts).call(rows(1000)));
    Set<Rating> expected = new HashSet<>();
    for (int row = 0; row < 1000; row++) {
      int user = row * 7 - 3;
      int item = -row;
      expected.add(new Rating(RatingEncoder.blockOf(user, hosts), user, item, row / 2f));
      expected.add(new Rating(hosts + RatingEncoder.blockOf(item, hosts), user, item, row / 2f));
    }
    assertEquals(2000, read.size());
    assertEquals(expected, new HashSet<>(read));
    for (int block = 0; block < 2 * hosts; block++) {
      int wanted = block;
      assertTrue(
        read
          .stream()
          .filter(rating -> rating.block() == wanted)
          .count() > 200,
        "block " + block + " has its share"
      );
    }
  }

  /**
   * Workers find the block of an id by the same function: test/worker/row-requests.test.ts has the same numbers.
   */
  @Test
  void findsTheBlocksThatWorkersFind() {
    int[] ids = { 0, 1, 2, 3, 100, -1, -7, 1_000_000, Integer.MAX_VALUE, Integer.MIN_VALUE };
    assertArrayEquals(
      new int[] { 0, 2, 2, 2, 0, 0, 0, 2, 2, 2 },
      IntStream.of(ids)
        .map(id -> RatingEncoder.blockOf(id, 3))
        .toArray()
    );
    assertArrayEquals(
      new int[] { 0, 223, 191, 95, 115, 222, 222, 122, 222, 0 },
      IntStream.of(ids)
        .map(id -> RatingEncoder.blockOf(id, 256))
        .toArray()
    );
  }
}
