// Template: loops are unrolled, so that a thread's features stay in registers.
{%- comment -%}
Computes left_* = b - A x with the row's original A, to find rounding errors of the sweeps. P is the set of
features that may differ from 0; their x is in y, and the other features' x is 0. For features outside P, y
becomes left_*. For a feature in P left_* should be 0: if it is too large, a bit of `remarks` is set.
{%- endcomment %}
{% for right in rights %}
      if (own_{{ right }} < STRIDE) {
        solution[own_{{ right }} / 4][own_{{ right }} % 4] = select(
          0.0,
          y_{{ right }},
          own_{{ right }} < RANK && is_passive(own_{{ right }})
        );
      }
{% endfor %}
      workgroupBarrier();
      for (var at = thread; at < LANES * STRIDE; at += THREADS) {
        var product = 0.0;
        for (var quad = at / STRIDE; quad < QUADS; quad += LANES) {
          product += dot(matrix_quad(base, at % STRIDE, quad), solution[quad]);
        }
        shares[at] = product;
      }
      workgroupBarrier();
{% for right in rights %}
      if (own_{{ right }} < RANK) {
        left_{{ right }} = b_{{ right }};
        for (var lane = 0u; lane < LANES; lane++) {
          left_{{ right }} -= shares[lane * STRIDE + own_{{ right }}];
        }
        if (!is_passive(own_{{ right }})) {
          y_{{ right }} = left_{{ right }};
        } else if (!(abs(left_{{ right }}) <= RESIDUAL * length)) {
          atomicOr(&remarks, 1u);
        }
      }
{% endfor %}
