#part share-of-rows
// Finds the rows of a workgroup: `number` of the workgroup, and `first` of its ROWS rows of [from_row,
// to_row).
  let number = group.y * groups.x + group.x;
  let first = params.from_row + number * ROWS;
  if (first >= params.to_row) {
    return;
  }

#part add-threads
// Adds the values of `sum` of all THREADS threads of the workgroup; the result is in partial[0].
  partial[thread] = sum;
  for (var half = THREADS / 2; half > 0; half /= 2) {
    workgroupBarrier();
    if (thread < half) {
      partial[thread] += partial[thread + half];
    }
  }

#part sum-threads
// Adds the values of `sum` of all THREADS threads, and writes the result to sums[number].
  #import parts/add-threads
  if (thread == 0) {
    sums[number] = partial[0];
  }
