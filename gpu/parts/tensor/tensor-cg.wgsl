// Template: loops are unrolled, so that a thread's features stay in registers.
{%- comment -%}
Solves a row by conjugate gradients with A / n in float16 on tensor cores (cuMF_ALS, Algorithm 1 and section
4.2). The formulas are the same as in parts/register-cg. Every subgroup has copies of all vectors: a lane has
the elements e * 32 + lane, so that sums need no barrier. A vector is scaled to the range of float16 before it
is multiplied.

With INT8 the real matrix is S A S for a diagonal matrix S, and own_scale_e is this thread's element of S.

The product with the initial x is computed by the first turn of the loop: the driver compiles one copy of the
product's code faster than two.
{%- endcomment %}
{%- if INT8 %}{% assign x_factor = '16.0' %}{% assign x_inverse = '0.0625' %}{% assign p_factor = '2048.0' %}{% else %}{% assign x_factor = '1.0' %}{% assign x_inverse = '1.0' %}{% assign p_factor = '1024.0' %}{% endif %}
{%- for e in elements %}
{%- if INT8 %}{% capture scaled %} * own_scale_{{ e }}{% endcapture %}{% else %}{% assign scaled = '' %}{% endif %}
    let is_{{ e }} = {{ e }}u * 32u + lane < RANK;
    b_{{ e }} = select(0.0, b_{{ e }}{{ scaled }} * params.unscale * inverse, is_{{ e }});
{%- if BIASES %}
    s_{{ e }} = select(0.0, s_{{ e }}{{ scaled }}, is_{{ e }});
{%- endif %}
    var x_{{ e }} = select(0.0, start_{{ e }}, is_{{ e }});
    var p_{{ e }} = x_{{ e }};
    var product_{{ e }} = 0.0;
{%- endfor %}
{%- if BIASES %}
    t *= params.unscale * inverse;
{%- endif %}
{%- for e in elements %}
    // b until the first product, then the residual.
    var r_{{ e }} = {% if BIASES %}fma(-t / weight, s_{{ e }}, b_{{ e }}){% else %}b_{{ e }}{% endif %};
{%- endfor %}
    var factor = {{ x_factor }};
    var objective = 0.0;
    var enough = 0.0;
    {{ loads }}
    for (var turn = 0u; turn <= params.steps; turn++) {
{%- for e in elements %}
{%- if INT8 %}{% capture scaled %} * own_scale_{{ e }}{% endcapture %}{% else %}{% assign scaled = '' %}{% endif %}
      {% if forloop.first %}var put = p_0{{ scaled }};{% else %}if (subgroup == {{ e }}u) { put = p_{{ e }}{{ scaled }}; }{% endif %}
{%- endfor %}
      put_vector(thread, put * factor);
      #import parts/tensor-product
      if (turn == 0u) {
{%- for e in elements %}
{%- if INT8 %}{% capture scaled %} * own_scale_{{ e }}{% endcapture %}{% else %}{% assign scaled = '' %}{% endif %}
        let first_{{ e }} = r_{{ e }};
        r_{{ e }} = select(
          0.0,
          r_{{ e }} - fma(shift, x_{{ e }}, product_{{ e }}{{ scaled }} * {{ x_inverse }}),
          is_{{ e }}
        );
        p_{{ e }} = r_{{ e }};
{%- endfor %}
        let begin = subgroupAdd(
          {% for e in elements %}{% unless forloop.first %} + {% endunless %}r_{{ e }} * r_{{ e }}{% endfor %}
        );
        // The objective x^T A x - 2 b^T x, including the bias. Each step lowers it by alpha |r|^2.
        objective = {% if BIASES %}-(t / weight) * t {% endif %}-subgroupAdd(
          {% for e in elements %}{% unless forloop.first %} + {% endunless -%}
          x_{{ e }} * (first_{{ e }} + r_{{ e }}){% endfor %}
        );
        // Below this value of |r|^2, a fraction of the first one, the residual is only rounding error and
        // further steps would have random directions.
        enough = max(begin * RESIDUAL_TOLERANCE, 1e-30);
        factor = {{ p_factor }} * inverseSqrt(max(begin, 1e-30));
        {{ between }}
      } else {
        let unfactor = 1.0 / factor;
{%- for e in elements %}
{%- if INT8 %}{% capture scaled %} * own_scale_{{ e }}{% endcapture %}{% else %}{% assign scaled = '' %}{% endif %}
        let ap_{{ e }} = select(
          0.0,
          fma(shift, p_{{ e }}, product_{{ e }}{{ scaled }} * unfactor),
          is_{{ e }}
        );
{%- endfor %}
        let part = one_of_three(
          thread,
          {% for e in elements %}{% unless forloop.first %} + {% endunless -%}
          vec3f(r_{{ e }} * r_{{ e }}, p_{{ e }} * ap_{{ e }}, ap_{{ e }} * ap_{{ e }}){% endfor %}
        );
        let total = vec3f(subgroupShuffle(part, 0u), subgroupShuffle(part, 2u), subgroupShuffle(part, 1u));
        let alpha = select(0.0, total.x / total.y, total.x > enough && goes_on(total.y));
        let left = max(alpha * alpha * total.z - total.x, 0.0);
        let beta = select(0.0, left / total.x, total.x > enough);
        // If the computed residual almost vanishes, the real one is larger, because of rounding errors. So
        // |r|^2 is taken as at least 1/1000 of its value before the step.
        factor = {{ p_factor }} * inverseSqrt(max(max(left, total.x * 1e-3), 1e-30));
        objective = fma(-alpha, total.x, objective);
{%- for e in elements %}
        x_{{ e }} = fma(alpha, p_{{ e }}, x_{{ e }});
        r_{{ e }} = fma(-alpha, ap_{{ e }}, r_{{ e }});
        p_{{ e }} = fma(beta, p_{{ e }}, r_{{ e }});
{%- endfor %}
      }
    }
{%- if BIASES %}
    let s_x = subgroupAdd(
      {% for e in elements %}{% unless forloop.first %} + {% endunless %}s_{{ e }} * x_{{ e }}{% endfor %}
    );
    let beta_row = (t - s_x) / weight;
{%- endif %}
