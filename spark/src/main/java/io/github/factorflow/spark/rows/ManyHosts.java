package io.github.factorflow.spark.rows;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import io.github.factorflow.spark.Parameters;
import io.github.factorflow.spark.Ratings;
import io.github.factorflow.spark.Settings;
import io.github.factorflow.spark.data.FactorBlock;
import io.github.factorflow.spark.data.RatingEncoder;
import io.github.factorflow.spark.rows.RowTask.Side;
import io.github.factorflow.spark.rows.RowTask.Totals;
import io.github.factorflow.spark.rows.SolvedBlock.Facts;
import io.github.factorflow.spark.run.Executors;
import io.github.factorflow.spark.run.Factors;
import io.github.factorflow.spark.run.LocalProperty;
import io.github.factorflow.spark.run.Placement;
import io.github.factorflow.spark.run.Progress;
import java.util.List;
import java.util.UUID;
import org.apache.spark.HashPartitioner;
import org.apache.spark.SparkContext;
import org.apache.spark.api.java.JavaRDD;

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

  private ManyHosts(Parameters parameters, Blocks blocks, RowSession session) {
    this.parameters = parameters;
    this.blocks = blocks;
    this.session = session;
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
    Blocks blocks = new Blocks(context, rated, hosts, executors);
    try (LocalProperty fit = new LocalProperty(context, RowWorker.FIT, session.id())) {
      return new ManyHosts(parameters, blocks, session).run(ratings, settings);
    } finally {
      rated.unpersist(false);
      RowWorker.endAll(context, session.id());
    }
  }

  private Factors run(Ratings ratings, Settings settings) {
    List<Facts> users = load(Side.USERS);
    Totals totals = totals(users);
    if (totals.ratings() == 0) throw ratings.noRatings();
    List<Facts> items = load(Side.ITEMS);
    var limits = new ExchangeChoice.Limits(
      Placement.mostInDriver(blocks.context().getConf()),
      session.placement()::allows,
      blocks.haveWorkersEverywhere()
    );
    ExchangePlan.Row row = new ExchangePlan.Row(parameters.rank(), settings.half());
    ExchangeChoice choice = ExchangeChoice.of(settings.exchange(), users, items, row, limits);
    session.placement().require(choice.plan().largest().all(), choice.plan().text());
    return iterate(Exchange.of(choice, parameters, blocks), totals, ratings);
  }

  private List<Facts> load(Side side) {
    try (LocalProperty description = describe("loading")) {
      return blocks.load(RowTask.load(session, side)).stream().map(SolvedBlock::facts).toList();
    }
  }

  private static Totals totals(List<Facts> blocks) {
    Totals sum = new Totals(0, 0);
    for (Facts one : blocks) sum = new Totals(sum.ratings() + one.ratings(), sum.squares() + one.squares());
    return sum;
  }

  private Factors iterate(Exchange exchange, Totals totals, Ratings ratings) {
    SolvedSide users = start(exchange, totals);
    SolvedSide items = null;
    ArrayNode iterations = JsonNodeFactory.instance.arrayNode();
    for (int iteration = 1; iteration <= parameters.maxIter(); iteration++) {
      boolean last = iteration == parameters.maxIter();
      long began = System.nanoTime();
      SolvedSide formerItems = items;
      SolvedSide formerUsers = users;
      items = solve(exchange, Side.ITEMS, totals, formerUsers, formerItems);
      users = solve(exchange, Side.USERS, totals, items, formerUsers);
      iterations
        .addObject()
        .put("iteration", iteration)
        .put("seconds", (System.nanoTime() - began) / 1e9)
        .put("loss", users.loss(items))
        .put("trainRmse", users.loss().rmse());
      if (last) continue;
      // the last iteration's inputs stay: its results may have to be solved again
      exchange.drop(formerUsers);
      if (formerItems != null) exchange.drop(formerItems);
    }
    var report = JsonNodeFactory.instance.objectNode().set("iterations", iterations);
    session.progress().reports().add(report.toString());
    return Factors.of(ratings.session(), decoded(users, "userFactors"), decoded(items, "itemFactors"));
  }

  private SolvedSide start(Exchange exchange, Totals totals) {
    try (LocalProperty description = describe("start")) {
      return exchange.solve(RowTask.start(session, totals), null, null);
    }
  }

  private SolvedSide solve(
    Exchange exchange,
    Side side,
    Totals totals,
    SolvedSide fixed,
    SolvedSide previous
  ) {
    int iteration = fixed.version() / 2 + 1;
    boolean last = iteration == parameters.maxIter();
    RowTask task = RowTask.solve(session, side, totals, fixed, previous, last);
    String what = "iteration " + iteration + " of " + parameters.maxIter() + ", " + side.label;
    try (LocalProperty description = describe(what)) {
      return exchange.solve(task, fixed, previous);
    }
  }

  private LocalProperty describe(String what) {
    return LocalProperty.description(
      blocks.context(),
      "FactorFlow ALS, rank " + parameters.rank() + " on " + session.hosts() + " hosts: " + what
    );
  }

  private JavaRDD<FactorBlock> decoded(SolvedSide side, String name) {
    int rank = parameters.rank();
    return side
      .blocks()
      .setName(name)
      .flatMap(block ->
        block.factors
          .stream()
          .flatMap(stream -> FactorBlock.decode(stream, rank).stream())
          .iterator()
      );
  }
}
