// The shift of the diagonal of a row's A. With biases it is followed by the shift of the bias's own diagonal
// element; the n that the element also contains is added elsewhere (solve/row-shifts.wgsl).
fn shift_of(row: u32) -> f32 {
  return shifts[row * SHIFTS];
}
fn own_shift_of(row: u32) -> f32 {
  return shifts[row * SHIFTS + SHIFTS - 1];
}
fn weight_of(row: u32, n: u32) -> f32 {
  return max(f32(n), 1.0) + own_shift_of(row);
}
