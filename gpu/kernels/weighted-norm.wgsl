// Sums n_u |x_u|^2 over rows, one partial sum for each workgroup; the host adds them up in double precision.
struct Params {
  from_row: u32,
  to_row: u32,
  stride: u32,
}

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> offsets: array<i32>;
@group(0) @binding(2) var<storage, read> factors: array<f32>;
@group(0) @binding(3) var<storage, read_write> sums: array<f32>;

var<workgroup> partial: array<f32, THREADS>;

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u, @builtin(local_invocation_index) thread: u32) {
  let number = group.y * groups.x + group.x;
  let first = params.from_row + number * ROWS;
  let last = min(first + ROWS, params.to_row);
  var sum = 0.0;
  for (var row = first; row < last; row++) {
    let weight = f32(offsets[row + 1] - offsets[row]);
    for (var k = thread; k < params.stride; k += THREADS) {
      let x = factors[row * params.stride + k];
      sum = fma(weight * x, x, sum);
    }
  }
  partial[thread] = sum;
  for (var half = THREADS / 2; half > 0; half /= 2) {
    workgroupBarrier();
    if (thread < half) {
      partial[thread] += partial[thread + half];
    }
  }
  if (thread == 0 && first < params.to_row) {
    sums[number] = partial[0];
  }
}
