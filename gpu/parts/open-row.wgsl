// Template: only some kernels have buffers of biases and objectives.
{%- comment -%}
The row of this workgroup: `entry` and `row`. A row without ratings becomes 0 here, with biases also its bias.
{%- endcomment %}
  let number = id.y * size.x + id.x;
  if (number >= params.count) {
    return;
  }
  // Entry: row, first slot, n, slots.
  let entry = work[number];
  let row = entry.x;
  if (entry.z == 0) {
    for (var quad = thread; quad < QUADS; quad += THREADS) {
      _ = write_quad(row, quad, vec4f());
    }
{% if biases %}
    if (thread == 0) {
      bias[row] = 0.0;
    }
{% endif %}
{% if tells %}
    if (thread == 0) {
      tell(row, 0.0);
    }
{% endif %}
    return;
  }
