var<workgroup> tally: array<atomic<u32>, MOST_TILES>;

#import parts/main
{
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
