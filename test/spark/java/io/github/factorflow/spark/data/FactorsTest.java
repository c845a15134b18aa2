package io.github.factorflow.spark.data;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import io.github.factorflow.spark.worker.FactorFlowException;
import java.util.ArrayDeque;
import java.util.HashMap;
import java.util.Map;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import scala.Tuple2;

class FactorsTest {

  private static FactorBlock block(int rows, int rank) {
    float[] features = new float[rows * rank];
    for (int at = 0; at < features.length; at++) features[at] = at / 8f;
    return new FactorBlock(
      rank,
      IntStream.range(0, rows)
        .map(row -> 3 * row - 50)
        .toArray(),
      features
    );
  }

  @Test
  void comeBackFromAnArrowStreamAsTheyWere() {
    for (int rows : new int[] { 0, 1, 7, 1000 }) {
      FactorBlock block = block(rows, 5);
      FactorBlock read = FactorBlock.decode(block.encode(), 5).get(0);
      assertArrayEquals(block.ids, read.ids);
      assertArrayEquals(block.features, read.features);
    }
  }

  @Test
  void ofAnotherRankAreRefused() {
    byte[] stream = block(10, 5).encode();
    String message = assertThrows(FactorFlowException.class, () -> FactorBlock.decode(stream, 4)).getMessage();
    assertEquals(
      "FactorFlow's worker gave factors that cannot be read: factors have no lists of 4 features",
      message
    );
  }

  @Test
  void goToThePartitionsOfTheirIds() {
    int rank = 512;
    FactorBlock block = block(5000, rank);
    ArrayDeque<Tuple2<Integer, FactorBlock>> out = new ArrayDeque<>();
    FactorScatter scatter = new FactorScatter(rank, 10, 4, out);
    scatter.add(block);
    scatter.add(new FactorBlock(rank, new int[] { 1_000_000 }, new float[rank]));
    scatter.end();
    Map<Integer, Float> firsts = new HashMap<>();
    for (Tuple2<Integer, FactorBlock> part : out) {
      part
        ._2()
        .tuples()
        .forEachRemaining(row -> {
          assertEquals(10 + Math.floorMod((Integer) row._1(), 4), part._1());
          assertEquals(rank, row._2().length);
          firsts.put((Integer) row._1(), row._2()[0]);
        });
    }
    assertEquals(5001, firsts.size());
    for (int row = 0; row < 5000; row++) assertEquals((row * rank) / 8f, firsts.get(3 * row - 50));
  }
}
