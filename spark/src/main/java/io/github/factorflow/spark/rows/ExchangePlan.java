package io.github.factorflow.spark.rows;

import io.github.factorflow.spark.rows.RowTask.Side;
import io.github.factorflow.spark.rows.SolvedBlock.Facts;
import java.util.Comparator;
import java.util.List;
import java.util.Locale;
import java.util.Set;
import java.util.stream.IntStream;
import java.util.stream.LongStream;

/**
 * Bytes that the hosts exchange and hold, known from the loaded blocks before the first iteration.
 *
 * @param users rows of users and the hosts that need them; {@code items} likewise
 * @param hosts bytes of each host's worker
 * @param formed sides from whose rows equations of the other side are formed, which are exchanged instead of
 *     the rows
 */
record ExchangePlan(Traffic users, Traffic items, List<HostBytes> hosts, Set<Side> formed) {
  private static final double MIB = 1 << 20;

  /**
   * The rows of one side.
   *
   * @param needed for each host, the rows of this side that other hosts send it
   * @param row their form
   * @param equations rows of the other side with ratings in each block of this side, summed over the blocks;
   *     -1 where workers cannot form equations
   */
  record Traffic(Side side, long rows, long[] needed, Row row, long equations) {
    /** Bytes of a row on its way: its id and its factors, and in float32 its offset. */
    long rowBytes() {
      return row.half() ? 2L * row.rank() + 4 : 4L * row.rank() + 8;
    }

    /** Bytes of a row's equations on their way: its id, half of A, b and the number of ratings. */
    long equationBytes() {
      long rank = row.rank();
      return 4L * ((rank * (rank + 1)) / 2 + rank + 1) + 8;
    }

    long bytes() {
      return rows * rowBytes();
    }

    /**
     * Bytes that the average host receives from others if it gets the rows that it needs (or all, see
     * RowTask.MOST).
     */
    long neededBytes() {
      return (total() / Math.max(1, needed.length)) * rowBytes();
    }

    boolean canForm() {
      return equations >= 0;
    }

    /**
     * Bytes that the average host receives if it gets shares of its rows' equations instead of this side's
     * rows.
     */
    long formedBytes() {
      return (equations / Math.max(1, needed.length)) * equationBytes();
    }

    long total() {
      return LongStream.of(needed).sum();
    }

    String text() {
      String equal = canForm() ? ", or " + mib(formedBytes()) + " of equations" : "";
      return String.format(
        Locale.ROOT,
        "%s: %s of %s rows sent to the average host, %s instead of %s%s",
        side.label,
        count(total() / Math.max(1, needed.length)),
        count(rows),
        mib(neededBytes()),
        mib(bytes()),
        equal
      );
    }
  }

  /** Rows as they are exchanged: {@code rank} factors in float16 or float32. */
  record Row(int rank, boolean half) {}

  /**
   * Bytes of one worker: its process, its blocks, and the most that loading or solving one takes in addition.
   */
  record HostBytes(long process, long kept, long working) {
    long all() {
      return process + kept + working;
    }
  }

  /** The plan for one block of each side per host; lists are in the order of blocks. */
  static ExchangePlan of(List<Facts> users, List<Facts> items, Row row, Set<Side> formed) {
    List<HostBytes> hosts = IntStream.range(0, users.size())
      .mapToObj(host -> bytes(users.get(host).bytes(), items.get(host).bytes(), formed))
      .toList();
    return new ExchangePlan(traffic(Side.USERS, users, row), traffic(Side.ITEMS, items, row), hosts, formed);
  }

  Traffic of(Side side) {
    return side == Side.USERS ? users : items;
  }

  private static Traffic traffic(Side side, List<Facts> blocks, Row row) {
    long[] needed = new long[blocks.size()];
    for (int from = 0; from < needed.length; from++) {
      long[] sends = blocks.get(from).sends();
      for (int host = 0; host < sends.length; host++) if (host != from) needed[host] += sends[host];
    }
    boolean canForm = blocks.stream().allMatch(block -> block.bytes().equations() != null);
    long equations = canForm ? blocks.stream().mapToLong(Facts::columns).sum() : -1;
    return new Traffic(side, blocks.stream().mapToLong(Facts::rows).sum(), needed, row, equations);
  }

  /** Users are loaded before items, so loading a block of users finds no block of items. */
  private static HostBytes bytes(SolvedBlock.Bytes users, SolvedBlock.Bytes items, Set<Side> formed) {
    long byColumn =
      (formed.contains(Side.USERS) ? users.equations().kept() : 0) +
      (formed.contains(Side.ITEMS) ? items.equations().kept() : 0);
    long solving = Math.max(
      solving(items, users, formed.contains(Side.USERS)),
      solving(users, items, formed.contains(Side.ITEMS))
    );
    long loading = Math.max(items.loading(), users.loading() - items.kept());
    long kept = users.kept() + items.kept() + byColumn;
    long process = Math.max(users.process(), items.process());
    return new HostBytes(process, kept, Math.max(solving, loading - byColumn));
  }

  /** Bytes that solving a block takes in addition: from rows of the fixed side, or from equations of them. */
  private static long solving(SolvedBlock.Bytes solved, SolvedBlock.Bytes fixed, boolean formed) {
    return formed
      ? Math.max(fixed.equations().forming(), solved.equations().summing())
      : solved.solving();
  }

  /** The host whose worker needs the most memory. */
  HostBytes largest() {
    return hosts.stream().max(Comparator.comparingLong(HostBytes::all)).orElseThrow();
  }

  /** Lines for the log. */
  String text() {
    HostBytes host = largest();
    return String.format(
      Locale.ROOT,
      "%s; %s; memory of the largest worker: %s for ratings and rows, %s to solve them from the rows needed, " +
        "%s for the process",
      users.text(),
      items.text(),
      mib(host.kept()),
      mib(host.working()),
      mib(host.process())
    );
  }

  static String mib(long bytes) {
    return String.format(Locale.ROOT, bytes < 10 * MIB ? "%.1f MiB" : "%.0f MiB", bytes / MIB);
  }

  private static String count(long rows) {
    if (rows < 10_000) return String.valueOf(rows);
    return rows < 1_000_000
      ? String.format(Locale.ROOT, "%.0f k", rows / 1e3)
      : String.format(Locale.ROOT, "%.1f M", rows / 1e6);
  }
}
