package io.github.factorflow.spark.rows;

import io.github.factorflow.spark.Settings;
import io.github.factorflow.spark.rows.RowTask.Side;
import io.github.factorflow.spark.worker.FactorFlowException;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Set;
import java.util.function.LongPredicate;

/**
 * The data that hosts exchange, and the reason: whole sides by broadcast, the rows that each host needs by
 * shuffle, or for some sides equations that are formed from their rows.
 *
 * @param plan bytes and memory; without {@code broadcast} its {@code formed} says from which sides equations
 *     are formed
 */
record ExchangeChoice(ExchangePlan plan, boolean broadcast, String reason) {
  /** Nanoseconds for a byte that a host receives, as measured (bench/results, `spark-exchange`). */
  private static final double SHUFFLED = 13;
  private static final double BROADCAST = 35;

  /**
   * Nanoseconds that a broadcast may take longer than a shuffle: it is preferred for small sides, since a
   * lost block is solved again quickly. A side of 16 MiB that every host receives whole takes this much
   * longer.
   */
  private static final double MOST_LONGER = (BROADCAST - SHUFFLED) * (16 << 20);

  /**
   * The limits of a cluster.
   *
   * @param side bytes of a side that the driver can hold
   * @param fits true for bytes that a worker may have
   * @param everywhere true if every executor can run a worker, without which no equations can be formed there
   */
  record Limits(long side, LongPredicate fits, boolean everywhere) {
    boolean fits(ExchangePlan plan) {
      return fits.test(plan.largest().all());
    }
  }

  static ExchangeChoice of(
    Settings.Exchange setting,
    List<SolvedBlock.Facts> users,
    List<SolvedBlock.Facts> items,
    ExchangePlan.Row row,
    Limits limits
  ) {
    ExchangePlan rows = ExchangePlan.of(users, items, row, Set.of());
    return switch (setting) {
      case BROADCAST -> new ExchangeChoice(rows, true, "as set");
      case SHUFFLE -> new ExchangeChoice(rows, false, "as set");
      case EQUATIONS -> {
        ExchangePlan formed = ExchangePlan.of(users, items, row, larger(rows, limits));
        yield new ExchangeChoice(formed, false, "as set");
      }
      case AUTO -> {
        List<ExchangePlan> plans = new ArrayList<>(List.of(rows));
        for (Side side : Side.values()) {
          if (!limits.everywhere() || !rows.of(side).canForm()) continue;
          plans.add(ExchangePlan.of(users, items, row, Set.of(side)));
        }
        plans.sort(Comparator.comparingDouble(ExchangeChoice::nanoseconds));
        yield fastest(rows, plans, limits);
      }
    };
  }

  /** The side with more rows; equations of the other one are formed from it. */
  private static Set<Side> larger(ExchangePlan plan, Limits limits) {
    Side side = plan.users().rows() >= plan.items().rows() ? Side.USERS : Side.ITEMS;
    if (!limits.everywhere()) return Set.of();
    if (plan.of(side).canForm()) return Set.of(side);
    throw new FactorFlowException(
      "spark.factorflow.exchange is equations, which workers form on processors only, and at " +
        "ranks up to 512. Set it to auto or shuffle"
    );
  }

  /**
   * {@code plans}: from the fastest on. If none fits, the one with the least memory, which is then refused.
   */
  private static ExchangeChoice fastest(ExchangePlan rows, List<ExchangePlan> plans, Limits limits) {
    Comparator<ExchangePlan> byMemory = Comparator.comparingLong(one -> one.largest().all());
    ExchangePlan plan = plans
      .stream()
      .filter(limits::fits)
      .findFirst()
      .orElseGet(() -> plans.stream().min(byMemory).orElseThrow());
    boolean areSmall = isSmall(plan, Side.USERS, limits.side()) && isSmall(plan, Side.ITEMS, limits.side());
    if (limits.fits(rows) && areSmall) return new ExchangeChoice(rows, true, "both sides are small");
    if (plan.formed().isEmpty()) {
      String rest = plan == plans.get(0) ? "" : ", and equations do not fit a worker's memory";
      return new ExchangeChoice(plan, false, "less time than whole sides by broadcast" + rest);
    }
    boolean isFastest = nanoseconds(plan) <= nanoseconds(rows);
    String reason = isFastest ? "less time than rows" : "rows do not fit a worker's memory";
    return new ExchangeChoice(plan, false, reason);
  }

  /** Time of both sides' exchange for the average host. */
  private static double nanoseconds(ExchangePlan plan) {
    return nanoseconds(plan, Side.USERS) + nanoseconds(plan, Side.ITEMS);
  }

  private static double nanoseconds(ExchangePlan plan, Side side) {
    ExchangePlan.Traffic traffic = plan.of(side);
    return SHUFFLED * (plan.formed().contains(side) ? traffic.formedBytes() : traffic.neededBytes());
  }

  /** True if a broadcast is preferred for a side. {@code most}: bytes of a side that the driver can hold. */
  static boolean isSmall(ExchangePlan plan, Side side, long most) {
    long bytes = plan.of(side).bytes();
    return bytes <= most && BROADCAST * bytes - nanoseconds(plan, side) <= MOST_LONGER;
  }

  /** For the log. */
  String text() {
    if (broadcast) return "Exchange by broadcast: " + reason;
    StringBuilder text = new StringBuilder("Exchange by shuffle");
    for (Side side : plan.formed()) {
      String formed = ExchangePlan.mib(plan.of(side).formedBytes());
      String needed = ExchangePlan.mib(plan.of(side).neededBytes());
      text.append(", " + side.other().label + " from sums of equations, " + formed + " a host instead of ");
      text.append(needed + " of rows of " + side.label);
    }
    return text + ": " + reason;
  }
}
