// Rounds a matrix to float16, four features a thread; the row after the last becomes 0.

@compute @workgroup_size(THREADS)
fn main(
  @builtin(workgroup_id) id: vec3u,
  @builtin(num_workgroups) size: vec3u,
  @builtin(local_invocation_index) thread: u32
) {
  let at = (id.y * size.x + id.x) * THREADS + thread;
  let inside = params.rows * params.quads;
  if (at < inside) {
    let x = factors[at];
    half[at] = vec2u(pack2x16float(x.xy), pack2x16float(x.zw));
  } else if (at < inside + params.quads) {
    half[at] = vec2u();
  }
}
