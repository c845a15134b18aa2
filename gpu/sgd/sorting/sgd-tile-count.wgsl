// Counts the ratings of each chunk of CHUNK rows for each tile of columns.
struct Params {
  rows: u32,
  tiles: u32,
}

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> offsets: array<i32>;
@group(0) @binding(2) var<storage, read> indices: array<u32>;
// Tile of each column, and in the upper 16 bits its place there.
@group(0) @binding(3) var<storage, read> places: array<u32>;
@group(0) @binding(4) var<storage, read_write> counts: array<u32>;

var<workgroup> tally: array<atomic<u32>, MOST_TILES>;

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u, @builtin(local_invocation_index) thread: u32) {
  let chunk = group.y * groups.x + group.x;
  for (var tile = thread; tile < params.tiles; tile += THREADS) {
    atomicStore(&tally[tile], 0u);
  }
  workgroupBarrier();
  let first_row = chunk * CHUNK;
  if (first_row < params.rows) {
    let first = u32(offsets[first_row]);
    let end = u32(offsets[min(first_row + CHUNK, params.rows)]);
    for (var at = first + thread; at < end; at += THREADS) {
      atomicAdd(&tally[places[indices[at]] & 0xffffu], 1u);
    }
  }
  workgroupBarrier();
  if (first_row < params.rows) {
    for (var tile = thread; tile < params.tiles; tile += THREADS) {
      counts[chunk * params.tiles + tile] = atomicLoad(&tally[tile]);
    }
  }
}
