#part swept-groups
// Template: code of biases uses workgroup memory that only variants with biases have.
// Functions for the matrix of solve-nonnegative, which threads keep in registers as groups: four elements of
// a row.
//
// place_of: the row of the group at index `at` of a slot, and the number of the group in that row. An index
// after the last group gives a row and a group that do not exist.
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

// An element of a group, by comparisons: a variable index would move the group from registers to memory.
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

// A group of A (four elements of a row): the sum of the row's slots in their order, less the terms of the
// eliminated bias.
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

// Adds `shift` to the group's element on the diagonal of A, if it has one. Also stores the group in the
// buffer `slots`, which then has the row's whole A.
fn shifted(base: u32, at: u32, group: vec4f, place: vec2u, shift: f32) -> vec4f {
  if (at >= BIAS_START) {
    return group;
  }
  var result = group;
  if (place.x / 4 == place.y) {
    result += select(
      vec4f(),
      vec4f(shift),
      (columns_of(place.y) == vec4u(place.x)) & vec4<bool>(place.x < RANK)
    );
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

// Writes the elements of column k that are in this group (four elements of a row) to `column` from `start`
// on. Only the lower triangle is stored: up to the tile of k, the elements are in row k (by symmetry), and
// below it in column k.
fn pass_on(group: vec4f, place: vec2u, k: u32, start: u32) {
  if (place.x == k) {
    column[start + place.y] = group;
  } else if (place.y == k / 4 && place.x / 16 > k / 16) {
    column[start + place.x / 4][place.x % 4] = element(group, k % 4);
  }
}

// Returns a group after the matrix was swept at pivot k. `inverse`: reciprocal of the pivot. `sign`: 1 if
// feature k moves into P (the features that may differ from 0), -1 if it moves out.
fn swept(group: vec4f, place: vec2u, k: u32, start: u32, inverse: f32, sign: f32) -> vec4f {
  let down = inverse * column[start + place.x / 4][place.x % 4];
  let across = column[start + place.y];
  var result = fma(vec4f(-down), across, group);
  // Only a few groups are in the pivot's row or column.
  if (place.x == k || place.y == k / 4) {
    result = select(result, sign * inverse * across, vec4<bool>(place.x == k));
    result = select(
      result,
      vec4f(select(sign * down, -inverse, place.x == k)),
      columns_of(place.y) == vec4u(k)
    );
  }
  return result;
}

#part pass-on-column
// Template: loops are unrolled, so that a thread's elements stay in registers.
{%- comment -%}
Writes column k of the matrix, which is spread over the threads' registers, to workgroup memory: `column` from
`start` on.
{%- endcomment %}
{%- if unrolled %}
{%- for group in groups %}
          pass_on(group_{{ group }}, place_{{ group }}, k, start);
{%- endfor %}
{%- else %}
          for (var group = 0u; group < GROUPS; group++) {
            pass_on(kept[group], place_of(thread + group * THREADS), k, start);
          }
{%- endif %}

#part compare-with-matrix
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

#part next-step
// Thread 0 chooses the next stage of the solve, and the features that change sides in it: that move into or
// out of P, the set of features that may differ from 0.
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
