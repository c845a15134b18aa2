// Writes a solved row's objective x^T A x - 2 b^T x to `status`, whose first four words are reserved (the
// first is the lowest row without a finite solution). If the row has a bias, the objective includes it.
fn write_objective(row: u32, objective: f32) {
  atomicStore(&status[4u + row], bitcast<u32>(objective));
}
