#import parts/main
{
  let at = (group.y * groups.x + group.x) * THREADS + thread;
  let count = params.rows * params.quads;
  if (at < count) {
    let own = count + 4 * (at % params.quads);
    let largest = bitcast<vec4f>(vec4u(packed[own], packed[own + 1], packed[own + 2], packed[own + 3]));
    let x = unpack4x8snorm(packed[at]) * largest;
    half[params.first + at] = vec2u(pack2x16float(x.xy), pack2x16float(x.zw));
  }
}
