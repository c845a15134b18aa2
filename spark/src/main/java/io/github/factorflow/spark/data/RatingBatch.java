package io.github.factorflow.spark.data;

import java.io.Serializable;

/**
 * Some ratings as one record batch message of Arrow's stream format, in the schema of {@link RatingEncoder}.
 */
public final class RatingBatch implements Serializable {

  private static final long serialVersionUID = 1;
  public final int rows;
  public final byte[] message;

  public RatingBatch(int rows, byte[] message) {
    this.rows = rows;
    this.message = message;
  }
}
