// Template: products of four ratings are separate variables in registers, so loops over them must be
// unrolled.
//
// A team of four threads has STEPS * 4 consecutive ratings, of one or several rows, and computes four ratings
// at a time. Each thread computes a quarter of the features of all four products. The threads exchange these
// quarters through workgroup memory, after which each of them has the error of one rating.
{%- if HALF %}
// The factors of columns are read in float16. With HELD, a row's factors stay in registers from one group of
// four ratings to the next if these are all of that row; at larger ranks they do not fit.
{%- endif %}

// The quarters of the products. They are double-buffered, so that one barrier for each step suffices. Lines
// of THREADS + 1 numbers avoid bank conflicts both when they are written and when they are read.
const PITCH = THREADS + 1;
var<workgroup> quarters: array<f32, 2 * 4 * PITCH>;

#import parts/row-of-rating

{% if HALF %}
// Adds the products of eight features, float16 in `theta` and float32 in `low` and `high`, to four partial
// sums.
fn times(theta: vec4u, low: vec4f, high: vec4f, sum: vec4f) -> vec4f {
  return fma(
    vec4f(unpack2x16float(theta.x), unpack2x16float(theta.y)),
    low,
    fma(vec4f(unpack2x16float(theta.z), unpack2x16float(theta.w)), high, sum)
  );
}
{% endif %}
#import parts/main
{
  let number = group.y * groups.x + group.x;
  if (number * THREADS * STEPS >= params.last - params.origin) {
    return;
  }
  let lane = thread % 4;
  var rating = params.origin + (number * THREADS + thread - lane) * STEPS;
  var row = row_of(clamp(rating, params.first, params.last - 1));
  var row_end = u32(row_pointers[row + 1]);
  var squared = 0.0;
  var absolute = 0.0;
{%- if HELD %}
  var held = 0xffffffffu;
{%- for part in parts %}
  var low{{ part }} = vec4f();
  var high{{ part }} = vec4f();
{%- endfor %}
{%- endif %}
  for (var step = 0u; step < STEPS; step++) {
    // Threads after the last rating compute the last rating again and discard its error, since all threads
    // must reach the barrier.
    let four = indices[min(rating, params.last - 1) / 4];
    {%- for i in (0..3) %}
    let rating{{ i }} = clamp(rating + {{ i }}, params.first, params.last - 1);
    while (rating{{ i }} >= row_end) {
      row++;
      row_end = u32(row_pointers[row + 1]);
    }
    let row{{ i }} = row;
    let column{{ i }} = select(0u, four[{{ i }}], rating{{ i }} == rating + {{ i }});
    {%- unless HALF %}
    let x{{ i }} = row{{ i }} * QUADS + lane;
    let theta{{ i }} = column{{ i }} * QUADS + lane;
    {%- endunless %}
    var product{{ i }} = vec4f();
    {%- endfor %}
    {%- if HALF %}
    {%- if HELD %}
    if (row0 == row3) {
      if (row0 != held) {
        held = row0;
        {%- for part in parts %}
        {% if forloop.last and RAGGED %}if (lane < {{ CHUNKS | minus: part }}) {% endif %}{
          low{{ part }} = row_factors[row0 * QUADS + (lane + {{ part }}) * 2];
          high{{ part }} = row_factors[row0 * QUADS + (lane + {{ part }}) * 2 + 1];
        }
        {%- endfor %}
      }
      {%- for i in (0..3) %}
      {%- for part in parts %}
      let theta{{ i }}_{{ part }} = column_factors[column{{ i }} * CHUNKS + {% if forloop.last and RAGGED %}min(lane + {{ part }}, CHUNKS - 1){% else %}lane + {{ part }}{% endif %}];
      {%- endfor %}
      {%- endfor %}
      {%- for i in (0..3) %}
      {%- for part in parts %}
      product{{ i }} = times(theta{{ i }}_{{ part }}, low{{ part }}, high{{ part }}, product{{ i }});
      {%- endfor %}
      {%- endfor %}
    } else
    {%- endif %} {
      for (var chunk = lane; chunk < CHUNKS; chunk += 4) {
        {%- for i in (0..3) %}
        product{{ i }} = times(
          column_factors[column{{ i }} * CHUNKS + chunk],
          row_factors[row{{ i }} * QUADS + chunk * 2],
          row_factors[row{{ i }} * QUADS + chunk * 2 + 1],
          product{{ i }}
        );
        {%- endfor %}
      }
    }
    {%- else %}
    {%- for part in parts %}
    {%- for i in (0..3) %}
    product{{ i }} = fma(
      row_factors[x{{ i }} + {{ part }}],
      column_factors[theta{{ i }} + {{ part }}],
      product{{ i }}
    );
    {%- endfor %}
    {%- endfor %}
    {%- endif %}
    let at = (step % 2) * 4 * PITCH;
    {%- for i in (0..3) %}
    quarters[at + {{ i }} * PITCH + thread] = (product{{ i }}.x + product{{ i }}.y)
      + (product{{ i }}.z + product{{ i }}.w);
    {%- endfor %}
    workgroupBarrier();
    let own = rating + lane;
    if (own >= params.first && own < params.last) {
      let mine = at + lane * PITCH + (thread - lane);
      var predicted = (quarters[mine] + quarters[mine + 1]) + (quarters[mine + 2] + quarters[mine + 3]);
      if (BIASED) {
        let own_row = select(select(row0, row1, lane == 1), select(row2, row3, lane == 3), lane >= 2);
        predicted += params.base + row_bias[own_row] + column_bias[four[lane]];
      }
      let error = values[own] - predicted;
      squared = fma(error, error, squared);
      absolute += abs(error);
    }
    rating += 4;
  }
  workgroupBarrier();
  quarters[thread] = squared;
  quarters[THREADS + thread] = absolute;
  for (var half = THREADS / 2; half > 0; half /= 2) {
    workgroupBarrier();
    if (thread < half) {
      quarters[thread] += quarters[thread + half];
      quarters[THREADS + thread] += quarters[THREADS + thread + half];
    }
  }
  if (thread == 0) {
    sums[number] = vec2f(quarters[0], quarters[THREADS]);
  }
}
