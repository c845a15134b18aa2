#part sgd-advance
// Template: the including shader names the variables to fill.
{%- comment -%}
Reads the next GROUP ratings of a team of threads, into {{ into }}, and moves the team's position `walk` on. A
team takes one batch of ratings after the other. In a batch it starts at some rating, continues from the end
to the beginning, and stops after `left` ratings. Entries after the last rating of a batch, and after the last
batch, are NO_RATING.
{%- endcomment %}
{%- for slot in slots %}
    {{ into }}_{{ slot }} = NO_RATING;
{%- endfor %}
    if (walk.left > 0u) {
{%- for slot in slots %}
      {
        let place = {% if SPREAD %}lane % 4u{% else %}{{ slot }}u{% endif %};
        var index = walk.at + place;
        if (index >= walk.end) { index -= walk.end - walk.first; }
        if (place < walk.left) { {{ into }}_{{ slot }} = ratings[index]; }
      }
{%- endfor %}
      if (walk.left > GROUP) {
        walk.left -= GROUP;
        walk.at += GROUP;
        if (walk.at >= walk.end) { walk.at -= walk.end - walk.first; }
      } else {
        walk = begin_batch(walk.batch + THREADS / LANES, first, count, number);
      }
    }

#part sgd-step
// Template: loops are unrolled, and types depend on the precision.
{%- comment -%}
One step of SGD for one rating (cuMF_SGD, section 2.2). Inputs: the row's factors p_*, the column's factors
q_*, and `rating`. Outputs: the row's new factors in p_*, the column's in n_*. With AdaGrad, {{ row_sum }} and
{{ column_sum }} are the row's and the column's sums of squared gradients.
{%- endcomment %}
    var product = {{ step.pq }};
{%- if ADAPTIVE %}
    var squares = vec2f({{ step.pp }}, {{ step.qq }});
    // Only lane 0 reads and writes these sums, so no barrier is needed.
    var sums = vec2f();
    if (lane == 0u) { sums = vec2f({{ row_sum }}, {{ column_sum }}); }
{%- if BIASES %}
    var biases = vec2f();
    if (lane == 0u) { biases = vec2f(f32(p_0.x), f32(q_0.y)); }
{%- endif %}
{%- endif %}
{%- for distance in step.distances %}
    product += subgroupShuffleXor(product, {{ distance }}u);
{%- if ADAPTIVE %}
    squares += subgroupShuffleXor(squares, {{ distance }}u);
    sums += subgroupShuffleXor(sums, {{ distance }}u);
{%- if BIASES %}
    biases += subgroupShuffleXor(biases, {{ distance }}u);
{%- endif %}
{%- endif %}
{%- endfor %}
    let error = rating - product;
{%- if ADAPTIVE %}
    let row_rate = params.rate * inverseSqrt(1.0 + sums.x);
    let column_rate = params.rate * inverseSqrt(1.0 + sums.y);
    // The squares of the gradients e q - lambda p and e p - lambda q, summed over the features. With biases,
    // the constant 1s in the factors are left out.
    var row_growth = error * error * squares.y - 2.0 * error * params.row_lambda * product
      + params.row_lambda * params.row_lambda * squares.x;
    var column_growth = error * error * squares.x - 2.0 * error * params.column_lambda * product
      + params.column_lambda * params.column_lambda * squares.y;
{%- if BIASES %}
    row_growth -= (error * biases.y - params.row_lambda) * (error * biases.y - params.row_lambda);
    column_growth -= (error * biases.x - params.column_lambda) * (error * biases.x - params.column_lambda);
{%- endif %}
    let row_total = sums.x + row_growth / f32(TRAINED);
    let column_total = sums.y + column_growth / f32(TRAINED);
{%- if row_sum == 'kept_sum' %}
    kept_sum = row_total;
{%- else %}
    if (lane == 0u) { {{ row_sum }} = row_total; }
{%- endif %}
    if (lane == 0u) { {{ column_sum }} = column_total; }
{%- else %}
    let row_rate = params.rate;
    let column_rate = params.rate;
{%- endif %}
{%- if HALVES %}
    let half_error = vec2<f16>(f16(error));
    let half_row_rate = vec2<f16>(f16(row_rate));
    let half_column_rate = vec2<f16>(f16(column_rate));
    let half_row_lambda = vec2<f16>(f16(-params.row_lambda));
    let half_column_lambda = vec2<f16>(f16(-params.column_lambda));
{%- for v in step.vectors %}
    var n_{{ v.name }} = fma(
      half_column_rate,
      fma(half_error, p_{{ v.name }}, half_column_lambda * q_{{ v.name }}),
      q_{{ v.name }}
    );
    p_{{ v.name }} = fma(
      half_row_rate,
      fma(half_error, q_{{ v.name }}, half_row_lambda * p_{{ v.name }}),
      p_{{ v.name }}
    );
{%- endfor %}
{%- else %}
    let row_keep = 1.0 - row_rate * params.row_lambda;
    let column_keep = 1.0 - column_rate * params.column_lambda;
{%- for v in step.vectors %}
    var n_{{ v.name }} = fma({{ v.type }}(column_rate * error), p_{{ v.name }}, column_keep * q_{{ v.name }});
    p_{{ v.name }} = fma({{ v.type }}(row_rate * error), q_{{ v.name }}, row_keep * p_{{ v.name }});
{%- endfor %}
{%- endif %}
{%- if BIASES %}
    // The constant 1s of the biases do not change.
{%- if step.swapped %}
    if (lane_even == 0u) {
      p_0.y = {{ step.scalar }}(1.0);
      n_0.x = {{ step.scalar }}(1.0);
    }
    if (lane_even == LANES) {
      p_{{ step.swapped }}.y = {{ step.scalar }}(1.0);
      n_{{ step.swapped }}.x = {{ step.scalar }}(1.0);
    }
{%- else %}
    if (lane == 0u) {
      p_0.y = {{ step.scalar }}(1.0);
      n_0.x = {{ step.scalar }}(1.0);
    }
{%- endif %}
{%- endif %}
