package io.github.factorflow.spark.worker;

import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;

/** Reads a stream to its end and keeps its last bytes: the last messages of a worker on standard error. */
final class Tail implements Runnable {
  private static final int KEPT = 4096;
  private final InputStream in;
  private final byte[] kept = new byte[2 * KEPT];
  private int length = 0;
  private boolean cut = false;

  Tail(InputStream in) {
    this.in = in;
  }

  @Override
  public void run() {
    byte[] chunk = new byte[KEPT];
    try {
      for (int count = in.read(chunk); count >= 0; count = in.read(chunk)) add(chunk, count);
    } catch (IOException ended) {
      // the process is gone, and what it said is kept
    }
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
