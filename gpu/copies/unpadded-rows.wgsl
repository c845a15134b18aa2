// Rows without their padding, one behind the other, a value a thread. Values are copied as bits.
struct Params {
  first: u32,
  count: u32,
  columns: u32,
  stride: u32,
}

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> padded: array<u32>;
@group(0) @binding(2) var<storage, read_write> rows: array<u32>;

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u, @builtin(local_invocation_index) thread: u32) {
  let at = (group.y * groups.x + group.x) * THREADS + thread;
  if (at < params.count) {
    let value = params.first + at;
    let row = value / params.columns;
    rows[at] = padded[row * params.stride + (value - row * params.columns)];
  }
}
