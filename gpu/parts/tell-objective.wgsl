// The place of the objective x^T A x - 2 b^T x of a solved row, with a bias that of the whole system: behind
// the lowest bad row.
fn tell(row: u32, objective: f32) {
  atomicStore(&status[4u + row], bitcast<u32>(objective));
}
