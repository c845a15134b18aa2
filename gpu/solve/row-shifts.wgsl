// Computes, in one thread for each row, the number that is added to the diagonal of its A: lambda n^exponent
// + offset. With biases, also the number for the bias's own diagonal element: bias_lambda n + damping. n, the
// row's number of ratings, is the difference of two row pointers, or a float32 number in `counts`.

#import parts/main
{
  let number = (group.y * groups.x + group.x) * THREADS + thread;
  if (number >= params.count) {
    return;
  }
  let at = params.at + number * params.step;
  var n = bitcast<f32>(counts[at]);
  if (params.pointers == 1) {
    n = f32(counts[at + 1] - counts[at]);
  }
  n = round(n);
  var power = n;
  if (params.exponent != 1.0) {
    power = select(0.0, exp2(params.exponent * log2(max(n, 1.0))), n > 0.0);
  }
  let place = (params.first + number) * params.width;
  shifts[place] = fma(params.lambda, power, params.offset);
  if (params.width == 2) {
    shifts[place + 1] = fma(params.bias_lambda, n, params.damping);
  }
}
