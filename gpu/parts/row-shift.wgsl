// The shift of the diagonal of A of a row with n ratings: lambda n^exponent + offset; with biases also that of the row's bias, with its n ones.
fn shift_of(n: u32) -> f32 {
  let count = f32(n);
  var power = count;
  if (params.exponent != 1.0) {
    power = exp2(params.exponent * log2(max(count, 1.0)));
  }
  return fma(params.lambda, power, params.offset);
}
{% if BIASES %}
fn own_shift_of(n: u32) -> f32 {
  return fma(params.bias_lambda, f32(n), params.damping);
}
fn weight_of(n: u32) -> f32 {
  return max(f32(n), 1.0) + own_shift_of(n);
}
{% endif %}
