// Adds numbers of one matrix to those of another, four a thread.
struct Params {
  first: u32,
  fours: u32,
}

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> addend: array<vec4f>;
@group(0) @binding(2) var<storage, read_write> sum: array<vec4f>;

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u, @builtin(local_invocation_index) thread: u32) {
  let number = (group.y * groups.x + group.x) * THREADS + thread;
  if (number < params.fours) {
    sum[params.first + number] += addend[params.first + number];
  }
}
