// Rounds a float16 matrix to 8 bits, four features a thread. Each column is divided by its largest |x|, and
// these divisors are stored after the last row.

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
