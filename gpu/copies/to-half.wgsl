// Rounds a matrix to float16, four features a thread; the row after the last becomes 0.
struct Params {
  rows: u32,
  quads: u32,
}

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> factors: array<vec4f>;
@group(0) @binding(2) var<storage, read_write> half: array<vec2u>;

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) id: vec3u, @builtin(num_workgroups) size: vec3u, @builtin(local_invocation_index) thread: u32) {
  let at = (id.y * size.x + id.x) * THREADS + thread;
  let inside = params.rows * params.quads;
  if (at < inside) {
    let x = factors[at];
    half[at] = vec2u(pack2x16float(x.xy), pack2x16float(x.zw));
  } else if (at < inside + params.quads) {
    half[at] = vec2u();
  }
}
