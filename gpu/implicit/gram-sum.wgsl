// Computes the sum of theta theta^T over all rows, times a weight. Input: slots, each with the sum over a
// part of the rows. LANES threads share an element. The whole matrix is written, not one triangle.

var<workgroup> parts: array<f32, THREADS>;

@compute @workgroup_size(THREADS)
fn main(
  @builtin(workgroup_id) group: vec3u,
  @builtin(num_workgroups) groups: vec3u,
  @builtin(local_invocation_index) thread: u32
) {
  // Neighbouring threads have neighbouring elements.
  let at = (group.y * groups.x + group.x) * ELEMENTS + thread % ELEMENTS;
  let lane = thread / ELEMENTS;
  let row = at / STRIDE;
  let column = at % STRIDE;
  // A tile of the lower triangle; elements beyond the rank are 0.
  let down = max(row, column);
  let across = min(row, column);
  let tile = down / 16;
  let place = (tile * (tile + 1) / 2 + across / 16) * 256 + down % 16 * 16 + across % 16;
  var sum = 0.0;
  if (down < RANK) {
    for (var slot = lane; slot < params.slot_count; slot += LANES) {
      sum += slots[slot * SLOT + place];
    }
  }
  parts[thread] = sum;
  workgroupBarrier();
  if (lane == 0 && row < STRIDE) {
    for (var other = 1u; other < LANES; other++) {
      sum += parts[other * ELEMENTS + thread];
    }
    gram[at] = params.weight * sum;
  }
}
