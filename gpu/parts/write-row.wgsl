// Template: kernels without a float16 mirror do not have its buffer.
// Writes four features of a solved row; returns false if one is not finite.
fn write_quad(row: u32, quad: u32, x: vec4f) -> bool {
  factors[row * QUADS + quad] = x;
{% if half %}
  half[row * QUADS + quad] = vec2u(pack2x16float(x.xy), pack2x16float(x.zw));
{% endif %}
  return is_finite(x.x) && is_finite(x.y) && is_finite(x.z) && is_finite(x.w);
}
