#import parts/main-by-id
{
  let at = (id.y * size.x + id.x) * THREADS + thread;
  let inside = params.rows * params.quads;
  if (at < inside) {
    let x = factors[at];
    half[at] = vec2u(pack2x16float(x.xy), pack2x16float(x.zw));
  } else if (at < inside + params.quads) {
    half[at] = vec2u();
  }
}
