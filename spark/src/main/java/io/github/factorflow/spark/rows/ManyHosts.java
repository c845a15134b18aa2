package io.github.factorflow.spark.rows;

import io.github.factorflow.spark.Parameters;
import io.github.factorflow.spark.Ratings;
import io.github.factorflow.spark.Settings;
import io.github.factorflow.spark.data.FactorBlock;
import io.github.factorflow.spark.data.FactorCodec;
import io.github.factorflow.spark.data.RatingEncoder;
import io.github.factorflow.spark.run.Executors;
import io.github.factorflow.spark.run.Factors;
import io.github.factorflow.spark.run.JobDescription;
import io.github.factorflow.spark.run.Placement;
import io.github.factorflow.spark.run.Progress;
import io.github.factorflow.spark.worker.FactorFlowException;
import io.github.factorflow.spark.worker.Launch;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.List;
import java.util.UUID;
import org.apache.spark.HashPartitioner;
import org.apache.spark.SparkContext;
import org.apache.spark.api.java.JavaRDD;
import org.apache.spark.storage.StorageLevel;

/**
 * Training on several hosts. R by users and R by items are divided into one block of rows for each host,
 * cached in long-lived workers. A half-iteration is one stage with a task for each block; the solved side is
 * sent to the others by a broadcast or a shuffle ({@link Exchange}). Data that a worker lacks are sent again
 * by its task, from Spark's data. So the blocks of a lost executor are solved on another one.
 */
public final class ManyHosts {

  private final Parameters parameters;
  private final Blocks blocks;
  private final RowSession session;
  private final JobDescription job;

  private ManyHosts(Parameters parameters, Blocks blocks, RowSession session, JobDescription job) {
    this.parameters = parameters;
    this.blocks = blocks;
    this.session = session;
    this.job = job;
  }

  public static Factors train(
    Ratings ratings,
    Parameters parameters,
    Settings settings,
    Executors executors,
    Progress progress
  ) {
    SparkContext context = ratings.context();
    int hosts = settings.workers();
    RowSession session = new RowSession(
      UUID.randomUUID().toString(),
      hosts,
      Launch.of(settings),
      Placement.of(context, settings),
      parameters,
      progress,
      settings.half()
    );
    var rated = ratings
      .javaRows()
      .mapPartitionsToPair(new RatingEncoder(hosts))
      .partitionBy(new HashPartitioner(2 * hosts))
      .values()
      .persist(parameters.intermediateLevel());
    try (
      JobDescription job = new JobDescription(context);
      RunningFit running = new RunningFit(context, session.id())
    ) {
      return new ManyHosts(parameters, new Blocks(context, rated, hosts, executors), session, job).run(
        ratings,
        settings
      );
    } finally {
      rated.unpersist(false);
      Release.start(context, session.id());
    }
  }

  private Factors run(Ratings ratings, Settings settings) {
    describe("loading");
    List<SolvedBlock> users = blocks.load(RowTask.load(session, Side.USERS));
    Sums byUsers = checked(users);
    if (byUsers.ratings == 0) throw ratings.noRatings();
    List<SolvedBlock> items = blocks.load(RowTask.load(session, Side.ITEMS));
    checked(items);
    var limits = new ExchangeChoice.Limits(
      Exchange.mostOfSide(blocks.context().getConf()),
      session.placement()::allows,
      blocks.haveWorkersEverywhere()
    );
    ExchangeChoice choice = ExchangeChoice.of(
      settings.exchange(),
      users,
      items,
      new ExchangePlan.Row(parameters.rank(), settings.half()),
      limits
    );
    ExchangePlan plan = choice.plan();
    session.placement().require(plan.largest().all(), plan.text());
    return iterate(Exchange.of(choice, parameters, blocks), byUsers, ratings);
  }

  private Factors iterate(Exchange exchange, Sums byUsers, Ratings ratings) {
    describe("start");
    SolvedSide users = exchange.solve(RowTask.start(session, byUsers), 0, null, null, false);
    SolvedSide items = null;
    for (int iteration = 1; iteration <= parameters.maxIter(); iteration++) {
      boolean last = iteration == parameters.maxIter();
      long began = System.nanoTime();
      SolvedSide formerItems = items;
      describe("iteration " + iteration + " of " + parameters.maxIter() + ", items");
      RowTask byFixedUsers = RowTask.solve(
        session,
        Side.ITEMS,
        byUsers,
        2 * iteration - 1,
        users.version(),
        items == null ? null : items.version(),
        users.gram(),
        last
      );
      items = exchange.solve(byFixedUsers, 2 * iteration - 1, users, items, last);
      SolvedSide formerUsers = users;
      describe("iteration " + iteration + " of " + parameters.maxIter() + ", users");
      RowTask byFixedItems = RowTask.solve(
        session,
        Side.USERS,
        byUsers,
        2 * iteration,
        items.version(),
        users.version(),
        items.gram(),
        last
      );
      users = exchange.solve(byFixedItems, 2 * iteration, items, users, last);
      session.progress().iterated((System.nanoTime() - began) / 1e9, users.loss(items), users.loss().rmse());
      if (last) continue;
      // the last iteration's inputs stay: its results may have to be solved again
      exchange.drop(formerUsers);
      if (formerItems != null) exchange.drop(formerItems);
    }
    return Factors.of(ratings.session(), decoded(users, "userFactors"), decoded(items, "itemFactors"));
  }

  private void describe(String what) {
    job.say("FactorFlow ALS, rank " + parameters.rank() + " on " + blocks.hosts() + " hosts: " + what);
  }

  /** Adds up the sums of all blocks. If a worker refused a block, throws its reason. */
  static Sums checked(List<SolvedBlock> solved) {
    Sums all = Sums.NONE;
    for (SolvedBlock block : solved) {
      if (block.refusal != null) throw new FactorFlowException(block.refusal);
      all = all.plus(block.sums);
    }
    return all;
  }

  private JavaRDD<FactorBlock> decoded(SolvedSide side, String name) {
    int rank = parameters.rank();
    return side
      .blocks()
      .setName(name)
      .flatMap(block ->
        block.factors
          .stream()
          .map(stream -> decoded(stream, rank))
          .iterator()
      );
  }

  private static FactorBlock decoded(byte[] stream, int rank) {
    try {
      return FactorCodec.decode(stream, rank);
    } catch (IOException failure) {
      throw new UncheckedIOException(
        "FactorFlow's worker gave factors that cannot be read: " + failure.getMessage(),
        failure
      );
    }
  }

  static boolean isKept(StorageLevel level) {
    return !level.equals(StorageLevel.NONE());
  }
}
