package io.github.factorflow.spark.rows;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.List;
import org.junit.jupiter.api.Test;

class BlockPlacesTest {

  @Test
  void aLostExecutorsBlockMovesToANewOneOrToAny() {
    List<String> places = List.of("a", "b", "c");
    assertEquals(places, BlockPlaces.withoutLost(places, List.of("d", "c", "b", "a")));
    assertEquals(List.of("a", "d", "c"), BlockPlaces.withoutLost(places, List.of("a", "c", "d")));
    assertEquals(List.of("a", "", "c"), BlockPlaces.withoutLost(places, List.of("a", "c")));
    assertEquals(List.of("", "", ""), BlockPlaces.withoutLost(places, List.of()));
  }
}
