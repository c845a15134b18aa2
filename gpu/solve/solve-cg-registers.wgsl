// Template: each group of four elements of A in registers is a variable of its own, so loops over them must
// be unrolled.
//
// If a row has several slots, they are first added into the first one. Adding them while A is loaded into
// registers would need a loop for each group of elements, which quadrupled the driver's compile time.
diagnostic(off, subgroup_uniformity);
enable subgroups;

#import parts/register-helpers

#import parts/write-objective
#import parts/finite
#import parts/row-shift

@compute @workgroup_size(THREADS)
fn main(
  @builtin(workgroup_id) group: vec3u,
  @builtin(num_workgroups) groups: vec3u,
  @builtin(local_invocation_index) thread: u32,
  @builtin(subgroup_id) subgroup: u32
) {
  #import parts/number
  let row = work[number];
  let quad_row = (thread / 4u) & 3u;
  let quad_lane = thread & 3u;
  let tile_row = min(thread / 16u, TILES - 1u);
  let is_feature = thread < RANK;
  let inverse = 1.0 / max(f32(row.z), 1.0);
  let shift = shift_of(row.x){% if HALF_A %} * inverse{% endif %};
  var x = previous[row.x * PADDED + min(thread, PADDED - 1u)];
  let slot = row.y * SLOT_VECTORS;
  if (row.w > 1u) {
    for (var at = slot + thread; at < slot + SLOT_VECTORS; at += THREADS) {
      var sum = slots[at];
      for (var other = 1u; other < row.w; other++) {
        sum += slots[at + other * SLOT_VECTORS];
      }
      slots[at] = sum;
    }
    storageBarrier();
    workgroupBarrier();
  }
  var b = 0.0;
  if (thread < PADDED && row.w > 0u) {
    b = slots[slot + LOWER_TILES * 64u + thread / 4u][thread & 3u];
  }
{%- if HALF_A %}
  b *= inverse;
{%- endif %}
{%- if BIASES %}
  let weight = weight_of(row.x, row.z){% if HALF_A %} * inverse{% endif %};
  var s = 0.0;
  var t_part = 0.0;
  if (is_feature && row.w > 0u) {
    s = slots[slot + LOWER_TILES * 64u + TILES * 4u + thread / 4u][thread & 3u]{% if HALF_A %} * inverse{% endif %};
  }
  if (thread == 0u && row.w > 0u) {
    t_part = slots[slot + LOWER_TILES * 64u + TILES * 8u].x{% if HALF_A %} * inverse{% endif %};
  }
{%- endif %}
{%- for m in tile_numbers %}
{%- for q in (0..3) %}
  var a_{{ m }}_{{ q }} = {{ zero_a }};
{%- endfor %}
  if (row.w > 0u) {
    if ({{ m }}u <= tile_row) {
      let origin = slot + (tile_row * (tile_row + 1u) / 2u + {{ m }}u) * 64u + quad_row * 16u + quad_lane;
{%- for q in (0..3) %}
      a_{{ m }}_{{ q }} = keep(slots[origin + {{ q }}u * 4u], inverse);
{%- endfor %}
    } else {
      let origin = slot + ({{ m }}u * ({{ m }}u + 1u) / 2u + tile_row) * 64u + quad_lane * 16u + quad_row;
      let e0 = slots[origin];
      let e1 = slots[origin + 4u];
      let e2 = slots[origin + 8u];
      let e3 = slots[origin + 12u];
      a_{{ m }}_0 = keep(vec4f(e0.x, e1.x, e2.x, e3.x), inverse);
      a_{{ m }}_1 = keep(vec4f(e0.y, e1.y, e2.y, e3.y), inverse);
      a_{{ m }}_2 = keep(vec4f(e0.z, e1.z, e2.z, e3.z), inverse);
      a_{{ m }}_3 = keep(vec4f(e0.w, e1.w, e2.w, e3.w), inverse);
    }
  }
{%- endfor %}
  if (!is_feature) {
    b = 0.0;
    x = 0.0;
  }
  #import parts/register-cg
  let stored = select(0.0, x, row.z > 0u && is_feature);
  if (!is_finite(stored)) {
    atomicMin(&status[0], row.x);
  }
  if (thread == 0u) {
{%- if BIASES %}
    bias[row.x] = select(0.0, beta_row, row.z > 0u);
{%- endif %}
    write_objective(row.x, select(0.0, objective{% if HALF_A %} / inverse{% endif %}, row.z > 0u));
  }
  if (thread < PADDED) {
    factors[row.x * PADDED + thread] = stored;
  }
{%- if WRITE_HALF %}
  let neighbour = subgroupShuffleDown(stored, 1u);
  if (thread < PADDED && (thread & 1u) == 0u) {
    half[(row.x * PADDED + thread) / 2u] = pack2x16float(vec2f(stored, neighbour));
  }
{%- endif %}
}
