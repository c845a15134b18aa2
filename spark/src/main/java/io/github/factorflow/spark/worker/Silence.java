package io.github.factorflow.spark.worker;

/**
 * Measures the time since a worker's last sign of life. Pauses of this JVM itself do not count: the time
 * between two looks counts for at most {@code MOST_MILLIS}.
 */
final class Silence {

  private static final long MOST_MILLIS = 200;
  private final long limit;
  private long seen = -1;
  private long before;
  private long silent = 0;

  Silence(long limitMillis) {
    limit = limitMillis;
  }

  /** Returns true once more than the limit has passed without a new sign. */
  boolean exceeds(long signs, long nowMillis) {
    if (signs == seen) {
      silent += Math.min(MOST_MILLIS, nowMillis - before);
    } else {
      seen = signs;
      silent = 0;
    }
    before = nowMillis;
    return limit > 0 && silent > limit;
  }

  long seconds() {
    return Math.max(1, limit / 1000);
  }
}
