package io.github.factorflow.spark.worker;

import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;

/**
 * Reads a worker's standard error to its end: keeps the last messages, and measures the time between signs of
 * life.
 */
final class Tail extends Thread {

  private static final int KEPT = 4096;
  /**
   * Pauses of this JVM itself do not count: the time between two calls of isSilent counts for at most this.
   */
  private static final long MOST_MILLIS = 200;
  private final InputStream in;
  private final byte[] kept = new byte[2 * KEPT];
  private int length = 0;
  private boolean cut = false;
  /** Number of reads so far: it grows with each sign of life. */
  private volatile long signs = 0;
  private long seen = -1;
  private long before;
  private long silent = 0;

  Tail(InputStream in) {
    super("factorflow-stderr");
    setDaemon(true);
    this.in = in;
  }

  @Override
  public void run() {
    byte[] chunk = new byte[KEPT];
    try {
      for (int count = in.read(chunk); count >= 0; count = in.read(chunk)) {
        add(chunk, withoutBeats(chunk, count));
        signs++;
      }
    } catch (IOException ended) {
      // the process is gone, and what it said is kept
    }
  }

  /** True once more than {@code limit} milliseconds have passed without a sign of life. */
  boolean isSilent(long limit, long nowMillis) {
    silent = signs == seen ? silent + Math.min(MOST_MILLIS, nowMillis - before) : 0;
    seen = signs;
    before = nowMillis;
    return limit > 0 && silent > limit;
  }

  /** Removes the zero bytes, which are signs of life; returns the number of other bytes. */
  private static int withoutBeats(byte[] chunk, int count) {
    int kept = 0;
    for (int at = 0; at < count; at++) if (chunk[at] != 0) chunk[kept++] = chunk[at];
    return kept;
  }

  private synchronized void add(byte[] chunk, int count) {
    if (length + count > kept.length) {
      int keep = Math.min(length, KEPT);
      System.arraycopy(kept, length - keep, kept, 0, keep);
      length = keep;
      cut = true;
    }
    System.arraycopy(chunk, 0, kept, length, count);
    length += count;
  }

  /** The end of a message: the last text, if there is one. */
  synchronized String said() {
    int from = Math.max(0, length - KEPT);
    String text = new String(kept, from, length - from, StandardCharsets.UTF_8).strip();
    return text.isEmpty() ? "" : ". It said: " + (cut || from > 0 ? "... " : "") + text;
  }
}
