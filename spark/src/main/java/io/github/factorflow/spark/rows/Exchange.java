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

  /** Nanoseconds for a byte that a host receives, as measured (bench/results, `spark-exchange`). */
  double SHUFFLED = 13;
  double BROADCAST = 35;

  /**
   * Nanoseconds that a broadcast may take longer than a shuffle: it is preferred for small sides, since a lost block is
   * solved again quickly. A side of 16 MiB that every host needs whole takes this much longer.
   */
  double MOST_LONGER = (BROADCAST - SHUFFLED) * (16 << 20);

  /**
   * Chooses by the setting; auto by the bytes that hosts need of each side, and for broadcasts also by the driver's
   * memory and the results that it accepts.
   */
  static Exchange of(Settings.Exchange setting, ExchangePlan plan, Parameters parameters, Blocks blocks) {
    SparkConf conf = blocks.context().getConf();
    long results = conf.getSizeAsBytes("spark.driver.maxResultSize", "1g");
    long most = Math.min(results == 0 ? Long.MAX_VALUE : results / 2, Runtime.getRuntime().maxMemory() / 8);
    boolean small = isSmall(plan.users(), most) && isSmall(plan.items(), most);
    boolean broadcast = setting == Settings.Exchange.AUTO ? small : setting == Settings.Exchange.BROADCAST;
    String reason = setting == Settings.Exchange.AUTO ? (small ? "both sides are small"
        : "less time than whole sides by broadcast") : "as set";
    LoggerFactory.getLogger(Exchange.class).info("FactorFlow: {}. Exchange by {}: {}", plan.text(), broadcast
        ? "broadcast" : "shuffle", reason);
    return broadcast ? new ByBroadcast(blocks, parameters) : new ByShuffle(blocks, parameters);
  }

  /** True if a broadcast is preferred for a side. {@code most}: bytes of a side that the driver can hold. */
  static boolean isSmall(ExchangePlan.Traffic side, long most) {
    return side.bytes() <= most && BROADCAST * side.bytes() - SHUFFLED * side.neededBytes() <= MOST_LONGER;
  }

  /**
   * Sends factors through the driver, which keeps the last version of each side. A lost block then needs
   * nothing of earlier iterations.
   */
  record ByBroadcast(Blocks blocks, Parameters parameters) implements Exchange {
    @Override
    public SolvedSide solve(RowTask task, int version, SolvedSide fixed, SolvedSide previous, boolean last) {
      JavaRDD<SolvedBlock> solved = blocks.withCopies(task, fixed == null ? null : fixed.copies(), previous == null
          ? null : previous.copies());
      if (last && ManyHosts.isKept(parameters.finalLevel())) solved.persist(parameters.finalLevel());
      List<SolvedBlock> all = blocks.collect(solved);
      ManyHosts.checked(all);
      all.sort(Comparator.comparingInt(block -> block.block));
      return new SolvedSide(version, solved, JavaSparkContext.fromSparkContext(blocks.context()).broadcast(all),
          SolvedSide.gram(all));
    }

    @Override
    public void drop(SolvedSide side) {
      side.copies().destroy();
    }
  }

  /**
   * Sends factors from executor to executor: to each host the rows that its ratings name. No host and not the driver
   * has a whole side. The lineage of a block extends over the iterations back to the last checkpoint, if the
   * application has a
   * checkpoint folder.
   */
  record ByShuffle(Blocks blocks, Parameters parameters) implements Exchange {
    private static final Logger log = LoggerFactory.getLogger(ByShuffle.class);

    @Override
    public SolvedSide solve(RowTask task, int version, SolvedSide fixed, SolvedSide previous, boolean last) {
      JavaRDD<byte[]> beside = fixed == null ? blocks.empty() : blocks.outgoing(task.sendFixed(), fixed.blocks());
      JavaRDD<SolvedBlock> solved = blocks.withPartitions(task, beside, previous == null ? blocks.empty()
          : previous.blocks());
      if (!last) solved.persist(parameters.intermediateLevel());
      else if (ManyHosts.isKept(parameters.finalLevel())) solved.persist(parameters.finalLevel());
      boolean due = parameters.checkpointInterval() > 0 && version % (2 * parameters.checkpointInterval()) == 0
          && version > 0;
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
