package io.github.factorflow.spark.worker;

import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;

/** Reads a worker's standard error to its end: keeps the last messages, and counts signs of life. */
final class Tail implements Runnable {

  private static final int KEPT = 4096;
  private final InputStream in;
  private final byte[] kept = new byte[2 * KEPT];
  private int length = 0;
  private boolean cut = false;
  private volatile long signs = 0;

  Tail(InputStream in) {
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

  /** Number of reads so far: it grows with each sign of life. */
  long signs() {
    return signs;
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

  synchronized String text() {
    int from = Math.max(0, length - KEPT);
    String text = new String(kept, from, length - from, StandardCharsets.UTF_8).strip();
    return cut || from > 0 ? "... " + text : text;
  }
}
