// The numbers that regularization adds to the diagonal of a row's matrix. shift_of: for the features'
// elements. own_shift_of: for the bias's own element, with biases; weight_of: that element with its shift, n
// + own shift.
fn shift_of(row: u32) -> f32 {
  return shifts[row * SHIFTS];
}
fn own_shift_of(row: u32) -> f32 {
  return shifts[row * SHIFTS + SHIFTS - 1];
}
fn weight_of(row: u32, n: u32) -> f32 {
  return max(f32(n), 1.0) + own_shift_of(row);
}
