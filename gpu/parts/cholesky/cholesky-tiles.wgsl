// Reads and writes one row's A, in 16 x 16 tiles, followed by b, in the first of the row's slots (`base` is
// its index in the buffer).
fn read_quad(base: u32, at: u32) -> vec4f {
  return slots[base + at];
}

fn keep_quad(base: u32, at: u32, content: vec4f) {
  slots[base + at] = content;
}

fn tile_start(down: u32, across: u32) -> u32 {
  return (down * (down + 1) / 2 + across) * 64;
}

// Index of the 16 elements of a row in a tile; row number F is b.
fn row_start(row: u32, tile: u32) -> u32 {
  return select(tile_start(row / 16, tile) + row % 16 * 4, BIAS_START + 4 * tile, row == STRIDE);
}
