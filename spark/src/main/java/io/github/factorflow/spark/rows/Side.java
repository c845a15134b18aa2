package io.github.factorflow.spark.rows;

enum Side {
  USERS("users"),
  ITEMS("items");

  final String label;

  Side(String label) {
    this.label = label;
  }

  Side other() {
    return this == USERS ? ITEMS : USERS;
  }
}
