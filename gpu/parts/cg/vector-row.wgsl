// Template: rows are listed or consecutive, by variant.
{%- comment -%}
Finds the row that LANES threads share. `entry` is (row, first slot, number n of ratings, number of slots): an
element of the list `work` or, without `listed`, made here for consecutive rows. `own` is the index of the
row's gradients and direction. Threads after the last row repeat the last row's work and write nothing:
`exists` is false.
{%- endcomment %}
  let batch = thread / LANES;
  let lane = thread % LANES;
  let number = (id.y * size.x + id.x) * ROWS + batch;
  let exists = number < params.count;
  let known = min(number, params.count - 1);
{%- if listed %}
  let entry = work[known];
  let own = known;
{%- else %}
  let own = params.first + known;
  let entry = vec4u(own, own, u32(round(gradients[own * ROW_QUADS + QUADS].x)), 1);
{%- endif %}
  let row = entry.x;
  let n = entry.z;
  let base = own * ROW_QUADS;
{%- for i in owned %}
  let quad_{{ i }} = lane + {{ i }} * LANES;
{%- endfor %}
