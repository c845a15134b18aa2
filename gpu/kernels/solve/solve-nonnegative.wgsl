// Non-negative least squares of one row, min (1/2) x^T A x - b^T x over x >= 0, a workgroup a row: block principal pivoting (Kim and Park,
// Fast nonnegative matrix factorization, SIAM J. Sci. Comput. 33, 2011) on swept matrices.
//
// Sweeping feature k moves it into the passive set P, on which x may differ from 0, or out of it again. With P swept the matrix holds -inverse(A_PP), and
// the right side y holds x on P and b - A x elsewhere, so that a step reads the signs of y, and each feature on the wrong side costs
// one sweep of f^2 operations. The threads keep the lower triangle in groups of four elements (slots.ts) and pass the pivot's column on through workgroup
// memory. In the end x is compared with A itself, and improved by the inverse where sweeps have lost digits.
struct Params {
  count: u32,
  lambda: f32,
  exponent: f32,
  offset: f32,
  damping: f32,
  bias_lambda: f32,
  // Rounding errors of A over its largest element and the root of f: a smaller shift is raised to that, so that A stays definite.
  rounding: f32,
}

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> work: array<vec4u>;
@group(0) @binding(2) var<storage, read_write> slots: array<vec4f>;
@group(0) @binding(3) var<storage, read> previous: array<f32>;
@group(0) @binding(4) var<storage, read_write> factors: array<vec4f>;
@group(0) @binding(5) var<storage, read_write> half: array<vec2u>;
@group(0) @binding(6) var<storage, read_write> bias: array<f32>;
@group(0) @binding(7) var<storage, read_write> status: atomic<u32>;

// Limits over |b| of a feature's gradient: where it is taken for 0, and where the row counts as solved when no step improves it.
const TOLERANCE = 1e-5;
const LARGEST_GRADIENT = 1e-4;
// The part of |b| that may be left of A x - b on P.
const RESIDUAL = 5e-6;
// A pivot below this part of its diagonal element is rounding error: the feature depends on those in P, and stays out.
const DEPENDENT = 2.4e-7;
// Steps without fewer features of the wrong sign than ever before; then they change sides one at a time.
const PATIENCE = 3;
const MOST_STEPS = 10 * RANK + 100;

const SWEEP = 0u;
const VERIFY = 1u;
const CORRECT = 2u;
const DONE = 3u;
const FAILED = 4u;

// A column of the swept matrix and the pivot's element of y, two in turn, so that one barrier a sweep suffices.
// One more is read where a group does not exist.
var<workgroup> column: array<vec4f, 2 * QUADS + 1>;
var<workgroup> along: array<f32, 2>;
var<workgroup> solution: array<vec4f, QUADS>;
var<workgroup> shares: array<f32, LANES * STRIDE>;
var<workgroup> diagonal: array<f32, STRIDE>;
// Bits by feature: P, the features that change sides next, and those found on the wrong side.
var<workgroup> passive: array<u32, WORDS>;
var<workgroup> turning: array<u32, WORDS>;
var<workgroup> misplaced: array<atomic<u32>, WORDS>;
// 1 where A x - b is too large on P, 2 where a gradient forbids to end.
var<workgroup> remarks: atomic<u32>;
var<workgroup> stage: u32;
// The bits of A's largest element, which order as the numbers do.
var<workgroup> largest: atomic<u32>;
{% if biases %}
// s, and t behind it.
var<workgroup> ones: array<vec4f, QUADS + 1>;
{% endif %}

{% render 'parts/triangle' %}
{% render 'parts/finite' %}
{% render 'parts/write-row', half: half %}
{% render 'parts/row-shift', BIASES: biases %}

// Row and group of four columns of the group at `at` of a slot; behind the last one those behind the last.
fn place_of(at: u32) -> vec2u {
  let tile = triangle_place(at / 64);
  let place = vec2u(16 * tile.x + at % 64 / 4, 4 * tile.y + at % 4);
  return select(vec2u(STRIDE, QUADS), place, vec2<bool>(at < BIAS_START));
}

fn columns_of(quad: u32) -> vec4u {
  return vec4u(4 * quad) + vec4u(0, 1, 2, 3);
}

fn is_feature(quad: u32) -> vec4<bool> {
  return columns_of(quad) < vec4u(RANK);
}

// An element of a group: an index would move the group from registers to memory.
fn element(group: vec4f, at: u32) -> f32 {
  return select(select(group.x, group.y, at == 1), select(group.z, group.w, at == 3), at >= 2);
}

fn summed(base: u32, slot_count: u32, at: u32) -> vec4f {
  var sum = slots[base + at];
  for (var slot = 1u; slot < slot_count; slot++) {
    sum += slots[base + slot * SLOT_QUADS + at];
  }
  return sum;
}

// A group of A, summed over the slots in their order, without the row's bias.
fn gathered(base: u32, slot_count: u32, at: u32, place: vec2u, weight: f32) -> vec4f {
  if (at >= BIAS_START) {
    return vec4f();
  }
  var sum = summed(base, slot_count, at);
{% if biases %}
  sum -= ones[place.y] * (ones[place.x / 4][place.x % 4] / weight);
{% endif %}
  return select(vec4f(), sum, is_feature(place.y) & vec4<bool>(place.x < RANK));
}

fn remember_largest(group: vec4f, place: vec2u) {
  if (place.x / 4 == place.y) {
    atomicMax(&largest, bitcast<u32>(max(element(group, place.x % 4), 0.0)));
  }
}

// The group with the shift on the diagonal, which takes its place in the first slot.
fn shifted(base: u32, at: u32, group: vec4f, place: vec2u, shift: f32) -> vec4f {
  if (at >= BIAS_START) {
    return group;
  }
  var result = group;
  if (place.x / 4 == place.y) {
    result += select(vec4f(), vec4f(shift), (columns_of(place.y) == vec4u(place.x)) & vec4<bool>(place.x < RANK));
    diagonal[place.x] = element(result, place.x % 4);
  }
  slots[base + at] = result;
  return result;
}

// Columns 4 quad .. 4 quad + 3 of row i of A.
fn matrix_quad(base: u32, i: u32, quad: u32) -> vec4f {
  let own = i / 16;
  let tile = quad / 4;
  if (tile <= own) {
    return slots[base + (own * (own + 1) / 2 + tile) * 64 + i % 16 * 4 + quad % 4];
  }
  let at = base + (tile * (tile + 1) / 2 + own) * 64 + quad % 4 * 16 + i % 16 / 4;
  let c = i % 4;
  return vec4f(slots[at][c], slots[at + 4][c], slots[at + 8][c], slots[at + 12][c]);
}

// Puts what a group has of column k at `start`: as row k of the triangle up to its tile, below as a column.
fn pass_on(group: vec4f, place: vec2u, k: u32, start: u32) {
  if (place.x == k) {
    column[start + place.y] = group;
  } else if (place.y == k / 4 && place.x / 16 > k / 16) {
    column[start + place.x / 4][place.x % 4] = element(group, k % 4);
  }
}

// A group after the sweep of k; `inverse` is that of the pivot, and `sign` 1 for a sweep into P and -1 for one out of it.
fn swept(group: vec4f, place: vec2u, k: u32, start: u32, inverse: f32, sign: f32) -> vec4f {
  let down = inverse * column[start + place.x / 4][place.x % 4];
  let across = column[start + place.y];
  var result = fma(vec4f(-down), across, group);
  // Few groups are of the pivot's row or column.
  if (place.x == k || place.y == k / 4) {
    result = select(result, sign * inverse * across, vec4<bool>(place.x == k));
    result = select(result, vec4f(select(sign * down, -inverse, place.x == k)), columns_of(place.y) == vec4u(k));
  }
  return result;
}

fn is_passive(i: u32) -> bool {
  return ((passive[i / 32] >> (i % 32)) & 1) == 1;
}

// Notes features on the wrong side, as a number that is not finite always is, and gradients that forbid to end.
fn judge(i: u32, y: f32, length: f32) {
  let lost = !is_finite(y);
  if (lost || select(y > TOLERANCE * length, y < 0.0, is_passive(i))) {
    atomicOr(&misplaced[i / 32], 1u << (i % 32));
    if (lost || (!is_passive(i) && y > LARGEST_GRADIENT * length)) {
      atomicOr(&remarks, 2u);
    }
  }
}

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) id: vec3u, @builtin(num_workgroups) size: vec3u, @builtin(local_invocation_index) thread: u32) {
  let number = id.y * size.x + id.x;
  if (number >= params.count) {
    return;
  }
  // Entry: row, first slot, n, slots.
  let entry = work[number];
  let row = entry.x;
  if (entry.z == 0) {
    for (var quad = thread; quad < QUADS; quad += THREADS) {
      _ = write_quad(row, quad, vec4f());
    }
{% if biases %}
    if (thread == 0) {
      bias[row] = 0.0;
    }
{% endif %}
    return;
  }
  let base = entry.y * SLOT_QUADS;
  if (thread == 0) {
    atomicStore(&largest, 0);
    atomicStore(&remarks, 0);
    stage = SWEEP;
  }
  if (thread < WORDS) {
    passive[thread] = 0;
    atomicStore(&misplaced[thread], 0);
  }
{% if biases %}
  for (var quad = thread; quad <= QUADS; quad += THREADS) {
    let sum = summed(base, entry.w, BIAS_START + QUADS + quad);
    ones[quad] = select(vec4f(), sum, is_feature(quad) | vec4<bool>(quad == QUADS));
  }
  let weight = weight_of(entry.z);
{% else %}
  let weight = 1.0;
{% endif %}
  workgroupBarrier();
{% for right in rights %}
  let own_{{ right }} = thread + {{ right }} * THREADS;
  // y, and A x - b of the feature.
  var y_{{ right }} = 0.0;
  var left_{{ right }} = 0.0;
  if (own_{{ right }} < RANK) {
    y_{{ right }} = element(summed(base, entry.w, BIAS_START + own_{{ right }} / 4), own_{{ right }} % 4);
{% if biases %}
    y_{{ right }} -= ones[own_{{ right }} / 4][own_{{ right }} % 4] * (ones[QUADS].x / weight);
{% endif %}
    if (previous[row * STRIDE + own_{{ right }}] > 0.0) {
      atomicOr(&misplaced[own_{{ right }} / 32], 1u << (own_{{ right }} % 32));
    }
  }
  let b_{{ right }} = y_{{ right }};
  if (own_{{ right }} < STRIDE) {
    solution[own_{{ right }} / 4][own_{{ right }} % 4] = b_{{ right }};
  }
{% endfor %}
{% if unrolled %}
{% for group in groups %}
  let at_{{ group }} = thread + {{ group }} * THREADS;
  let place_{{ group }} = place_of(at_{{ group }});
  var group_{{ group }} = gathered(base, entry.w, at_{{ group }}, place_{{ group }}, weight);
  remember_largest(group_{{ group }}, place_{{ group }});
{% endfor %}
{% else %}
  var kept: array<vec4f, GROUPS>;
  for (var group = 0u; group < GROUPS; group++) {
    let at = thread + group * THREADS;
    kept[group] = gathered(base, entry.w, at, place_of(at), weight);
    remember_largest(kept[group], place_of(at));
  }
{% endif %}
  workgroupBarrier();
  let rounding = params.rounding * sqrt(f32(RANK)) * bitcast<f32>(atomicLoad(&largest));
  let shift = max(shift_of(entry.z), rounding);
{% if unrolled %}
{% for group in groups %}
  group_{{ group }} = shifted(base, at_{{ group }}, group_{{ group }}, place_{{ group }}, shift);
{% endfor %}
{% else %}
  for (var group = 0u; group < GROUPS; group++) {
    let at = thread + group * THREADS;
    kept[group] = shifted(base, at, kept[group], place_of(at), shift);
  }
{% endif %}
  var squares = 0.0;
  for (var quad = 0u; quad < QUADS; quad++) {
    squares += dot(solution[quad], solution[quad]);
  }
  let length = sqrt(squares);
  if (thread < WORDS) {
    turning[thread] = atomicExchange(&misplaced[thread], 0u);
  }
  storageBarrier();

  // Of the first thread, which decides on the next step.
  var fewest = RANK + 1;
  var patience = PATIENCE;
  var steps = 0u;
  var corrections = 0u;
  var verified = 0u;
  var stuck = false;

  var start = 0u;
  for (;;) {
    let current = workgroupUniformLoad(&stage);
    if (current >= DONE) {
      break;
    }
    var swept_features = 0u;
    if (current == SWEEP) {
      for (var word = 0u; word < WORDS; word++) {
        var bits = workgroupUniformLoad(&turning[word]);
        if (bits == 0) {
          continue;
        }
        var members = workgroupUniformLoad(&passive[word]);
        while (bits != 0) {
          let bit = firstTrailingBit(bits);
          bits &= bits - 1;
          let k = 32 * word + bit;
          start = QUADS - start;
          {% render 'parts/pass-on-column', unrolled: unrolled, groups: groups %}
{% for right in rights %}
          if (own_{{ right }} == k) {
            along[start / QUADS] = y_{{ right }};
          }
{% endfor %}
          workgroupBarrier();
          let pivot = column[start + k / 4][k % 4];
          let leaves = ((members >> bit) & 1) == 1;
          if (leaves || !(pivot <= DEPENDENT * diagonal[k])) {
            let inverse = 1.0 / pivot;
            let sign = select(1.0, -1.0, leaves);
{% if unrolled %}
{% for group in groups %}
            group_{{ group }} = swept(group_{{ group }}, place_{{ group }}, k, start, inverse, sign);
{% endfor %}
{% else %}
            for (var group = 0u; group < GROUPS; group++) {
              kept[group] = swept(kept[group], place_of(thread + group * THREADS), k, start, inverse, sign);
            }
{% endif %}
            let step = along[start / QUADS] * inverse;
{% for right in rights %}
            if (own_{{ right }} < RANK) {
              y_{{ right }} = select(fma(-column[start + own_{{ right }} / 4][own_{{ right }} % 4], step, y_{{ right }}), sign * step, own_{{ right }} == k);
            }
{% endfor %}
            members ^= 1u << bit;
            swept_features++;
          }
        }
        if (thread == 0) {
          passive[word] = members;
        }
      }
      workgroupBarrier();
    } else if (current == VERIFY) {
{% for right in rights %}
      if (own_{{ right }} < STRIDE) {
        solution[own_{{ right }} / 4][own_{{ right }} % 4] = select(0.0, y_{{ right }}, own_{{ right }} < RANK && is_passive(own_{{ right }}));
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
    } else {
      // y += inverse(A_PP) (b - A x), a column at a time.
      for (var word = 0u; word < WORDS; word++) {
        var bits = workgroupUniformLoad(&passive[word]);
        while (bits != 0) {
          let k = 32 * word + firstTrailingBit(bits);
          bits &= bits - 1;
          start = QUADS - start;
          {% render 'parts/pass-on-column', unrolled: unrolled, groups: groups %}
{% for right in rights %}
          if (own_{{ right }} == k) {
            along[start / QUADS] = left_{{ right }};
          }
{% endfor %}
          workgroupBarrier();
{% for right in rights %}
          if (own_{{ right }} < RANK) {
            y_{{ right }} = fma(-column[start + own_{{ right }} / 4][own_{{ right }} % 4], along[start / QUADS], y_{{ right }});
          }
{% endfor %}
        }
      }
    }
{% for right in rights %}
    if (own_{{ right }} < RANK) {
      judge(own_{{ right }}, y_{{ right }}, length);
    }
{% endfor %}
    workgroupBarrier();
    if (thread == 0) {
      let remarked = atomicExchange(&remarks, 0u);
      var count = 0u;
      var last = 0u;
      for (var word = 0u; word < WORDS; word++) {
        turning[word] = atomicExchange(&misplaced[word], 0u);
        count += countOneBits(turning[word]);
        last = select(last, word, turning[word] != 0);
      }
      steps++;
      stuck = stuck || steps > MOST_STEPS || (current == SWEEP && steps > 1 && swept_features == 0);
      stage = SWEEP;
      if (current == CORRECT || (current == SWEEP && (count == 0 || stuck))) {
        stage = VERIFY;
      } else if (current == VERIFY && (remarked & 1) == 1 && corrections < 2) {
        corrections++;
        stage = CORRECT;
      } else if (current == VERIFY && (count == 0 || stuck || verified == 4)) {
        stage = select(DONE, FAILED, (remarked & 2) == 2);
      } else if (current == VERIFY) {
        verified++;
        corrections = 0;
      }
      if (stage == SWEEP) {
        patience = select(patience - 1, PATIENCE, count < fewest);
        fewest = min(fewest, count);
        if (patience < 0) {
          for (var word = 0u; word < last; word++) {
            turning[word] = 0;
          }
          turning[last] = 1u << firstLeadingBit(turning[last]);
        }
      }
    }
  }

  var bad = workgroupUniformLoad(&stage) == FAILED;
{% for right in rights %}
  if (own_{{ right }} < STRIDE) {
    solution[own_{{ right }} / 4][own_{{ right }} % 4] = select(0.0, max(y_{{ right }}, 0.0), own_{{ right }} < RANK && is_passive(own_{{ right }}));
  }
{% endfor %}
  workgroupBarrier();
{% if biases %}
  if (thread == 0) {
    var of_factors = 0.0;
    for (var quad = 0u; quad < QUADS; quad++) {
      of_factors += dot(ones[quad], solution[quad]);
    }
    bias[row] = (ones[QUADS].x - of_factors) / weight;
  }
{% endif %}
  for (var quad = thread; quad < QUADS; quad += THREADS) {
    bad = !write_quad(row, quad, solution[quad]) || bad;
  }
  if (bad) {
    atomicMin(&status, row);
  }
}
