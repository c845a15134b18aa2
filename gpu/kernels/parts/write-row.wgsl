// Writes four features of a solved row; false when one is not finite. A row's bias is its last feature, at BIAS_QUAD and
// BIAS_COMPONENT; it goes to `bias`, and 1 takes its place.
fn write_quad(row: u32, quad: u32, solved: vec4f) -> bool {
  var x = solved;
{% if biases %}
  if (quad == BIAS_QUAD) {
    bias[row] = x[BIAS_COMPONENT];
    x[BIAS_COMPONENT] = 1.0;
  }
{% endif %}
  factors[row * QUADS + quad] = x;
{% if half %}
  half[row * QUADS + quad] = vec2u(pack2x16float(x.xy), pack2x16float(x.zw));
{% endif %}
  return is_finite(solved.x) && is_finite(solved.y) && is_finite(solved.z) && is_finite(solved.w);
}
