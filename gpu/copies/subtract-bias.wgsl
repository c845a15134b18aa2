// Template: loops are written out, so that all loads of a thread are asked for before the first is used.
// Takes the mean and the columns' biases off ratings, FOURS groups of four a thread. The first and the last
// four may reach beyond the range: all are ratings of the block, or its padding.

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u, @builtin(local_invocation_index) thread: u32) {
  let begin = params.first + (group.y * groups.x + group.x) * THREADS * FOURS + thread;
  let end = params.first + params.fours;
  // All columns are asked for first, and then all biases.
{%- for i in each %}
  let at_{{ i }} = min(begin + {{ i }}u * THREADS, end - 1u);
  let column_{{ i }} = indices[at_{{ i }}];
  let rated_{{ i }} = values[at_{{ i }}];
{%- endfor %}
{%- for i in each %}
  let biases_{{ i }} = vec4f(fixed_bias[column_{{ i }}.x], fixed_bias[column_{{ i }}.y], fixed_bias[column_{{ i }}.z], fixed_bias[column_{{ i }}.w]);
{%- endfor %}
{%- for i in each %}
  if (begin + {{ i }}u * THREADS < end) {
    centred[at_{{ i }}] = rated_{{ i }} - (vec4f(params.mean) + biases_{{ i }});
  }
{%- endfor %}
}
