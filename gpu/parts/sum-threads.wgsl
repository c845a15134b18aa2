// Reduces `sum` over all THREADS threads through `partial`, into `sums[number]`.
  #import parts/add-threads
  if (thread == 0) {
    sums[number] = partial[0];
  }
