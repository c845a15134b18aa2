// Template: loops are unrolled, so that all loads of a thread are issued before the first result is used.
// A thread handles FOURS groups of four. The first and the last group may extend beyond the wanted range; their
// other ratings are computed too, which does no harm.

#import parts/main
{
  let begin = params.first + (group.y * groups.x + group.x) * THREADS * FOURS + thread;
  let end = params.first + params.fours;
  // Loads all columns first, then all biases.
{%- for i in each %}
  let at_{{ i }} = min(begin + {{ i }}u * THREADS, end - 1u);
  let column_{{ i }} = indices[at_{{ i }}];
  let rated_{{ i }} = values[at_{{ i }}];
{%- endfor %}
{%- for i in each %}
  let biases_{{ i }} = vec4f(
    fixed_bias[column_{{ i }}.x],
    fixed_bias[column_{{ i }}.y],
    fixed_bias[column_{{ i }}.z],
    fixed_bias[column_{{ i }}.w]
  );
{%- endfor %}
{%- for i in each %}
  if (begin + {{ i }}u * THREADS < end) {
    centred[at_{{ i }}] = rated_{{ i }} - (vec4f(params.mean) + biases_{{ i }});
  }
{%- endfor %}
}
