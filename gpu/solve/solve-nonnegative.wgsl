// Template: groups of elements of A are separate variables in registers, so loops over them are unrolled.
//
// Non-negative least squares of one row: finds the x >= 0 that minimizes (1/2) x^T A x - b^T x. A workgroup
// has one row. The method is block principal pivoting (Kim and Park, Fast nonnegative matrix factorization,
// SIAM J. Sci. Comput. 33, 2011), with the sweep operator.
//
// The passive set P contains the features whose x may differ from 0; the other features have x = 0. To sweep
// feature k is to update the matrix so that k moves into P or out of P. For every P, the swept matrix
// contains -inverse(A_PP), and the right side y contains x for features in P and the negative gradient b - A
// x for the others. A feature is on the wrong side if it is in P with x < 0, or not in P with b - A x > 0.
// One step finds these features by the signs of y, and sweeps each of them in f^2 operations.
//
// The threads keep the lower triangle in groups of four elements (device/slots.ts), and share the column of
// the pivot through workgroup memory. At the end x is checked with the original A. If sweeps have lost
// digits, x is improved with the inverse.

// Limits of a component of the gradient in a solution, relative to |b|. Up to TOLERANCE it counts as 0. Up to
// LARGEST_GRADIENT, x is accepted if no step improves it any more.
const TOLERANCE = 1e-5;
const LARGEST_GRADIENT = 1e-4;
// Largest component of the residual A x - b for features in P, relative to |b|.
const RESIDUAL = 5e-6;
// If the pivot of a feature is below this fraction of A's diagonal element, it is only rounding error: the
// feature is linearly dependent on the features in P, so it is not moved into P.
const DEPENDENT = 2.4e-7;
// Rounding error of A, divided by A's largest element and by sqrt(f). A smaller shift (the number that is
// added to the diagonal) is raised to the rounding error, so that A stays positive definite.
const ROUNDING = 5e-6;
// A step moves all features whose x or gradient has the wrong sign. If their number has no new minimum for
// more than this number of steps, each step moves only one of them, by which the search cannot cycle.
const PATIENCE = 3;
const MOST_STEPS = 10 * RANK + 100;

// Stages of the search: SWEEP moves features, VERIFY compares x with the original A, CORRECT improves x.
const SWEEP = 0u; const VERIFY = 1u; const CORRECT = 2u;
const DONE = 3u; const FAILED = 4u;

// Column k of the swept matrix, and element k of y, for the feature k that is being swept. Both are
// double-buffered, so that one barrier for each sweep suffices. `column` has one extra vector, which is read
// for groups that do not exist.
var<workgroup> column: array<vec4f, 2 * QUADS + 1>;
var<workgroup> along: array<f32, 2>;
var<workgroup> solution: array<vec4f, QUADS>;
var<workgroup> shares: array<f32, LANES * STRIDE>;
var<workgroup> diagonal: array<f32, STRIDE>;
// Bit sets of features: `passive` is P, `turning` the features that the next step moves, `misplaced` the
// features that were found on the wrong side.
var<workgroup> passive: array<u32, WORDS>;
var<workgroup> turning: array<u32, WORDS>;
var<workgroup> misplaced: array<atomic<u32>, WORDS>;
// Flags of the last comparison. Bit value 1: the residual A x - b of a feature in P is too large. Bit value
// 2: a component of the gradient is too large for a solution.
var<workgroup> remarks: atomic<u32>;
var<workgroup> stage: u32;
// A's largest diagonal element, as bits: for numbers >= 0 the bits have the same order as the numbers, which
// allows an atomic maximum.
var<workgroup> largest: atomic<u32>;
{% if biases %}
// s, the sum of the rows of theta, followed by t, the sum of the ratings.
var<workgroup> ones: array<vec4f, QUADS + 1>;
{% endif %}

#import parts/triangle
#import parts/finite
#import parts/write-row
#import parts/row-shift
#import parts/swept-groups
fn is_passive(i: u32) -> bool {
  return ((passive[i / 32] >> (i % 32)) & 1) == 1;
}

// Records feature i in `misplaced` if it is on the wrong side or its number y is not finite. Also records in
// `remarks` if y is too large for a solution. `length` is |b|.
fn check_feature(i: u32, y: f32, length: f32) {
  let lost = !is_finite(y);
  if (lost || select(y > TOLERANCE * length, y < 0.0, is_passive(i))) {
    atomicOr(&misplaced[i / 32], 1u << (i % 32));
    if (lost || (!is_passive(i) && y > LARGEST_GRADIENT * length)) {
      atomicOr(&remarks, 2u);
    }
  }
}

#import parts/main-by-id
{
  {% render 'parts/open-row', biases: biases, objective: false %}
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
  let weight = weight_of(entry.x, entry.z);
{% else %}
  let weight = 1.0;
{% endif %}
  workgroupBarrier();
{% for right in rights %}
  let own_{{ right }} = thread + {{ right }} * THREADS;
  // The feature's elements of y, and of b - A x from the last comparison with A.
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
  let rounding = ROUNDING * sqrt(f32(RANK)) * bitcast<f32>(atomicLoad(&largest));
  let shift = max(shift_of(entry.x), rounding);
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

  // State of thread 0, which chooses the next step (parts/next-step).
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
          #import parts/pass-on-column
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
              y_{{ right }} = select(
                fma(-column[start + own_{{ right }} / 4][own_{{ right }} % 4], step, y_{{ right }}),
                sign * step,
                own_{{ right }} == k
              );
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
      #import parts/compare-with-matrix
    } else {
      // CORRECT: y += inverse(A_PP) (b - A x), one column of the inverse at a time.
      for (var word = 0u; word < WORDS; word++) {
        var bits = workgroupUniformLoad(&passive[word]);
        while (bits != 0) {
          let k = 32 * word + firstTrailingBit(bits);
          bits &= bits - 1;
          start = QUADS - start;
          #import parts/pass-on-column
{% for right in rights %}
          if (own_{{ right }} == k) {
            along[start / QUADS] = left_{{ right }};
          }
{% endfor %}
          workgroupBarrier();
{% for right in rights %}
          if (own_{{ right }} < RANK) {
            y_{{ right }} = fma(
              -column[start + own_{{ right }} / 4][own_{{ right }} % 4],
              along[start / QUADS],
              y_{{ right }}
            );
          }
{% endfor %}
        }
      }
    }
{% for right in rights %}
    if (own_{{ right }} < RANK) {
      check_feature(own_{{ right }}, y_{{ right }}, length);
    }
{% endfor %}
    workgroupBarrier();
    #import parts/next-step
  }

  var bad = workgroupUniformLoad(&stage) == FAILED;
{% for right in rights %}
  if (own_{{ right }} < STRIDE) {
    solution[own_{{ right }} / 4][own_{{ right }} % 4] = select(
      0.0,
      max(y_{{ right }}, 0.0),
      own_{{ right }} < RANK && is_passive(own_{{ right }})
    );
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
