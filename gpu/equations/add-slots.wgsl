#import parts/triangle

// Returns the index, in a slot, of the number that is added to a column of the equations. Column N, the number
// of ratings, is not in a slot.
fn place_of(column: u32) -> u32 {
  if (column < B) {
    let element = triangle_place(column);
    let tile = element / 16;
    let within = element % 16;
    return (tile.x * (tile.x + 1) / 2 + tile.y) * 256 + within.x * 16 + within.y;
  }
  if (column < N) {
    return SLOT_B + column - B;
  }
  return select(SLOT_B + 2 * PADDED, SLOT_B + PADDED + column - N - 1, column < N + 1 + RANK);
}

#import parts/main
{
  #import parts/number
  // Entry: row, first slot, n, number of slots.
  let entry = work[number];
  if (entry.z == 0) {
    return;
  }
  let row = (entry.x - params.row_start) * params.stride;
  for (var column = thread; column < COLUMNS; column += THREADS) {
    var sum = 0.0;
    if (column == N) {
      sum = f32(entry.z);
    } else {
      let place = place_of(column);
      for (var slot = entry.y; slot < entry.y + entry.w; slot++) {
        sum += slots[slot * SLOT + place];
      }
    }
    equations[row + column] += sum;
  }
}
