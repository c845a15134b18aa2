package io.github.factorflow.spark.rows;

import io.github.factorflow.spark.Parameters;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Set;
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

  static Exchange of(ExchangeChoice choice, Parameters parameters, Blocks blocks) {
    LoggerFactory.getLogger(Exchange.class).info("FactorFlow: {}. {}", choice.plan().text(), choice.text());
    return choice.broadcast()
      ? new ByBroadcast(blocks, parameters)
      : new ByShuffle(blocks, parameters, choice.plan().formed());
  }

  /**
   * Bytes of a side that the driver can hold for a broadcast: an eighth of its memory, and half of the
   * results that it accepts.
   */
  static long mostOfSide(SparkConf conf) {
    long results = conf.getSizeAsBytes("spark.driver.maxResultSize", "1g");
    return Math.min(results == 0 ? Long.MAX_VALUE : results / 2, Runtime.getRuntime().maxMemory() / 8);
  }

  /**
   * Sends factors through the driver, which keeps the last version of each side. A lost block then needs
   * nothing of earlier iterations.
   */
  record ByBroadcast(Blocks blocks, Parameters parameters) implements Exchange {
    @Override
    public SolvedSide solve(RowTask task, int version, SolvedSide fixed, SolvedSide previous, boolean last) {
      JavaRDD<SolvedBlock> solved = blocks.withCopies(
        task,
        fixed == null ? null : fixed.copies(),
        previous == null ? null : previous.copies()
      );
      if (last && ManyHosts.isKept(parameters.finalLevel())) solved.persist(parameters.finalLevel());
      List<SolvedBlock> all = blocks.collect(solved);
      ManyHosts.checked(all);
      all.sort(Comparator.comparingInt(block -> block.block));
      return new SolvedSide(
        version,
        solved,
        JavaSparkContext.fromSparkContext(blocks.context()).broadcast(all),
        SolvedSide.gram(all),
        SolvedSide.loss(all)
      );
    }

    @Override
    public void drop(SolvedSide side) {
      side.copies().destroy();
    }
  }

  /**
   * Sends factors from executor to executor: to each host the rows that its ratings name, or shares of its
   * rows' equations from the sides {@code formed}. No host and not the driver has a whole side. The lineage
   * of a block extends over the iterations back to the last checkpoint, if the application has a checkpoint
   * folder.
   */
  record ByShuffle(Blocks blocks, Parameters parameters, Set<Side> formed) implements Exchange {
    private static final Logger log = LoggerFactory.getLogger(ByShuffle.class);

    @Override
    public SolvedSide solve(RowTask given, int version, SolvedSide fixed, SolvedSide previous, boolean last) {
      RowTask task = fixed != null && formed.contains(given.side().other()) ? given.fromEquations() : given;
      JavaRDD<byte[]> sent =
        fixed == null ? blocks.empty() : blocks.outgoing(task.sendFixed(), fixed.blocks());
      JavaRDD<SolvedBlock> solved = blocks.withPartitions(
        task,
        sent,
        fixed == null ? blocks.empty() : fixed.blocks(),
        previous == null ? blocks.empty() : previous.blocks()
      );
      if (!last) solved.persist(parameters.intermediateLevel());
      else if (ManyHosts.isKept(parameters.finalLevel())) solved.persist(parameters.finalLevel());
      boolean due =
        parameters.checkpointInterval() > 0 &&
        version % (2 * parameters.checkpointInterval()) == 0 &&
        version > 0;
      if (due && blocks.context().getCheckpointDir().isDefined()) {
        log.info("FactorFlow: version {} is kept as a checkpoint", version);
        solved.checkpoint();
      }
      List<SolvedBlock> summaries = blocks.collect(solved.map(SolvedBlock::summary));
      ManyHosts.checked(summaries);
      summaries.sort(Comparator.comparingInt(block -> block.block));
      return new SolvedSide(
        version,
        solved,
        null,
        SolvedSide.gram(summaries),
        SolvedSide.loss(summaries)
      );
    }

    @Override
    public void drop(SolvedSide side) {
      side.blocks().unpersist(false);
    }
  }
}
