#import parts/rounded-quad

#import parts/main
{
  let at = (group.y * groups.x + group.x) * THREADS + thread;
  let count = params.rows * params.quads;
  if (at < count) {
    packed[at] = rounded_quad(half[at], maxima[at % params.quads]);
  }
  if (at < params.quads) {
    let bits = bitcast<vec4u>(maxima[at]);
    for (var i = 0u; i < 4; i++) {
      packed[count + 4 * at + i] = bits[i];
    }
  }
}
