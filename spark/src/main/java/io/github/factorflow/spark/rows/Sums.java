package io.github.factorflow.spark.rows;

import java.io.Serializable;

/**
 * Sums over a block or over all blocks: the number of solved rows, the number of ratings, and the ratings'
 * squares.
 */
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
