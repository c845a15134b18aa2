// Adds the values of `sum` of all THREADS threads, and writes the result to sums[number].
  #import parts/add-threads
  if (thread == 0) {
    sums[number] = partial[0];
  }
