{%- comment -%}
The step of one rating (cuMF_SGD, section 2.2): p_* become the row's factors and n_* the column's, from p_* and q_*. With AdaGrad the
sums of squared gradients are {{ row_sum }} and {{ column_sum }}.
{%- endcomment %}
    var product = {% for v in vectors %}{% unless forloop.first %} + {% endunless %}dot(p_{{ v }}, q_{{ v }}){% endfor %};
{%- if ADAPTIVE %}
    var squares = vec2f({% for v in vectors %}{% unless forloop.first %} + {% endunless %}dot(p_{{ v }}, p_{{ v }}){% endfor %}, {% for v in vectors %}{% unless forloop.first %} + {% endunless %}dot(q_{{ v }}, q_{{ v }}){% endfor %});
{%- endif %}
{%- for distance in distances %}
    product += subgroupShuffleXor(product, {{ distance }}u);
{%- if ADAPTIVE %}
    squares += subgroupShuffleXor(squares, {{ distance }}u);
{%- endif %}
{%- endfor %}
    let error = rating - product;
{%- if ADAPTIVE %}
    let row_sum = {{ row_sum }};
    let column_sum = {{ column_sum }};
    let row_rate = params.rate * inverseSqrt(1.0 + row_sum);
    let column_rate = params.rate * inverseSqrt(1.0 + column_sum);
    // Mean squares of e q - lambda p and e p - lambda q over the features.
    let row_growth = (error * error * squares.y - 2.0 * error * params.row_lambda * product + params.row_lambda * params.row_lambda * squares.x) / f32(FEATURES);
    let column_growth = (error * error * squares.x - 2.0 * error * params.column_lambda * product + params.column_lambda * params.column_lambda * squares.y) / f32(FEATURES);
{%- if row_sum == 'kept_sum' %}
    kept_sum = row_sum + row_growth;
{%- else %}
    if (lane == 0u) { {{ row_sum }} = row_sum + row_growth; }
{%- endif %}
    if (lane == 0u) { {{ column_sum }} = column_sum + column_growth; }
{%- else %}
    let row_rate = params.rate;
    let column_rate = params.rate;
{%- endif %}
    let row_keep = 1.0 - row_rate * params.row_lambda;
    let column_keep = 1.0 - column_rate * params.column_lambda;
{%- for v in vectors %}
    var n_{{ v }} = fma(vec4f(column_rate * error), p_{{ v }}, column_keep * q_{{ v }});
    p_{{ v }} = fma(vec4f(row_rate * error), q_{{ v }}, row_keep * p_{{ v }});
{%- endfor %}
{%- if BIASES %}
    // The 1s beside the biases stay.
    if (lane == 0u) {
      p_0.y = 1.0;
      n_0.x = 1.0;
    }
{%- endif %}
