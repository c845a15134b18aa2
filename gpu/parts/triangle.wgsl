// Finds the row and column (column <= row) of element `at` of a lower triangle that is stored row by row.
fn triangle_place(at: u32) -> vec2u {
  var row = u32((sqrt(8.0 * f32(at) + 1.0) - 1.0) / 2.0);
  if (row * (row + 1) / 2 > at) {
    row -= 1;
  }
  if ((row + 1) * (row + 2) / 2 <= at) {
    row += 1;
  }
  return vec2u(row, at - row * (row + 1) / 2);
}
