// Adds up `sum` of all THREADS threads through `partial`, into its first element.
  partial[thread] = sum;
  for (var half = THREADS / 2; half > 0; half /= 2) {
    workgroupBarrier();
    if (thread < half) {
      partial[thread] += partial[thread + half];
    }
  }
