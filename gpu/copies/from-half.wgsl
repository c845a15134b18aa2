#import parts/main
{
  let at = (group.y * groups.x + group.x) * THREADS + thread;
  if (at < params.quads) {
    let packed = half[at];
    factors[at] = vec4f(unpack2x16float(packed.x), unpack2x16float(packed.y));
  }
}
