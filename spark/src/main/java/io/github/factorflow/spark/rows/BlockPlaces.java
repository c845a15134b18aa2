package io.github.factorflow.spark.rows;

import io.github.factorflow.spark.run.Executors;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.SparkContext;

/**
 * The executor that each block's stages prefer, for both sides the same, so that one worker holds both blocks
 * of a number, and takes the rows of one for the other from its memory. Spark by itself would place a stage near its shuffle's data, where
 * other blocks are.
 */
final class BlockPlaces {

  private final SparkContext context;
  private final int blocks;
  /** Spark's names of the executors' locations, by block; empty if there are fewer executors than blocks. */
  private List<String> places;

  BlockPlaces(SparkContext context, int blocks) {
    this.context = context;
    this.blocks = blocks;
  }

  /** The executors that run now. A lost one's blocks move; all others stay. */
  Executors now() {
    List<String> running = Executors.running(context);
    if (places == null) places = running.size() < blocks ? List.of() : List.copyOf(running.subList(0, blocks));
    else if (!places.isEmpty()) places = withoutLost(places, running);
    return new Executors(places);
  }

  /**
   * The same places, except lost ones: an executor without a block takes their place. Until one runs, their
   * blocks have the place "", that is, any.
   */
  static List<String> withoutLost(List<String> places, List<String> running) {
    List<String> kept = new ArrayList<>(places);
    List<String> free = new ArrayList<>(running);
    free.removeAll(places);
    for (int block = 0; block < kept.size(); block++) {
      if (running.contains(kept.get(block))) continue;
      kept.set(block, free.isEmpty() ? "" : free.remove(0));
    }
    return kept;
  }
}
