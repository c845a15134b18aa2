// Writes the objective x^T A x - 2 b^T x of a solved row to `status`, after the lowest bad row. If the row
// has a bias, it is the objective of the system that includes the bias.
fn write_objective(row: u32, objective: f32) {
  atomicStore(&status[4u + row], bitcast<u32>(objective));
}
