// Copies a buffer, 16 bytes per thread and step, to measure read and write bandwidth.
override QUADS: u32;

@group(0) @binding(0) var<storage, read> source: array<vec4u>;
@group(0) @binding(1) var<storage, read_write> copy: array<vec4u>;

const STEPS = 4u;

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) id: vec3u, @builtin(num_workgroups) size: vec3u, @builtin(local_invocation_index) thread: u32) {
  let first = (id.y * size.x + id.x) * 256u * STEPS + thread;
  for (var step = 0u; step < STEPS; step++) {
    let at = first + step * 256u;
    if (at < QUADS) {
      copy[at] = source[at];
    }
  }
}
