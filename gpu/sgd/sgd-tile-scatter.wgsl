// Within a tile each chunk has its own range, so workgroups do not conflict.

var<workgroup> cursors: array<atomic<u32>, MOST_TILES>;

#import parts/main
{
  let chunk = group.y * groups.x + group.x;
  let first_row = chunk * CHUNK;
  if (first_row >= params.rows) {
    return;
  }
  for (var tile = thread; tile < params.tiles; tile += THREADS) {
    atomicStore(&cursors[tile], starts[chunk * params.tiles + tile]);
  }
  let end_row = min(first_row + CHUNK, params.rows);
  for (var row = first_row; row < end_row; row++) {
    workgroupBarrier();
    let end = u32(offsets[row + 1u]);
    for (var at = u32(offsets[row]) + thread; at < end; at += THREADS) {
      let place = places[indices[at]];
      let target_at = atomicAdd(&cursors[place & 0xffffu], 1u);
      ratings[target_at] = vec2<u32>(
        row,
        (place >> 16u) | pack2x16float(vec2f(0.0, values[at] - params.level))
      );
    }
  }
}
