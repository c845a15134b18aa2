#part open-row
// Template: only some kernels have buffers of biases and objectives.
{%- comment -%}
Start of a kernel that solves one row per workgroup: reads the row's `entry` in the work list, and its number
`row`. A row without ratings is finished here: its factors become 0 and, with biases, its bias too.
{%- endcomment %}
  let number = id.y * size.x + id.x;
  if (number >= params.count) {
    return;
  }
  // Entry: row, first slot, n, number of slots.
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
{% if objective %}
    if (thread == 0) {
      write_objective(row, 0.0);
    }
{% endif %}
    return;
  }

#part row-shift
// The numbers that regularization adds to the diagonal of a row's matrix. shift_of: for the features'
// elements. own_shift_of: for the bias's own element, with biases; weight_of: that element with its shift, n
// + own shift.
fn shift_of(row: u32) -> f32 {
  return shifts[row * SHIFTS];
}
fn own_shift_of(row: u32) -> f32 {
  return shifts[row * SHIFTS + SHIFTS - 1];
}
fn weight_of(row: u32, n: u32) -> f32 {
  return max(f32(n), 1.0) + own_shift_of(row);
}

#part write-row
// Template: kernels without a float16 mirror do not have its buffer.
// Writes four features of a solved row; returns false if one is not finite.
fn write_quad(row: u32, quad: u32, x: vec4f) -> bool {
  factors[row * QUADS + quad] = x;
{% if half %}
  half[row * QUADS + quad] = vec2u(pack2x16float(x.xy), pack2x16float(x.zw));
{% endif %}
  return is_finite(x.x) && is_finite(x.y) && is_finite(x.z) && is_finite(x.w);
}

#part write-objective
// Writes a solved row's objective x^T A x - 2 b^T x to `status`, whose first four words are reserved (the
// first is the lowest row without a finite solution). If the row has a bias, the objective includes it.
fn write_objective(row: u32, objective: f32) {
  atomicStore(&status[4u + row], bitcast<u32>(objective));
}

#part finite
// Tests the bits of a number, since compilers may assume that NaN and infinities do not occur.
fn is_finite(x: f32) -> bool {
  return (bitcast<u32>(x) & 0x7f800000u) != 0x7f800000u;
}

fn is_positive(x: f32) -> bool {
  return bitcast<u32>(x) - 1u < 0x7f7fffffu;
}

// False if a step of conjugate gradients along p is the end: p.A p is 0 or negative, so that float32 cannot
// tell A from a singular matrix. NaN and infinity go on into x, so that the row is reported.
fn goes_on(curvature: f32) -> bool {
  return curvature > 0.0 || !is_finite(curvature);
}

#part triangle
// Finds the row and column (column <= row) of element `at` of a lower triangle that is stored row by row.
fn triangle_place(at: u32) -> vec2u {
  var row = u32((sqrt(8.0 * f32(at) + 1.0) - 1.0) / 2.0);
  if (row * (row + 1) / 2 > at) {
    row -= 1;
  }
  if ((row + 1) * (row + 2) / 2 <= at) {
    row += 1;
  }
  return vec2u(row, at - row * (row + 1) / 2);
}

#part row-of-rating
// The row in [from_row, to_row) that contains a rating, by binary search in the row pointers.
fn row_of(rating: u32) -> u32 {
  var low = params.from_row;
  var high = params.to_row - 1;
  while (low < high) {
    let middle = (low + high) / 2;
    if (u32(row_pointers[middle + 1]) <= rating) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}
