package io.github.factorflow.spark.rows;

import java.util.List;
import java.util.Locale;
import java.util.stream.IntStream;
import java.util.stream.LongStream;

/**
 * Bytes that the hosts exchange and hold, known from the loaded blocks before the first iteration.
 *
 * @param users rows of users and the hosts that need them; {@code items} likewise
 * @param hosts bytes of each host's worker
 */
record ExchangePlan(Traffic users, Traffic items, List<HostBytes> hosts) {
  private static final double MIB = 1 << 20;

  /**
   * The rows of one side.
   *
   * @param needed for each host, the rows of this side that its block of the other side needs
   * @param rowBytes bytes of a row on its way: its id and its factors
   */
  record Traffic(Side side, long rows, long[] needed, long rowBytes) {
    long bytes() {
      return rows * rowBytes;
    }

    /** Bytes that the average host receives if it gets only the rows that it needs. */
    long neededBytes() {
      return total() / Math.max(1, needed.length) * rowBytes;
    }

    long total() {
      return LongStream.of(needed).sum();
    }

    String text() {
      return String.format(Locale.ROOT, "%s: %s of %s rows needed by the average host, %s instead of %s", side.label,
          count(total() / Math.max(1, needed.length)), count(rows), mib(neededBytes()), mib(bytes()));
    }
  }

  /** Bytes of one worker: its process, its blocks, and the most that loading or solving one takes in addition. */
  record HostBytes(long process, long kept, long working) {
    long all() {
      return process + kept + working;
    }
  }

  /** The plan for one block of each side per host; lists are in the order of blocks. */
  static ExchangePlan of(List<SolvedBlock> users, List<SolvedBlock> items, int rank) {
    List<HostBytes> hosts = IntStream.range(0, users.size()).mapToObj(host ->
        bytes(users.get(host).needs, items.get(host).needs)).toList();
    return new ExchangePlan(traffic(Side.USERS, users, rank), traffic(Side.ITEMS, items, rank), hosts);
  }

  private static Traffic traffic(Side side, List<SolvedBlock> blocks, int rank) {
    long[] needed = new long[blocks.size()];
    for (SolvedBlock block
        : blocks) for (int host = 0; host < needed.length; host++) needed[host] += block.needs.sends(host);
    return new Traffic(side, blocks.stream().mapToLong(block -> block.sums.rows).sum(), needed, 4L * rank + 8);
  }

  /** Users are loaded before items, so loading a block of users finds no block of items. */
  private static HostBytes bytes(BlockNeeds users, BlockNeeds items) {
    long kept = users.kept() + items.kept();
    long working = Math.max(Math.max(users.solving(), items.solving()),
        Math.max(items.loading(), users.loading() - items.kept()));
    return new HostBytes(Math.max(users.process(), items.process()), kept, working);
  }

  /** The host whose worker needs the most memory. */
  HostBytes largest() {
    return hosts.stream().max((one, other) -> Long.compare(one.all(), other.all())).orElseThrow();
  }

  /** Lines for the log. */
  String text() {
    HostBytes host = largest();
    return String.format(Locale.ROOT,
        "%s; %s; memory of the largest worker: %s for ratings and rows, %s to solve them from the rows needed, %s for the process",
        users.text(), items.text(), mib(host.kept()), mib(host.working()), mib(host.process()));
  }

  static String mib(long bytes) {
    return String.format(Locale.ROOT, bytes < 10 * MIB ? "%.1f MiB" : "%.0f MiB", bytes / MIB);
  }

  private static String count(long rows) {
    if (rows < 10_000) return String.valueOf(rows);
    return rows < 1_000_000 ? String.format(Locale.ROOT, "%.0f k", rows / 1e3)
        : String.format(Locale.ROOT, "%.1f M", rows / 1e6);
  }
}
