// Template: each element of a panel in registers is a variable of its own, so loops over them must be
// unrolled.
//
// A = L L^T stays in the row's first slot, in 16 x 16 tiles (gpu/device/slots.ts). L overwrites A from left to
// right, one panel of 16 columns at a time. While a panel is factorized, each thread keeps the panel's 16
// elements of its rows in registers. b is treated as one more row below A, which becomes y with L y = b. The
// diagonal of L holds the reciprocals 1 / L_cc. Beyond the rank, the diagonal is 1 and everything else 0.

// Rounding error of A, divided by A's largest element and by the square root of f. If the number that
// regularization adds to the diagonal (the shift) is smaller than the rounding error, it is raised to it, so
// that A stays positive definite.
const ROUNDING = 5e-6;

// A column of the diagonal tile of the panel. It is double-buffered, so that one barrier for each column
// suffices.
var<workgroup> column: array<f32, 32>;
var<workgroup> solution: array<vec4f, QUADS>;
// A's largest diagonal element, as bits: for numbers >= 0 the bits have the same order as the numbers, which
// allows an atomic maximum.
var<workgroup> largest: atomic<u32>;
{% if biases %}
// s, the sum of the rows of theta, followed by t, the sum of the ratings.
var<workgroup> ones: array<vec4f, QUADS + 1>;
{% endif %}

#import parts/triangle
#import parts/write-objective
#import parts/finite
#import parts/write-row
#import parts/row-shift
#import parts/cholesky-tiles
#import parts/cholesky-gather

#import parts/main-by-id
{
  {% render 'parts/open-row', biases: biases, objective: true %}
  let base = entry.y * SLOT_QUADS;
  if (thread == 0) {
    atomicStore(&largest, 0);
  }
{% if biases %}
  for (var quad = thread; quad <= QUADS; quad += THREADS) {
    let sum = summed(base, entry.w, BIAS_START + QUADS + quad);
    ones[quad] = select(vec4f(), sum, is_feature(BIAS_START + quad) | vec4<bool>(quad == QUADS));
  }
  workgroupBarrier();
  let weight = weight_of(entry.x, entry.z);
  gather(base, entry.w, 1.0 / weight, thread);
{% else %}
  gather(base, entry.w, 0.0, thread);
{% endif %}
  storageBarrier();
  for (var i = thread; i < RANK; i += THREADS) {
    var element = read_quad(base, row_start(i, i / 16) + i % 16 / 4)[i % 4];
{% if biases %}
    element += ones[i / 4][i % 4] * ones[i / 4][i % 4] / weight;
{% endif %}
    atomicMax(&largest, bitcast<u32>(max(element, 0.0)));
  }
  workgroupBarrier();
  let greatest = bitcast<f32>(atomicLoad(&largest));
  let rounding = ROUNDING * sqrt(f32(RANK)) * greatest;
  let asked = shift_of(entry.x);
  let shift = select(max(asked, rounding), 1.0, asked == 0.0 && greatest == 0.0);
  for (var i = thread; i < STRIDE; i += THREADS) {
    let at = row_start(i, i / 16) + i % 16 / 4;
    var quad = read_quad(base, at);
    quad[i % 4] = select(1.0, quad[i % 4] + shift, i < RANK);
    keep_quad(base, at, quad);
  }
  storageBarrier();

  var bad = false;
  for (var panel = 0u; panel < TILES; panel++) {
{% for k in owned %}
    let row_{{ k }} = 16 * panel + thread + {{ k }} * THREADS;
    let start_{{ k }} = row_start(row_{{ k }}, panel);
{% for quad in (0..3) %}
    var quad_{{ k }}_{{ quad }} = vec4f();
{% endfor %}
    if (row_{{ k }} <= STRIDE) {
{% for quad in (0..3) %}
      quad_{{ k }}_{{ quad }} = read_quad(base, start_{{ k }} + {{ quad }});
{% endfor %}
    }
{% for element in elements %}
    var a_{{ k }}_{{ element.at }} = quad_{{ k }}_{{ element.name }};
{% endfor %}
{% endfor %}
{% for step in elements %}
    if (thread < 16) {
      column[{{ step.buffer }} + thread] = a_0_{{ step.at }};
    }
    workgroupBarrier();
    {
      let pivot = column[{{ step.buffer }} + {{ step.at }}];
      bad = bad || !is_positive(pivot);
      let scale = inverseSqrt(pivot);
{% for k in owned %}
      a_{{ k }}_{{ step.at }} *= scale;
{% endfor %}
{% for other in step.later %}
      let below_{{ other }} = column[{{ step.buffer }} + {{ other }}] * scale;
{% for k in owned %}
      a_{{ k }}_{{ other }} = fma(-a_{{ k }}_{{ step.at }}, below_{{ other }}, a_{{ k }}_{{ other }});
{% endfor %}
{% endfor %}
      a_0_{{ step.at }} = select(a_0_{{ step.at }}, scale, thread == {{ step.at }});
    }
{% endfor %}
{% for k in owned %}
    if (row_{{ k }} <= STRIDE) {
{% for quad in (0..3) %}
      keep_quad(
        base,
        start_{{ k }} + {{ quad }},
        vec4f({% for i in (0..3) %}a_{{ k }}_{{ quad | times: 4 | plus: i }}, {% endfor %})
      );
{% endfor %}
    }
{% endfor %}
    storageBarrier();

    // Updates the rest of the matrix, to the right of the panel: subtracts the products of the panel's
    // columns, from blocks of 4 x 4 elements of A and groups of four elements of b.
    let first = 16 * panel + 16;
    let side = (STRIDE - first) / 4;
    let triangle = side * (side + 1) / 2;
    for (var at = thread; at < triangle + side; at += THREADS) {
      let is_bias = at >= triangle;
      let block = select(triangle_place(at), vec2u(0, at - triangle), is_bias);
      let across = first + 4 * block.y;
      let right = row_start(across, panel);
      if (is_bias) {
        var sum = vec4f();
        for (var quad = 0u; quad < 4; quad++) {
          let y = read_quad(base, BIAS_START + 4 * panel + quad);
          let from_right = right + quad;
          sum += vec4f({% for j in (0..3) %}dot(y, read_quad(base, from_right + 4 * {{ j }})), {% endfor %});
        }
        let kept = BIAS_START + across / 4;
        keep_quad(base, kept, read_quad(base, kept) - sum);
      } else {
        let down = first + 4 * block.x;
        let left = row_start(down, panel);
{% for i in (0..3) %}
        var sum_{{ i }} = vec4f();
{% endfor %}
        for (var quad = 0u; quad < 4; quad++) {
          let from_left = left + quad;
          let from_right = right + quad;
{% for j in (0..3) %}
          let right_{{ j }} = read_quad(base, from_right + 4 * {{ j }});
{% endfor %}
{% for i in (0..3) %}
          let left_{{ i }} = read_quad(base, from_left + 4 * {{ i }});
          sum_{{ i }} += vec4f({% for j in (0..3) %}dot(left_{{ i }}, right_{{ j }}), {% endfor %});
{% endfor %}
        }
        let kept = row_start(down, across / 16) + across % 16 / 4;
{% for i in (0..3) %}
        keep_quad(base, kept + 4 * {{ i }}, read_quad(base, kept + 4 * {{ i }}) - sum_{{ i }});
{% endfor %}
      }
    }
    storageBarrier();
  }

  // Since A x = b, the objective x^T A x - 2 b^T x is -b^T x, which is -|y|^2.
  for (var quad = thread; quad < QUADS; quad += THREADS) {
    let y = read_quad(base, BIAS_START + quad);
    solution[quad].x = dot(y, y);
  }
  workgroupBarrier();
  if (thread == 0) {
    var objective = 0.0;
    for (var quad = 0u; quad < QUADS; quad++) {
      objective -= solution[quad].x;
    }
{% if biases %}
    objective -= ones[QUADS].x / weight * ones[QUADS].x;
{% endif %}
    write_objective(row, objective);
  }
  workgroupBarrier();

  // Solves L^T x = y, from the last panel to the first. Every thread computes all 16 elements of x of a
  // panel, then the threads share the update of the rest of y.
  for (var up = 0u; up < TILES; up++) {
    let panel = TILES - 1 - up;
    let diagonal = tile_start(panel, panel);
{% for quad in (0..3) %}
    var y_{{ quad }} = read_quad(base, BIAS_START + 4 * panel + {{ quad }});
{% endfor %}
{% for step in upwards %}
{% for quad in step.quads %}
    let l_{{ step.at }}_{{ quad }} = read_quad(base, diagonal + 4 * {{ step.at }} + {{ quad }});
{% endfor %}
    let x_{{ step.at }} = y_{{ step.name }} * l_{{ step.at }}_{{ step.name }};
{% for quad in step.quads %}
    y_{{ quad }} = fma(vec4f(-x_{{ step.at }}), l_{{ step.at }}_{{ quad }}, y_{{ quad }});
{% endfor %}
{% endfor %}
    if (thread == 0) {
{% for quad in (0..3) %}
      solution[4 * panel + {{ quad }}] = vec4f(
        {% for i in (0..3) %}x_{{ quad | times: 4 | plus: i }}, {% endfor %}
      );
{% endfor %}
    }
    for (var quad = thread; quad < 4 * panel; quad += THREADS) {
      var y = read_quad(base, BIAS_START + quad);
      let left = tile_start(panel, quad / 4);
{% for step in upwards %}
      y = fma(
        vec4f(-x_{{ step.at }}),
        read_quad(base, left + 4 * {{ step.at }} + quad % 4),
        y
      );
{% endfor %}
      keep_quad(base, BIAS_START + quad, y);
    }
    storageBarrier();
  }

  workgroupBarrier();
{% if biases %}
  if (thread == 0) {
    var along = 0.0;
    for (var quad = 0u; quad < QUADS; quad++) {
      along += dot(ones[quad], solution[quad]);
    }
    bias[row] = (ones[QUADS].x - along) / weight;
  }
{% endif %}
  for (var quad = thread; quad < QUADS; quad += THREADS) {
    bad = !write_quad(row, quad, solution[quad]) || bad;
  }
  if (bad) {
    atomicMin(&status[0], row);
  }
}
