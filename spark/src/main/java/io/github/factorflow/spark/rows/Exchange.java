package io.github.factorflow.spark.rows;

import io.github.factorflow.spark.Parameters;
import java.util.List;
import java.util.Set;
import org.apache.spark.api.java.JavaRDD;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.storage.StorageLevel;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Solves a side, and brings it to all hosts. */
interface Exchange {
  Logger log = LoggerFactory.getLogger(Exchange.class);

  /** {@code fixed} and {@code previous} are null if the task needs none. */
  SolvedSide solve(RowTask task, SolvedSide fixed, SolvedSide previous);

  /** Gives up a side that no later task needs. */
  void drop(SolvedSide side);

  static Exchange of(ExchangeChoice choice, Parameters parameters, Blocks blocks) {
    log.info("FactorFlow: {}. {}", choice.plan().text(), choice.text());
    return choice.broadcast()
      ? new ByBroadcast(blocks, parameters)
      : new ByShuffle(blocks, parameters, choice.plan().formed());
  }

  private static void persist(JavaRDD<SolvedBlock> solved, StorageLevel level) {
    if (!level.equals(StorageLevel.NONE())) solved.persist(level);
  }

  /**
   * Sends factors through the driver, which keeps the last version of each side. A lost block then needs
   * nothing of earlier iterations.
   */
  record ByBroadcast(Blocks blocks, Parameters parameters) implements Exchange {
    @Override
    public SolvedSide solve(RowTask task, SolvedSide fixed, SolvedSide previous) {
      JavaRDD<SolvedBlock> solved = blocks.withCopies(
        task,
        fixed == null ? null : fixed.copies(),
        previous == null ? null : previous.copies()
      );
      if (task.last()) persist(solved, parameters.finalLevel());
      List<SolvedBlock> all = blocks.collect(solved);
      var copies = JavaSparkContext.fromSparkContext(blocks.context()).broadcast(all);
      return SolvedSide.of(task.version(), solved, copies, all);
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
  record ByShuffle(Blocks blocks, Parameters parameters, Set<RowTask.Side> formed) implements Exchange {
    @Override
    public SolvedSide solve(RowTask given, SolvedSide fixed, SolvedSide previous) {
      RowTask task = fixed != null && formed.contains(given.side().other()) ? given.fromEquations() : given;
      JavaRDD<SolvedBlock> solved = blocks.withPartitions(
        task,
        fixed == null ? blocks.empty() : blocks.outgoing(task.sendFixed(), fixed.blocks()),
        fixed == null ? blocks.empty() : fixed.blocks(),
        previous == null ? blocks.empty() : previous.blocks()
      );
      if (task.last()) persist(solved, parameters.finalLevel());
      else solved.persist(parameters.intermediateLevel());
      int interval = parameters.checkpointInterval();
      boolean due = interval > 0 && task.version() > 0 && task.version() % (2 * interval) == 0;
      if (due && blocks.context().getCheckpointDir().isDefined()) {
        log.info("FactorFlow: version {} is kept as a checkpoint", task.version());
        solved.checkpoint();
      }
      List<SolvedBlock> summaries = blocks.collect(solved.map(SolvedBlock::summary));
      return SolvedSide.of(task.version(), solved, null, summaries);
    }

    @Override
    public void drop(SolvedSide side) {
      side.blocks().unpersist(false);
    }
  }
}
