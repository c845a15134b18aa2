// Template: only some variants have a copy of A in workgroup memory.
// Reads and writes one row's A, in 16 x 16 tiles, followed by b. They are in workgroup memory, or in the
// buffer `slots`, in the first of the row's slots (`base` is its index).
{% if where == 'workgroup' %}
var<workgroup> matrix: array<vec4f, BIAS_START + QUADS>;

fn read_quad(base: u32, at: u32) -> vec4f {
  return matrix[at];
}

fn keep_quad(base: u32, at: u32, content: vec4f) {
  matrix[at] = content;
}

// Index of a group of four elements in a row of a tile. Neighbouring threads read rows that are four apart,
// so the groups are permuted: the threads then use different banks.
fn shuffled(row: u32, quad: u32) -> u32 {
  return quad ^ (row / 4);
}
{% else %}

fn read_quad(base: u32, at: u32) -> vec4f {
  return slots[base + at];
}

fn keep_quad(base: u32, at: u32, content: vec4f) {
  slots[base + at] = content;
}

fn shuffled(row: u32, quad: u32) -> u32 {
  return quad;
}
{% endif %}

fn tile_start(down: u32, across: u32) -> u32 {
  return (down * (down + 1) / 2 + across) * 64;
}

// Index of the 16 elements of a row in a tile; row number F is b.
fn row_start(row: u32, tile: u32) -> u32 {
  return select(tile_start(row / 16, tile) + row % 16 * 4, BIAS_START + 4 * tile, row == STRIDE);
}

// The argument of `shuffled` for a row; b is not shuffled.
fn row_in_tile(row: u32) -> u32 {
  return select(row % 16, 0, row == STRIDE);
}
