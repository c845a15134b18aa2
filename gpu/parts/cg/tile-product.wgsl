// Template: loops are unrolled, so that a thread's features stay in registers.
{%- comment -%}
One tile of the matrix-free product: adds the sum of w_v (theta_v^T p) theta_v over the tile's ratings of a
row to q. The vector p is in `own`. The tile has `inside` ratings: the first has index `at`, and their theta_v
are in `tile`. First, groups of SPLIT threads compute theta_v^T p, one rating at a time per group. Then each
of the row's LANES threads adds its own features of the sum.

With `first` the vector in `own` is x, and the code computes the residual: it adds the sum of
(g_v - w_v theta_v^T x) theta_v to r. It also adds, each thread for its own ratings,
  - g_v to rated_share,
  - g_v theta_v^T x to along_share.
With `first` and `biases`, each thread also adds its features of theta_v to s, for all ratings of the tile.

                    explicit    implicit
  weight w_v        1           alpha |r_v|
  right side g_v    r_v         base + alpha r_v if r_v > 0, otherwise 0

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
