// With AdaGrad, the rate depends on the row.

#import parts/main
{
  let at = (group.y * groups.x + group.x) * THREADS + thread;
  if (at >= params.quads) {
    return;
  }
  var rate = params.rate;
  if (ADAPTIVE) {
    rate *= inverseSqrt(1.0 + sums[(at / params.row_quads) * SUM_STRIDE]);
  }
  let column = (at % params.row_quads) * 4u;
  let columns = vec4u(column, column + 1u, column + 2u, column + 3u);
  var weights = vec4f(params.offset);
  weights = select(weights, vec4f(params.damping), columns == vec4u(params.own));
  weights = select(weights, vec4f(), columns == vec4u(params.one));
  factors[at] /= 1.0 + rate * weights;
}
