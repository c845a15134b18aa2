package io.github.factorflow.spark.recommend;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.channels.Channels;
import java.util.ArrayList;
import java.util.List;
import org.apache.arrow.memory.RootAllocator;
import org.apache.arrow.vector.Float4Vector;
import org.apache.arrow.vector.IntVector;
import org.apache.arrow.vector.VectorSchemaRoot;
import org.apache.arrow.vector.ipc.ArrowStreamWriter;
import org.junit.jupiter.api.Test;

class ListsTest {

  /** Rows (user, rank, item); the prediction is the item / 2. */
  private static byte[] stream(int[][] rows) throws IOException {
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    try (
      RootAllocator allocator = new RootAllocator();
      IntVector users = new IntVector("user", allocator);
      IntVector ranks = new IntVector("rank", allocator);
      IntVector items = new IntVector("item", allocator);
      Float4Vector scores = new Float4Vector("prediction", allocator)
    ) {
      for (int row = 0; row < rows.length; row++) {
        users.setSafe(row, rows[row][0]);
        ranks.setSafe(row, rows[row][1]);
        items.setSafe(row, rows[row][2]);
        scores.setSafe(row, rows[row][2] / 2f);
      }
      for (var column : List.of(users, ranks, items, scores)) column.setValueCount(rows.length);
      try (
        VectorSchemaRoot root = VectorSchemaRoot.of(users, ranks, items, scores);
        ArrowStreamWriter writer = new ArrowStreamWriter(root, null, Channels.newChannel(bytes))
      ) {
        writer.writeBatch();
        writer.end();
      }
    }
    return bytes.toByteArray();
  }

  @Test
  void areRowsOfSparksSchema() throws IOException {
    List<Lists> batches = Lists.decode(
      stream(new int[][] { { -7, 1, 3 }, { -7, 2, 1 }, { 2, 1, 5 }, { 9, 1, 1 }, { 9, 2, 3 }, { 9, 3, 4 } })
    );
    assertEquals(1, batches.size());
    List<String> found = new ArrayList<>();
    batches
      .get(0)
      .rows()
      .forEachRemaining(row -> {
        StringBuilder text = new StringBuilder(row.getInt(0) + ":");
        var entries = row.getArray(1);
        for (int at = 0; at < entries.numElements(); at++) {
          var entry = entries.getStruct(at, 2);
          text.append(" ").append(entry.getInt(0)).append("=").append(entry.getFloat(1));
        }
        found.add(text.toString());
      });
    assertEquals(List.of("-7: 3=1.5 1=0.5", "2: 5=2.5", "9: 1=0.5 3=1.5 4=2.0"), found);
  }

  @Test
  void mayBeNone() throws IOException {
    assertTrue(
      Lists.decode(stream(new int[0][]))
        .stream()
        .noneMatch(lists -> lists.rows().hasNext())
    );
  }
}
