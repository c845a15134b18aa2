// Adds the Gram matrix and a row's shift to the first slot of each row (slots.ts), so that the solvers of explicit data serve without lambda.
struct Params {
  count: u32,
}

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> work: array<vec4u>;
@group(0) @binding(2) var<storage, read> gram: array<vec4f>;
@group(0) @binding(3) var<storage, read> shifts: array<f32>;
@group(0) @binding(4) var<storage, read_write> slots: array<vec4f>;

{% render 'parts/triangle' %}

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u, @builtin(local_invocation_index) thread: u32) {
  let number = group.y * groups.x + group.x;
  if (number >= params.count) {
    return;
  }
  // Entry: row, first slot, n, slots.
  let entry = work[number];
  let shift = shifts[entry.x];
  if (entry.z == 0u) {
    return;
  }
  for (var at = thread; at < TILES * (TILES + 1) / 2 * 64; at += THREADS) {
    let place = triangle_place(at / 64);
    let row = place.x * 16 + at % 64 / 4;
    let quad = place.y * 4 + at % 4;
    var sum = slots[entry.y * SLOT_QUADS + at] + gram[row * (TILES * 4) + quad];
    if (row / 4 == quad) {
      sum[row % 4] += shift;
    }
    slots[entry.y * SLOT_QUADS + at] = sum;
  }
}
