package io.github.factorflow.spark.rows;

import java.util.Iterator;
import java.util.stream.IntStream;
import org.apache.spark.HashPartitioner;
import org.apache.spark.api.java.JavaRDD;
import scala.Tuple2;

/** Copies the factors of all blocks to each of {@code hosts} partitions, by a shuffle. */
final class Copies {
  private Copies() {}

  static JavaRDD<byte[]> everywhere(JavaRDD<SolvedBlock> blocks, int hosts) {
    return blocks.flatMapToPair(block -> copies(block, hosts)).partitionBy(new HashPartitioner(hosts)).values();
  }

  private static Iterator<Tuple2<Integer, byte[]>> copies(SolvedBlock block, int hosts) {
    return block.factors.stream().flatMap(stream -> IntStream.range(0, hosts).mapToObj(host -> new Tuple2<>(host, stream))).iterator();
  }
}
