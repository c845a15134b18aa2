package io.github.factorflow.spark.rows;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.List;
import org.junit.jupiter.api.Test;

class BlockPlacesTest {

  @Test
  void aLostExecutorsBlockMovesToANewOneOrToAny() {
    List<String> places = List.of("a", "b", "c");
    assertEquals(places, BlockPlaces.of(3, places, List.of("d", "c", "b", "a"), 1));
    assertEquals(List.of("a", "d", "c"), BlockPlaces.of(3, places, List.of("a", "c", "d"), 1));
    assertEquals(List.of("a", "", "c"), BlockPlaces.of(3, places, List.of("a", "c"), 1));
    assertEquals(List.of("", "", ""), BlockPlaces.of(3, places, List.of(), 1));
  }

  @Test
  void fewerExecutorsThanBlocksHaveSeveralEach() {
    List<String> places = BlockPlaces.of(6, List.of(), List.of("a", "b"), 3);
    assertEquals(List.of("a", "a", "a", "b", "b", "b"), places);
    assertEquals(
      List.of("c", "c", "c", "b", "b", "b"),
      BlockPlaces.of(6, places, List.of("b", "c"), 3)
    );
    assertEquals(List.of("", "", "", "b", "b", "b"), BlockPlaces.of(6, places, List.of("b"), 3));
    // An executor that comes later takes the blocks that others have too many of.
    assertEquals(
      List.of("a", "a", "c", "b", "b", "c"),
      BlockPlaces.of(6, places, List.of("a", "b", "c"), 2)
    );
  }
}
