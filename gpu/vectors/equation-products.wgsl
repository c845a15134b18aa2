// Multiplies each row's A by the row's vector. A workgroup has one row, and a row of `equations` has the
// lower triangle of A, b and further numbers (operators/tasks/equation-tasks.ts).
//
//   FIRST    sums += b - A x; also n, t, b^T x and s, which gradients have (operators/tasks/vector-tasks.ts)
//   else     sums += A d for a search direction d
//
// A thread computes every THREADS-th element. For element i it reads row i of the triangle up to the
// diagonal, and then column i below the diagonal.

var<workgroup> vector: array<f32, PADDED>;
var<workgroup> terms: array<f32, THREADS>;

#import parts/main
{
  #import parts/number
  let row = params.first + number;
  let source = row * params.stride;
  let own_sums = row * SUM_STRIDE;
  for (var k = thread; k < PADDED; k += THREADS) {
    vector[k] = vectors[row * PADDED + k];
  }
  workgroupBarrier();
  var along = 0.0;
  for (var i = thread; i < RANK; i += THREADS) {
    let own = source + i * (i + 1) / 2;
    var sum = 0.0;
    for (var j = 0u; j <= i; j++) {
      sum = fma(equations[own + j], vector[j], sum);
    }
    var at = own + 2 * i + 1;
    for (var j = i + 1; j < RANK; j++) {
      sum = fma(equations[at], vector[j], sum);
      at += j + 1;
    }
    if (FIRST) {
      let b = equations[source + B + i];
      along = fma(b, vector[i], along);
      sum = b - sum;
      if (BIASES) {
        sums[own_sums + S + i] += equations[source + N + 1 + i];
      }
    }
    sums[own_sums + i] += sum;
  }
  if (!FIRST) {
    return;
  }
  terms[thread] = along;
  workgroupBarrier();
  if (thread == 0) {
    var total = 0.0;
    for (var k = 0u; k < THREADS; k++) {
      total += terms[k];
    }
    sums[own_sums + PADDED] += equations[source + N];
    if (BIASES) {
      sums[own_sums + PADDED + 1] += equations[source + N + 1 + RANK];
    }
    sums[own_sums + PADDED + 2] += total;
  }
}
