package io.github.factorflow.spark.rows;

import java.io.Serializable;

/** Of a block or of all: rows that are solved, ratings, and the sum of their squares. */
final class Sums implements Serializable {
  private static final long serialVersionUID = 1;
  static final Sums NONE = new Sums(0, 0, 0);
  final long rows;
  final long ratings;
  final double squares;

  Sums(long rows, long ratings, double squares) {
    this.rows = rows;
    this.ratings = ratings;
    this.squares = squares;
  }

  Sums plus(Sums other) {
    return new Sums(rows + other.rows, ratings + other.ratings, squares + other.squares);
  }
}
