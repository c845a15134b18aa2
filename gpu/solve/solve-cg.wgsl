// Template: each group of four elements of A in registers is a variable of its own, so loops over them must
// be unrolled.
//
// A workgroup solves ROWS rows, each with LANES threads. In a product with A, a thread multiplies one row of
// A, one of SEGMENTS parts of a row, or above 256 features several rows. The first QUADS threads of a row
// keep four elements each of x, the residual r and the direction p. A row that is finished continues with
// steps of length 0, since all threads of the workgroup must reach the barriers.

var<workgroup> direction: array<vec4f, ROWS * QUADS>;
var<workgroup> products: array<f32, ROWS * PRODUCTS>;
var<workgroup> shares: array<vec2f, ROWS * QUADS>;

#import parts/write-objective
#import parts/finite
#import parts/write-row
#import parts/row-shift

// Returns four consecutive elements of a row's A or b. If the row has several slots, they are added in a
// fixed order.
fn summed(at: u32, slot_count: u32) -> vec4f {
  var sum = vec4f();
  for (var slot = 0u; slot < slot_count; slot++) {
    sum += bitcast<vec4f>(slots[at + slot * SLOT_QUADS]);
  }
  return sum;
}

// Returns columns 4 quad to 4 quad + 3 of row i of A. Only tiles on and below the diagonal are stored, so
// elements above are read from their mirror images.
fn matrix_quad(base: u32, slot_count: u32, i: u32, quad: u32) -> vec4f {
  let own = i / 16;
  let tile = quad / 4;
  if (tile <= own) {
    let at = base + (own * (own + 1) / 2 + tile) * 64 + i % 16 * 4 + quad % 4;
    return summed(at, slot_count);
  }
  let at = base + (tile * (tile + 1) / 2 + own) * 64 + quad % 4 * 16 + i % 16 / 4;
  let c = i % 4;
  return vec4f(
    summed(at, slot_count)[c],
    summed(at + 4, slot_count)[c],
    summed(at + 8, slot_count)[c],
    summed(at + 12, slot_count)[c]
  );
}
{% if keep == 'memory' and a == 'f16' %}

// Like matrix_quad, for A that was rounded to float16 in place: each 16-element row of a tile was packed into
// the first half of its memory.
fn packed_quad(base: u32, i: u32, quad: u32) -> vec4f {
  let own = i / 16;
  let tile = quad / 4;
  if (tile <= own) {
    let words = slots[base + (own * (own + 1) / 2 + tile) * 64 + i % 16 * 4 + quad % 4 / 2];
    let pair = select(words.xy, words.zw, (quad & 1) == 1);
    return vec4f(unpack2x16float(pair.x), unpack2x16float(pair.y));
  }
  let at = base + (tile * (tile + 1) / 2 + own) * 64 + quad % 4 * 16 + i % 16 / 8;
  let c = i % 8 / 2;
  let odd = i & 1;
  return vec4f(
    unpack2x16float(slots[at][c])[odd],
    unpack2x16float(slots[at + 4][c])[odd],
    unpack2x16float(slots[at + 8][c])[odd],
    unpack2x16float(slots[at + 12][c])[odd]
  );
}
{% endif %}

// For four consecutive features, true if the feature is below the rank; the others are padding.
fn is_feature(quad: u32) -> vec4<bool> {
  return vec4u(4 * quad) + vec4u(0, 1, 2, 3) < vec4u(RANK);
}

// Sums the `shares` that the first QUADS threads of a row have written.
fn total(batch: u32) -> vec2f {
  var sum = vec2f();
  for (var quad = 0u; quad < QUADS; quad++) {
    sum += shares[batch * QUADS + quad];
  }
  return sum;
}

#import parts/main-by-id
{
  let number = id.y * size.x + id.x;
  let batch = thread / LANES;
  let lane = thread % LANES;
  let exists = number * ROWS + batch < params.count;
  // Entry: row, first slot, n, number of slots.
  var entry = vec4u();
  if (exists) {
    entry = work[number * ROWS + batch];
  }
  let base = entry.y * SLOT_QUADS;
  let ratings = f32(max(entry.z, 1));
{% if a == 'f16' %}
  // A, b and the shift are divided by n: sums over many ratings would exceed the range of float16.
  let scale = 1.0 / ratings;
{% else %}
  let scale = 1.0;
{% endif %}
  let shift = shift_of(entry.x) * scale;
  let owns = lane < QUADS;
  let cell = batch * QUADS + lane;

{% if keep == 'registers' %}
  let i = lane % STRIDE;
  let segment = lane / STRIDE * SEGMENT_QUADS;
{% for quad in quads %}
  let content_{{ quad }} = matrix_quad(base, entry.w, i, segment + {{ quad }}) * scale;
{% if a == 'f16' %}
  let packed_{{ quad }} = vec2u(pack2x16float(content_{{ quad }}.xy), pack2x16float(content_{{ quad }}.zw));
{% endif %}
{% endfor %}
{% endif %}

  var x = vec4f();
  var b = vec4f();
  if (owns && entry.z > 0) {
    x = previous[entry.x * QUADS + lane];
    b = select(vec4f(), summed(base + BIAS_START + lane, entry.w) * scale, is_feature(lane));
  }
{% if biases %}
  // The row's bias is eliminated first: CG solves with A - s s^T / weight and b - s t / weight. s: sum of the
  // rows of theta, t: sum of the ratings, weight: n plus the bias's regularization.
  let weight = weight_of(entry.x, entry.z) * scale;
  var s = vec4f();
  var t = 0.0;
  if (owns && entry.z > 0) {
    s = select(vec4f(), summed(base + BIAS_START + QUADS + lane, entry.w) * scale, is_feature(lane));
    t = summed(base + BIAS_START + 2 * QUADS, entry.w).x * scale;
    b -= s * (t / weight);
  }
{% endif %}
{% if keep == 'memory' %}
{% if a == 'f16' %}
  // A row without ratings has no slot.
  if (entry.w > 0) {
    for (var at = lane; at < TILE_ROWS; at += LANES) {
      let first = base + 4 * at;
      let content_0 = summed(first, entry.w) * scale;
      let content_1 = summed(first + 1, entry.w) * scale;
      let content_2 = summed(first + 2, entry.w) * scale;
      let content_3 = summed(first + 3, entry.w) * scale;
      slots[first] = vec4u(
        pack2x16float(content_0.xy),
        pack2x16float(content_0.zw),
        pack2x16float(content_1.xy),
        pack2x16float(content_1.zw)
      );
      slots[first + 1] = vec4u(
        pack2x16float(content_2.xy),
        pack2x16float(content_2.zw),
        pack2x16float(content_3.xy),
        pack2x16float(content_3.zw)
      );
    }
  }
{% else %}
  if (entry.w > 1) {
    for (var at = lane; at < BIAS_START; at += LANES) {
      slots[base + at] = bitcast<vec4u>(summed(base + at, entry.w));
    }
  }
{% endif %}
  storageBarrier();
{% endif %}

  var r = b;
  var p = x;
  var rho = 0.0;
  var enough = 0.0;
  var done = false;
  var bad = false;
  // Step 0 computes r = b - A x.
  for (var step = 0u; step <= params.steps; step++) {
    if (owns) {
      direction[cell] = p;
    }
{% if biases %}
    // `shares` is overwritten next, so all threads must have read its last sums.
    workgroupBarrier();
    if (owns) {
      shares[cell] = vec2f(dot(s, p), 0.0);
    }
{% endif %}
    workgroupBarrier();
{% if biases %}
    let along = total(batch).x / weight;
{% endif %}
{% if keep == 'registers' %}
    var product = 0.0;
{% for quad in quads %}
{% if a == 'f16' %}
    product += dot(
      vec4f(unpack2x16float(packed_{{ quad }}.x), unpack2x16float(packed_{{ quad }}.y)),
      direction[batch * QUADS + segment + {{ quad }}]
    );
{% else %}
    product += dot(content_{{ quad }}, direction[batch * QUADS + segment + {{ quad }}]);
{% endif %}
{% endfor %}
    products[thread] = product;
{% else %}
    for (var i = lane; i < STRIDE; i += LANES) {
      var product = 0.0;
      if (entry.w > 0) {
        for (var quad = 0u; quad < QUADS; quad++) {
{% if a == 'f16' %}
          product += dot(packed_quad(base, i, quad), direction[quad]);
{% else %}
          product += dot(matrix_quad(base, 1, i, quad), direction[quad]);
{% endif %}
        }
      }
      products[i] = product;
    }
{% endif %}
    workgroupBarrier();
    var q = vec4f();
    if (owns) {
      let at = batch * PRODUCTS + 4 * lane;
{% for segment in segments %}
      q += vec4f(
        products[at + {{ segment }} * STRIDE],
        products[at + {{ segment }} * STRIDE + 1],
        products[at + {{ segment }} * STRIDE + 2],
        products[at + {{ segment }} * STRIDE + 3]
      );
{% endfor %}
      q = select(vec4f(), fma(vec4f(shift), p, q), is_feature(lane));
{% if biases %}
      q -= s * along;
{% endif %}
      shares[cell] = vec2f(dot(p, q), 0.0);
    }
    workgroupBarrier();
    var alpha = 0.0;
    if (owns) {
      if (step > 0 && !done) {
        let curvature = total(batch).x;
        done = !goes_on(curvature);
        if (!done) {
          alpha = rho / curvature;
        }
      }
      x = fma(vec4f(alpha), p, x);
      r = fma(vec4f(-select(alpha, 1.0, step == 0)), q, r);
    }
    workgroupBarrier();
    if (owns) {
      shares[cell] = vec2f(dot(r, r), dot(b, b));
    }
    workgroupBarrier();
    if (owns) {
      let norms = total(batch);
      bad = bad || !is_finite(norms.x);
      if (step == 0) {
        // The minimum of 1e-30 keeps products of small residuals from underflowing.
        enough = max(max(norms.x * {{ tolerances.residual }}, norms.y * {{ tolerances.bias }}), 1e-30);
        p = r;
      } else if (!done) {
        p = fma(vec4f(norms.x / rho), p, r);
      }
      rho = norms.x;
      done = done || norms.x <= enough;
    }
  }

  workgroupBarrier();
  if (owns) {
    shares[cell] = vec2f({% if biases %}dot(s, x){% else %}0.0{% endif %}, dot(b + r, x));
  }
  workgroupBarrier();
  if (exists && lane == 0) {
    let along = total(batch);
{% if biases %}
    bias[entry.x] = select(0.0, (t - along.x) / weight, entry.z > 0);
{% endif %}
    write_objective(entry.x, select(0.0, -(along.y{% if biases %} + t / weight * t{% endif %}) / scale, entry.z > 0));
  }
  if (owns && exists) {
    bad = !write_quad(entry.x, lane, x) || bad;
    if (bad) {
      atomicMin(&status[0], entry.x);
    }
  }
}
