// Template: a thread keeps a block of A in registers, so loops over its elements must be unrolled.
//
// A row has LANES threads, and ROWS rows share a workgroup. Each thread has one block of 8 x 8 elements of the
// lower triangle of A. Blocks are numbered from left to right, and from top to bottom in a column of blocks,
// so that whole subgroups are done when their columns are.
//
// L overwrites A from left to right, 8 columns (a panel) at a time, with two barriers a panel:
//
// | threads with | then |
// |---|---|
// | the block on the diagonal | factorize it, and solve L y = b for the panel's elements of b |
// | a block below it | multiply it by the inverse of the diagonal block's transpose; subtract L y from b |
// | a block to the right of the panel | subtract the product of two blocks of the panel |
//
// A block on the diagonal of L holds the reciprocals 1 / L_cc. Beyond the rank, the diagonal of A is 1 and
// everything else 0.

// Rounding error of A, divided by A's largest element and by the square root of f. If the number that
// regularization adds to the diagonal (the shift) is smaller than the rounding error, it is raised to it, so
// that A stays positive definite.
const ROUNDING = 5e-6;

// The panel's blocks of L by columns: for each column the first four elements of all blocks, then the others.
// So threads with neighbouring blocks read from different banks.
var<workgroup> panel_of_l: array<vec4f, ROWS * 16 * SIDE>;
// The block on the diagonal, by columns.
var<workgroup> corner_of_l: array<vec4f, ROWS * 16>;
// b, then y with L y = b, then x.
var<workgroup> solution: array<vec4f, ROWS * 2 * SIDE>;
// Squares of y, by panel.
var<workgroup> squares: array<f32, ROWS * SIDE>;
// A's largest diagonal element, as bits: for numbers >= 0 the bits have the same order as the numbers, which
// allows an atomic maximum.
var<workgroup> largest: array<atomic<u32>, ROWS>;
{% if biases %}
// s, the sum of the rows of theta, followed by t, the sum of the ratings.
var<workgroup> ones: array<vec4f, ROWS * ONES>;
{% endif %}

#import parts/triangle
#import parts/write-objective
#import parts/finite
#import parts/write-row
#import parts/row-shift

// Adds a row's slots at `at`, with features beyond the rank set to 0.
fn vector_quad(base: u32, slot_count: u32, at: u32, quad: u32) -> vec4f {
  var sum = vec4f();
  for (var slot = 0u; slot < slot_count; slot++) {
    sum += slots[base + slot * SLOT_QUADS + at + quad];
  }
  return select(vec4f(), sum, vec4u(4 * quad) + vec4u(0, 1, 2, 3) < vec4u(RANK));
}

#import parts/main-by-id
{
  let batch = thread / LANES;
  let lane = thread % LANES;
  let number = (id.y * size.x + id.x) * ROWS + batch;
  let exists = number < params.count;
  // Entry: row, first slot, n, number of slots.
  var entry = vec4u();
  if (exists) {
    entry = work[number];
  }
  let row = entry.x;
  let rated = entry.z > 0;
  let base = entry.y * SLOT_QUADS;
  let slot_count = select(0u, entry.w, rated);

  let turned = triangle_place(BLOCKS - 1 - min(lane, BLOCKS - 1));
  let down = SIDE - 1 - turned.y;
  let across = SIDE - 1 - turned.x;
  let on_diagonal = down == across && lane < BLOCKS;
  // Where the row's shares of workgroup memory begin.
  let panel_start = batch * 16 * SIDE;
  let corner_start = batch * 16;
  let solution_start = batch * 2 * SIDE;

  if (lane == 0) {
    atomicStore(&largest[batch], 0);
  }
  for (var quad = lane; quad < 2 * SIDE; quad += LANES) {
    solution[solution_start + quad] = vector_quad(base, slot_count, BIAS_START, quad);
{% if biases %}
    ones[batch * ONES + quad] = vector_quad(base, slot_count, BIAS_START + QUADS, quad);
{% endif %}
  }
{% if biases %}
  if (lane == 0) {
    var sum = 0.0;
    for (var slot = 0u; slot < slot_count; slot++) {
      sum += slots[base + slot * SLOT_QUADS + BIAS_START + 2 * QUADS].x;
    }
    ones[batch * ONES + ONES - 1] = vec4f(sum);
  }
{% endif %}

{% render 'parts/read-block', columns: columns, outside: outside %}
  workgroupBarrier();
  if (on_diagonal) {
    var most = 0.0;
{% for c in columns %}
    most = max(most, a_{{ c.at }}_{{ c.name }});
{% endfor %}
    atomicMax(&largest[batch], bitcast<u32>(most));
  }
{% if biases %}
  let weight = weight_of(row, entry.z);
  let total = ones[batch * ONES + ONES - 1].x;
  {
    let s = batch * ONES;
    let left_0 = ones[s + 2 * down];
    let left_1 = ones[s + 2 * down + 1];
    let right_0 = ones[s + 2 * across] / weight;
    let right_1 = ones[s + 2 * across + 1] / weight;
{% for c in columns %}
    a_{{ c.at }}_0 = fma(left_0, vec4f(-right_{{ c.name }}), a_{{ c.at }}_0);
    a_{{ c.at }}_1 = fma(left_1, vec4f(-right_{{ c.name }}), a_{{ c.at }}_1);
{% endfor %}
  }
  for (var quad = lane; quad < 2 * SIDE; quad += LANES) {
    let own = ones[batch * ONES + quad];
    solution[solution_start + quad] = fma(own, vec4f(-total / weight), solution[solution_start + quad]);
  }
{% endif %}
  workgroupBarrier();
  if (on_diagonal) {
    let greatest = bitcast<f32>(atomicLoad(&largest[batch]));
    let rounding = ROUNDING * sqrt(f32(RANK)) * greatest;
    var asked = 0.0;
    if (rated) {
      asked = shift_of(row);
    }
    let shift = select(max(asked, rounding), 1.0, asked == 0.0 && greatest == 0.0);
{% for c in columns %}
    a_{{ c.at }}_{{ c.name }} += shift;
{% endfor %}
{% if OUTSIDE > 0 %}
    if (down == SIDE - 1) {
{% for c in outside %}
      a_{{ c.at }}_{{ c.name }} = 1.0;
{% endfor %}
    }
{% endif %}
  }

  var bad = false;
  for (var panel = 0u; panel < SIDE; panel++) {
    if (on_diagonal && across == panel) {
      var y_0 = solution[solution_start + 2 * panel];
      var y_1 = solution[solution_start + 2 * panel + 1];
{% for c in columns %}
      {
        let pivot = a_{{ c.at }}_{{ c.name }};
        bad = bad || !is_positive(pivot);
        let scale = inverseSqrt(pivot);
        a_{{ c.at }}_{{ c.name }} = scale;
        y_{{ c.name }} *= scale;
{% for r in c.later %}
        let l_{{ r.at }} = a_{{ c.at }}_{{ r.name }} * scale;
        a_{{ c.at }}_{{ r.name }} = l_{{ r.at }};
        y_{{ r.name }} = fma(-l_{{ r.at }}, y_{{ c.name }}, y_{{ r.name }});
{% for k in r.between %}
        a_{{ k }}_{{ r.name }} = fma(-l_{{ r.at }}, l_{{ k }}, a_{{ k }}_{{ r.name }});
{% endfor %}
{% endfor %}
      }
{% endfor %}
{% for c in columns %}
{% if c.at < 4 %}
      corner_of_l[corner_start + {{ c.at | times: 2 }}] = a_{{ c.at }}_0;
{% endif %}
      corner_of_l[corner_start + {{ c.at | times: 2 | plus: 1 }}] = a_{{ c.at }}_1;
{% endfor %}
      solution[solution_start + 2 * panel] = y_0;
      solution[solution_start + 2 * panel + 1] = y_1;
      squares[batch * SIDE + panel] = dot(y_0, y_0) + dot(y_1, y_1);
    }
    workgroupBarrier();
    if (across == panel && down > panel && lane < BLOCKS) {
      let y_0 = solution[solution_start + 2 * panel];
      let y_1 = solution[solution_start + 2 * panel + 1];
      var b_0 = solution[solution_start + 2 * down];
      var b_1 = solution[solution_start + 2 * down + 1];
{% for c in columns %}
      {
{% if c.at < 4 %}
        let l_0 = corner_of_l[corner_start + {{ c.at | times: 2 }}];
{% endif %}
        let l_1 = corner_of_l[corner_start + {{ c.at | times: 2 | plus: 1 }}];
        a_{{ c.at }}_0 *= l_{{ c.name }};
        a_{{ c.at }}_1 *= l_{{ c.name }};
{% for r in c.later %}
        a_{{ r.at }}_0 = fma(a_{{ c.at }}_0, vec4f(-l_{{ r.name }}), a_{{ r.at }}_0);
        a_{{ r.at }}_1 = fma(a_{{ c.at }}_1, vec4f(-l_{{ r.name }}), a_{{ r.at }}_1);
{% endfor %}
        b_0 = fma(a_{{ c.at }}_0, vec4f(-y_{{ c.name }}), b_0);
        b_1 = fma(a_{{ c.at }}_1, vec4f(-y_{{ c.name }}), b_1);
        panel_of_l[panel_start + {{ c.at | times: 2 }} * SIDE + down] = a_{{ c.at }}_0;
        panel_of_l[panel_start + {{ c.at | times: 2 | plus: 1 }} * SIDE + down] = a_{{ c.at }}_1;
      }
{% endfor %}
      solution[solution_start + 2 * down] = b_0;
      solution[solution_start + 2 * down + 1] = b_1;
    }
    workgroupBarrier();
    if (across > panel) {
      for (var k = 0u; k < 8; k++) {
        let at = panel_start + 2 * k * SIDE;
        let left_0 = panel_of_l[at + down];
        let left_1 = panel_of_l[at + SIDE + down];
        let right_0 = panel_of_l[at + across];
        let right_1 = panel_of_l[at + SIDE + across];
{% for c in columns %}
        a_{{ c.at }}_0 = fma(left_0, vec4f(-right_{{ c.name }}), a_{{ c.at }}_0);
        a_{{ c.at }}_1 = fma(left_1, vec4f(-right_{{ c.name }}), a_{{ c.at }}_1);
{% endfor %}
      }
    }
  }

  // Since A x = b, the objective x^T A x - 2 b^T x is -b^T x, which is -|y|^2.
  if (exists && lane == 0) {
    var objective = 0.0;
    for (var panel = 0u; panel < SIDE; panel++) {
      objective -= squares[batch * SIDE + panel];
    }
{% if biases %}
    objective -= total / weight * total;
{% endif %}
    write_objective(row, select(0.0, objective, rated));
  }

  // Solves L^T x = y, from the last panel to the first.
  for (var up = 0u; up < SIDE; up++) {
    let panel = SIDE - 1 - up;
    if (on_diagonal && across == panel) {
      var y_0 = solution[solution_start + 2 * panel];
      var y_1 = solution[solution_start + 2 * panel + 1];
{% for r in upwards %}
      y_{{ r.name }} *= a_{{ r.at }}_{{ r.name }};
{% for c in r.before %}
      y_{{ c.name }} = fma(-a_{{ c.at }}_{{ r.name }}, y_{{ r.name }}, y_{{ c.name }});
{% endfor %}
{% endfor %}
      solution[solution_start + 2 * panel] = y_0;
      solution[solution_start + 2 * panel + 1] = y_1;
    }
    workgroupBarrier();
    if (down == panel && across < panel) {
      let x_0 = solution[solution_start + 2 * panel];
      let x_1 = solution[solution_start + 2 * panel + 1];
{% for half in (0..1) %}
      solution[solution_start + 2 * across + {{ half }}] -= vec4f(
{% for i in (0..3) %}
        dot(a_{{ half | times: 4 | plus: i }}_0, x_0) + dot(a_{{ half | times: 4 | plus: i }}_1, x_1),
{% endfor %}
      );
{% endfor %}
    }
    workgroupBarrier();
  }

{% if biases %}
  if (exists && lane == 0) {
    var along = 0.0;
    for (var quad = 0u; quad < 2 * SIDE; quad++) {
      along += dot(ones[batch * ONES + quad], solution[solution_start + quad]);
    }
    bias[row] = select(0.0, (total - along) / weight, rated);
  }
{% endif %}
  if (exists) {
    for (var quad = lane; quad < QUADS; quad += LANES) {
      let x = solution[solution_start + min(quad, 2 * SIDE - 1)];
      bad = !write_quad(row, quad, select(vec4f(), x, rated && quad < 2 * SIDE)) || bad;
    }
    if (bad && rated) {
      atomicMin(&status[0], row);
    }
  }
}
