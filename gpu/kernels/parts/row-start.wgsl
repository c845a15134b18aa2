// CG's start of a row's feature: the row of the iteration before, with its bias in the place of its 1.
fn start_of(row: u32, feature: u32) -> f32 {
{%- if BIASES %}
  if (feature == RANK - 1u) { return previous_bias[row]; }
{%- endif %}
  return previous[row * PADDED + min(feature, PADDED - 1u)];
}
