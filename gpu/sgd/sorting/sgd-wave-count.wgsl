// Counts the ratings of each band of rows in each band of columns. A workgroup has a band of rows.
struct Params {
  row_bands: u32,
  column_bands: u32,
}

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> offsets: array<i32>;
@group(0) @binding(2) var<storage, read> indices: array<u32>;
// Starts of the bands of rows, and the end of the last one.
@group(0) @binding(3) var<storage, read> row_starts: array<u32>;
// Band of each column.
@group(0) @binding(4) var<storage, read> band_of: array<u32>;
@group(0) @binding(5) var<storage, read_write> counts: array<u32>;

var<workgroup> tally: array<atomic<u32>, MOST_BANDS>;

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u, @builtin(local_invocation_index) thread: u32) {
  let row_band = group.y * groups.x + group.x;
  if (row_band >= params.row_bands) {
    return;
  }
  for (var band = thread; band < params.column_bands; band += THREADS) {
    atomicStore(&tally[band], 0u);
  }
  workgroupBarrier();
  let end = u32(offsets[row_starts[row_band + 1u]]);
  for (var at = u32(offsets[row_starts[row_band]]) + thread; at < end; at += THREADS) {
    atomicAdd(&tally[band_of[indices[at]]], 1u);
  }
  workgroupBarrier();
  for (var band = thread; band < params.column_bands; band += THREADS) {
    counts[row_band * params.column_bands + band] = atomicLoad(&tally[band]);
  }
}
