// Template: only some kernels have buffers of biases and objectives.
{%- comment -%}
Start of a kernel that solves one row per workgroup: reads the row's `entry` in the work list, and its number
`row`. A row without ratings is finished here: its factors become 0 and, with biases, its bias too.
{%- endcomment %}
  let number = id.y * size.x + id.x;
  if (number >= params.count) {
    return;
  }
  // Entry: row, first slot, n, number of slots.
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
{% if objective %}
    if (thread == 0) {
      write_objective(row, 0.0);
    }
{% endif %}
    return;
  }
