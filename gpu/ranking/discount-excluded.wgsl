// Takes the excluded columns of a row out of the counts of its listed columns. A workgroup has one row; each thread scores every
// THREADS-th excluded column, in the order of operations of count-before, and compares it with all listed ones. A repeated column
// counts once.
struct Params {
  from_row: u32,
  to_row: u32,
  quads: u32,
  // The entry of `listed` that belongs to place 0 of thresholds and counts.
  first: u32,
}

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> row_factors: array<vec4f>;
@group(0) @binding(2) var<storage, read> column_factors: array<vec4f>;
@group(0) @binding(3) var<storage, read> offsets: array<i32>;
@group(0) @binding(4) var<storage, read> listed: array<u32>;
@group(0) @binding(5) var<storage, read> exclude_offsets: array<i32>;
@group(0) @binding(6) var<storage, read> excluded: array<u32>;
@group(0) @binding(7) var<storage, read> thresholds: array<vec2f>;
@group(0) @binding(8) var<storage, read_write> counts: array<atomic<u32>>;

const LOWEST = -3.40282346638528859812e38f;

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u, @builtin(local_invocation_index) thread: u32) {
  let row = params.from_row + group.y * groups.x + group.x;
  if (row >= params.to_row) {
    return;
  }
  let start = u32(offsets[row]);
  let end = u32(offsets[row + 1]);
  if (start == end) {
    return;
  }
  let exclude_start = u32(exclude_offsets[row]);
  let exclude_end = u32(exclude_offsets[row + 1]);
  let x_at = row * params.quads;
  for (var entry = exclude_start + thread; entry < exclude_end; entry += THREADS) {
    let column = excluded[entry];
    if (entry > exclude_start && excluded[max(entry, 1) - 1] == column) {
      continue;
    }
    let theta_at = column * params.quads;
    var score = 0.0;
    for (var k = 0u; k < params.quads; k++) {
      let x = row_factors[x_at + k];
      let theta = column_factors[theta_at + k];
      score = fma(x.x, theta.x, fma(x.y, theta.y, fma(x.z, theta.z, fma(x.w, theta.w, score))));
    }
    for (var k = start; k < end; k++) {
      let threshold = thresholds[k - params.first].x;
      if (score > threshold || (score == threshold && score > LOWEST && column < listed[k])) {
        atomicSub(&counts[k - params.first], 1u);
      }
    }
  }
}
