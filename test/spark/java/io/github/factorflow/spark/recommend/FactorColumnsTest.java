package io.github.factorflow.spark.recommend;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;

import io.github.factorflow.spark.data.FactorBlock;
import java.util.Comparator;
import java.util.List;
import java.util.Random;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

class FactorColumnsTest {

  private static final int RANK = 5;

  private static FactorBlock block(int... ids) {
    Random random = new Random(ids[0]);
    float[] features = new float[ids.length * RANK];
    for (int at = 0; at < features.length; at++) features[at] = random.nextFloat() - 0.5f;
    return new FactorBlock(RANK, ids, features);
  }

  private static double product(FactorBlock one, int row, FactorBlock other, int column) {
    double sum = 0;
    for (int k = 0; k < RANK; k++) sum +=
      (double) one.features[row * RANK + k] * other.features[column * RANK + k];
    return sum;
  }

  @Test
  void listsAreThoseOfAllProducts() {
    FactorBlock users = block(-5, 1 << 30, 3);
    FactorBlock items = block(IntStream.range(0, 100).map(at -> 7 * (at % 50) - at / 50).toArray());
    Lists found = FactorColumns.of(RANK, List.of(users)).best(
      new int[] { 2, 0 },
      FactorColumns.of(RANK, List.of(items)),
      10
    );
    assertArrayEquals(new int[] { 1 << 30, -5 }, found.ids);
    assertArrayEquals(new int[] { 10, 20 }, found.ends);
    for (int list = 0; list < 2; list++) {
      int user = list == 0 ? 1 : 0;
      List<Integer> best = IntStream.range(0, 100)
        .boxed()
        .sorted(Comparator.comparingDouble(item -> -product(users, user, items, item)))
        .toList();
      for (int at = 0; at < 10; at++) {
        assertEquals(items.ids[best.get(at)], found.items[10 * list + at]);
        assertEquals(product(users, user, items, best.get(at)), found.scores[10 * list + at], 1e-6);
      }
    }
  }

  @Test
  void equalProductsAreInTheOrderOfIdsAndNoNumbersAreLeftOut() {
    float[] equal = { 1, 1, Float.NaN, 2, 1 };
    FactorColumns items = FactorColumns.of(
      1,
      List.of(
        new FactorBlock(1, new int[] { 9, 4 }, new float[] { equal[0], equal[1] }),
        new FactorBlock(1, new int[] { 1, 6, -2 }, new float[] { equal[2], equal[3], equal[4] })
      )
    );
    FactorColumns user = FactorColumns.of(1, List.of(new FactorBlock(1, new int[] { 8 }, new float[] { 1 })));
    Lists three = user.best(new int[] { 0 }, items, 3);
    assertEquals(3, three.ends[0]);
    assertArrayEquals(new int[] { 6, -2, 4 }, three.items);
    Lists all = user.best(new int[] { 0 }, items, 100);
    assertEquals(4, all.ends[0]);
    assertArrayEquals(new int[] { 6, -2, 4, 9 }, java.util.Arrays.copyOf(all.items, 4));
  }

  @Test
  void noCandidatesGiveNoLists() {
    FactorColumns user = FactorColumns.of(1, List.of(new FactorBlock(1, new int[] { 8 }, new float[] { 1 })));
    assertEquals(0, user.best(new int[] { 0 }, FactorColumns.of(1, List.of()), 3).ids.length);
  }

  @Test
  void positionsAreThoseOfKnownIds() {
    FactorColumns rows = FactorColumns.of(RANK, List.of(block(30, -10, 20)));
    assertArrayEquals(new int[] { 0, 2 }, rows.positions(new int[] { -10, 0, 30, 31 }));
    assertArrayEquals(new int[] { 0, 1, 2 }, rows.positions(null));
  }
}
