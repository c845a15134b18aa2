// Takes the mean and the columns' biases off ratings, four a thread. The first and the last four may reach beyond the range: all are ratings
// of the block, or its padding.
struct Params {
  first: u32,
  fours: u32,
  mean: f32,
}

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> indices: array<vec4u>;
@group(0) @binding(2) var<storage, read> values: array<vec4f>;
@group(0) @binding(3) var<storage, read> fixed_bias: array<f32>;
@group(0) @binding(4) var<storage, read_write> centred: array<vec4f>;

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u, @builtin(local_invocation_index) thread: u32) {
  let at = (group.y * groups.x + group.x) * THREADS + thread;
  if (at < params.fours) {
    let column = indices[params.first + at];
    let biases = vec4f(fixed_bias[column.x], fixed_bias[column.y], fixed_bias[column.z], fixed_bias[column.w]);
    centred[params.first + at] = values[params.first + at] - (vec4f(params.mean) + biases);
  }
}
