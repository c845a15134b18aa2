package io.github.factorflow.spark.rows;

import io.github.factorflow.spark.Parameters;
import io.github.factorflow.spark.Settings;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import org.apache.spark.SparkConf;
import org.apache.spark.api.java.JavaRDD;
import org.apache.spark.api.java.JavaSparkContext;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Solves a side, and brings it to all hosts. */
interface Exchange {
  /**
   * {@code fixed} and {@code previous} are null if the task needs none. {@code last}: the blocks are kept
   * for the model.
   */
  SolvedSide solve(RowTask task, int version, SolvedSide fixed, SolvedSide previous, boolean last);

  /** Gives up a side that no later task needs. */
  void drop(SolvedSide side);

  /**
   * Above this number of bytes of a side, a shuffle takes less time, as measured (bench/results,
   * `spark-exchange`).
   */
  long MOST_BROADCAST = 16L << 20;

  /**
   * Chooses by the setting. auto uses broadcasts, with which a lost block is solved again quickly, as long
   * as a side is small: also compared with the driver's memory and the results that it accepts.
   */
  static Exchange of(Settings.Exchange setting, long rows, Parameters parameters, Blocks blocks) {
    SparkConf conf = blocks.context().getConf();
    long bytes = rows * (parameters.rank() + 2L) * 4;
    long results = conf.getSizeAsBytes("spark.driver.maxResultSize", "1g");
    long most = Math.min(MOST_BROADCAST, Math.min(results == 0 ? Long.MAX_VALUE : results / 2, Runtime.getRuntime().maxMemory() / 8));
    boolean broadcast = setting == Settings.Exchange.AUTO ? bytes <= most : setting == Settings.Exchange.BROADCAST;
    LoggerFactory.getLogger(Exchange.class).info("FactorFlow: factors of up to {} MiB a side travel by {}", bytes >> 20, broadcast ? "broadcast" : "shuffle");
    return broadcast ? new ByBroadcast(blocks, parameters) : new ByShuffle(blocks, parameters);
  }

  /**
   * Sends factors through the driver, which keeps the last version of each side. A lost block then needs
   * nothing of earlier iterations.
   */
  record ByBroadcast(Blocks blocks, Parameters parameters) implements Exchange {
    @Override
    public SolvedSide solve(RowTask task, int version, SolvedSide fixed, SolvedSide previous, boolean last) {
      JavaRDD<SolvedBlock> solved = blocks.withCopies(task, fixed == null ? null : fixed.copies(), previous == null ? null : previous.copies());
      if (last && ManyHosts.isKept(parameters.finalLevel())) solved.persist(parameters.finalLevel());
      List<SolvedBlock> all = blocks.collect(solved);
      ManyHosts.checked(all);
      all.sort(Comparator.comparingInt(block -> block.block));
      return new SolvedSide(version, solved, JavaSparkContext.fromSparkContext(blocks.context()).broadcast(all), SolvedSide.gram(all));
    }

    @Override
    public void drop(SolvedSide side) {
      side.copies().destroy();
    }
  }

  /**
   * Sends factors from executor to executor: each block to every host. The driver never has a whole side.
   * The lineage of a block extends over the iterations back to the last checkpoint, if the application has a
   * checkpoint folder.
   */
  record ByShuffle(Blocks blocks, Parameters parameters) implements Exchange {
    private static final Logger log = LoggerFactory.getLogger(ByShuffle.class);

    @Override
    public SolvedSide solve(RowTask task, int version, SolvedSide fixed, SolvedSide previous, boolean last) {
      JavaRDD<byte[]> beside = fixed == null ? blocks.empty() : Copies.everywhere(fixed.blocks(), blocks.hosts());
      JavaRDD<SolvedBlock> solved = blocks.withPartitions(task, beside, previous == null ? blocks.empty() : previous.blocks());
      if (!last) solved.persist(parameters.intermediateLevel());
      else if (ManyHosts.isKept(parameters.finalLevel())) solved.persist(parameters.finalLevel());
      boolean due = parameters.checkpointInterval() > 0 && version % (2 * parameters.checkpointInterval()) == 0 && version > 0;
      if (due && blocks.context().getCheckpointDir().isDefined()) {
        log.info("FactorFlow: version {} is kept as a checkpoint", version);
        solved.checkpoint();
      }
      List<SolvedBlock> summaries = blocks.collect(solved.map(SolvedBlock::summary));
      ManyHosts.checked(summaries);
      summaries.sort(Comparator.comparingInt(block -> block.block));
      return new SolvedSide(version, solved, null, SolvedSide.gram(summaries));
    }

    @Override
    public void drop(SolvedSide side) {
      side.blocks().unpersist(false);
    }
  }
}
