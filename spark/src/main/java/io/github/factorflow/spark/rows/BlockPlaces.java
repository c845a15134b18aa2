package io.github.factorflow.spark.rows;

import io.github.factorflow.spark.run.Executors;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import org.apache.spark.SparkContext;

/**
 * The executor that each block's stages prefer, for both sides the same, so that one worker holds both blocks
 * of a number, and takes the rows of one for the other from its memory. With more blocks than executors each
 * one has several. Spark by itself would place a stage near its shuffle's data, where other blocks are.
 */
final class BlockPlaces {

  private final SparkContext context;
  private final int blocks;
  /** Spark's names of the executors' locations, by block; empty before the first stage. */
  private List<String> places = List.of();
  /** The most executors that have run at the same time. */
  private int executors = 0;

  BlockPlaces(SparkContext context, int blocks) {
    this.context = context;
    this.blocks = blocks;
  }

  /** The executors that run now. A lost one's blocks move; all others stay. */
  Executors now() {
    List<String> running = Executors.places(context, Set.of());
    executors = Math.max(executors, running.size());
    if (executors == 0) return Executors.ALL;
    int most = (blocks + executors - 1) / executors;
    places = of(blocks, places, running, most);
    return new Executors(places);
  }

  /**
   * The same places, except of blocks whose executor is lost or has more than {@code most} blocks: an
   * executor with fewer blocks takes them. Until one runs they have the place "", that is, any.
   */
  static List<String> of(int blocks, List<String> places, List<String> running, int most) {
    Map<String, Integer> held = new HashMap<>();
    List<String> found = new ArrayList<>(Collections.nCopies(blocks, ""));
    for (int block = 0; block < places.size(); block++) {
      String place = places.get(block);
      if (running.contains(place) && held.merge(place, 1, Integer::sum) <= most) found.set(block, place);
    }
    for (int block = 0; block < blocks; block++) {
      if (!found.get(block).isEmpty()) continue;
      Optional<String> free = running
        .stream()
        .filter(place -> held.getOrDefault(place, 0) < most)
        .findFirst();
      if (free.isEmpty()) continue;
      found.set(block, free.get());
      held.merge(free.get(), 1, Integer::sum);
    }
    return found;
  }
}
