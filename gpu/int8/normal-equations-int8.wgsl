// Template: each tile of A that a subgroup sums is a variable of its own; a plan in TypeScript assigns tiles
// to subgroups.
#import parts/tensor-directives

#import parts/int8-declarations

@compute @workgroup_size(THREADS)
fn main(
  @builtin(workgroup_id) id: vec3u,
  @builtin(num_workgroups) size: vec3u,
  @builtin(local_invocation_index) thread: u32,
  @builtin(subgroup_id) subgroup: u32
) {
  let number = id.y * size.x + id.x;
  if (number >= params.count) {
    return;
  }
  let part = work[number];
  let first = part.y;
  let end = part.y + part.z;
  let group = thread / LANES_PER_GROUP;
  let chunk = thread % LANES_PER_GROUP;
{%- for set in sets %}
{%- for r in (0..3) %}
  var next_{{ set }}_{{ r }} = vec4<u32>();
{%- endfor %}
{%- endfor %}
  var coming = vec2<u32>();
  if (thread < BIN) {
{%- if BIASES %}
    let ahead_0 = rating_at(first + thread, end);
    let ahead_1 = rating_at(first + BIN + thread, end);
    put_rating(0u, thread, ahead_0, bias_of(ahead_0.x));
    put_rating(1u, thread, ahead_1, bias_of(ahead_1.x));
{%- else %}
    put_rating(0u, thread, rating_at(first + thread, end));
    put_rating(1u, thread, rating_at(first + BIN + thread, end));
{%- endif %}
    coming = rating_at(first + 2u * BIN + thread, end);
  }
  workgroupBarrier();
  #import parts/int8-accumulate
  let slot = part.w * SLOT_VECTORS;
  // Converts the sums from whole numbers to float32 and multiplies them by the scales of the features. They
  // pass through workgroup memory, a few tile rows at a time as memory allows.
{%- for phase in phases %}
{%- unless forloop.first %}
  workgroupBarrier();
{%- endunless %}
  #import parts/tensor-store
{%- for line in phase.rows %}
{%- assign last = TILES | minus: 1 %}
{%- if line.row == TILES %}
{%- assign b_line = 0 %}
{%- assign has_b = true %}
{%- elsif line.row == last and RATING_ROW == false %}
{%- assign b_line = 8 %}
{%- assign has_b = true %}
{%- else %}
{%- assign has_b = false %}
{%- endif %}
{%- if line.row < TILES %}
  for (var at = thread; at < {{ line.row | plus: 1 }}u * 64u; at += THREADS) {
    let column = at / 64u;
    let quad = at % 64u;
    let value = number_of(staged[({{ line.place }}u + column) * 80u + (quad / 4u) * 5u + quad % 4u]);
    slots[slot + {{ line.row | plus: 1 | times: line.row | divided_by: 2 }}u * 64u + at] = value * scales[{{ line.row }}u * 4u + quad / 16u][(quad / 4u) & 3u] * scales[column * 4u + quad % 4u];
  }
{%- endif %}
{%- if has_b %}
  if (thread < TILES * 4u) {
    let at = ({{ line.place }}u + thread / 4u) * 80u + {{ b_line }}u * 5u + thread % 4u;
    let own = scales[thread];
    let b = fma(vec4f(256.0), number_of(staged[at]), number_of(staged[at + 5u])) * params.unscale;
    slots[slot + LOWER_TILES * 64u + thread] = b * own;
{%- if BIASES %}
    slots[slot + LOWER_TILES * 64u + TILES * 4u + thread] = number_of(staged[at + 10u]) * own;
{%- unless RATING_ROW %}
    if (thread == TILES * 4u - 2u) {
      // t, the sum of the ratings, is the product of the column of ratings with the column of ones.
      slots[slot + LOWER_TILES * 64u + TILES * 8u] = vec4f(b.z, 0.0, 0.0, 0.0);
    }
{%- endunless %}
{%- endif %}
  }
{%- endif %}
{%- endfor %}
{%- endfor %}
{%- if BIASES and RATING_ROW %}
  let t_subgroup = subgroupAdd(t_part);
  workgroupBarrier();
  if ((thread & 31u) == 0u) { staged[subgroup].x = bitcast<u32>(t_subgroup); }
  workgroupBarrier();
  if (thread == 0u) {
    var t = 0.0;
    for (var other = 0u; other < SUBGROUPS; other++) {
      t += bitcast<f32>(staged[other].x);
    }
    slots[slot + LOWER_TILES * 64u + TILES * 8u] = vec4f(t * params.unscale, 0.0, 0.0, 0.0);
  }
{%- endif %}
}
