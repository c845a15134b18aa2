// Adds the values of `sum` of all THREADS threads of the workgroup; the result is in partial[0].
  partial[thread] = sum;
  for (var half = THREADS / 2; half > 0; half /= 2) {
    workgroupBarrier();
    if (thread < half) {
      partial[thread] += partial[thread + half];
    }
  }
