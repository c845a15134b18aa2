// Reads the rows of theta that a block's ratings refer to, in their order, without using them, to measure the
// rate of gathering rows. A workgroup takes 256 ratings; a row has CHUNKS x 16 bytes.
override CHUNKS: u32;
override RATINGS: u32;

@group(0) @binding(0) var<storage, read> indices: array<u32>;
@group(0) @binding(1) var<storage, read> fixed: array<vec4u>;
@group(0) @binding(2) var<storage, read_write> unlikely: array<vec4u>;

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) id: vec3u, @builtin(num_workgroups) size: vec3u, @builtin(local_invocation_index) thread: u32) {
  let first = (id.y * size.x + id.x) * 256;
  if (first >= RATINGS) {
    return;
  }
  var mixed = vec4u();
  for (var step = 0u; step < CHUNKS; step++) {
    let at = step * 256 + thread;
    let rating = min(first + at / CHUNKS, RATINGS - 1);
    mixed = mixed ^ (fixed[indices[rating] * CHUNKS + at % CHUNKS] + step);
  }
  // Keeps the compiler from removing the reads.
  if (mixed.x == 0x9e3779b9 && mixed.y == 0x85ebca6b) {
    unlikely[0] = mixed;
  }
}
