// Template: loops are unrolled, so that a thread's features stay in registers.
{%- comment -%}
Adds the sum of (theta_v^T p) theta_v over some ratings of a row to q, where p is the row's vector in `own`.
The ratings are `inside` ones from index `at` on, and their theta_v are in `tile`. First SPLIT of the row's
LANES threads compute theta_v^T p of a rating together. Then each thread adds its features of the sum.

With `first` the vector is x: a rating's factor is r_v - theta_v^T x, and the sum is added to r. This thread's
parts of the sums of r_v and of r_v theta_v^T x are added to rated_share and along_share and, with biases,
theta_v to s.

With `padded` the rest of the tile is 0, so that the loop has a constant length. The row's threads fill `tile`
and `own` before this code, and may change them only after a barrier that follows it.
{%- endcomment %}
    workgroupBarrier();
{%- if split > 1 %}
    { let k = lane / SPLIT;
      if (k < inside) { shares[thread].x = share_of(batch, base + k, lane % SPLIT); }
      workgroupBarrier();
      if (lane % SPLIT == 0 && k < inside) {
        var product = 0.0;
        for (var other = 0u; other < SPLIT; other++) {
          product += shares[thread + other].x;
        }
{%- else %}
    { for (var k = lane; k < inside; k += LANES) {
        let product = share_of(batch, base + k, 0);
{%- endif %}
{%- if first or implicit %}
        let rating = values[at + k];
{%- endif %}
{%- if implicit %}
        let weight_v = params.alpha * abs(rating);
{%- else %}
        let weight_v = 1.0;
{%- endif %}
{%- if first %}
{%- if implicit %}
        let goal = select(0.0, params.base + params.alpha * rating, rating > 0.0);
{%- else %}
        let goal = rating;
{%- endif %}
        rated_share += goal;
        along_share += goal * product;
        counted[base + k] = goal - weight_v * product;
{%- else %}
        counted[base + k] = weight_v * product;
{%- endif %}
      }{% if padded %} else if (lane % SPLIT == 0 && k < TILE) {
        counted[base + k] = 0.0;
      }{% endif %}
    }
    workgroupBarrier();
{%- for i in owned %}
    if (quad_{{ i }} < QUADS) {
      for (var k = 0u; k < {% if padded %}TILE{% else %}inside{% endif %}; k++) {
        let theta = features(tile[(base + k) * PITCH + quad_{{ i }}]);
        {% if first %}r{% else %}q{% endif %}_{{ i }} = fma(vec4f(counted[base + k]), theta, {% if first %}r{% else %}q{% endif %}_{{ i }});
{%- if first and biases %}
        s_{{ i }} += theta;
{%- endif %}
      }
    }
{%- endfor %}
