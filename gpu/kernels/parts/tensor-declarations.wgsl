// Staging of gathered rows: BIN rows of CHUNKS x 16 bytes and one more chunk, an odd stride that spreads the banks.
// Later the tiles of A pass through the same memory to the threads' registers.
var<workgroup> staged: array<vec4<u32>, STAGED>;
// A ring of four bins of (column, rating): two are in use, one is ready, one is being loaded.
var<workgroup> ring: array<vec2<u32>, 4 * BIN>;

// Column and scaled float16 rating number `at`, with biases a 1 beside it, so that the same products sum the rows of theta; or the row of zeros behind the end.
fn rating_at(at: u32, end: u32) -> vec2<u32> {
  var result = vec2<u32>(params.zero_row, 0u);
  if (at < end) {
    let column = indices[at];
    result = vec2<u32>(column, pack2x16float(vec2f(values[at] * params.scale, {% if BIASES %}1.0{% else %}0.0{% endif %})));
  }
  return result;
}
