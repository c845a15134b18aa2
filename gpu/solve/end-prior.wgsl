// Template: kernels without a float16 mirror or biases do not have their buffers.

var<workgroup> partial: array<f32, THREADS>;

#import parts/finite
#import parts/row-shift
#import parts/write-row

{% if implicit %}
// Four numbers of G a, for the row's prior a.
fn gram_product(row: u32, quad: u32) -> vec4f {
  var sum = vec4f();
  for (var k = 0u; k < RANK; k++) {
    let at = k * STRIDE + 4 * quad;
    sum = fma(vec4f(prior[row * QUADS + k / 4][k % 4]), vec4f(more[at], more[at + 1], more[at + 2], more[at + 3]), sum);
  }
  return sum;
}
{% endif %}

#import parts/main
{
  #import parts/number
{% if listed %}
  let row = row_pointers[4 * number];
  let rated = row_pointers[4 * number + 2] > 0;
{% else %}
  let row = params.first + number;
  let rated = row_pointers[row + 1] != row_pointers[row];
{% endif %}
  var sum = 0.0;
  for (var quad = thread; quad < QUADS; quad += THREADS) {
    let a = prior[row * QUADS + quad];
    if (rated) {
      sum = fma(shift_of(row), dot(a, a), sum);
    } else {
{% if implicit %}
      sum += dot(a, gram_product(row, quad));
{% endif %}
      _ = write_quad(row, quad, a);
    }
  }
  #import parts/add-threads
  if (thread == 0) {
    var objective = partial[0];
{% if biases %}
    let own = more[row];
    if (rated) {
      objective = fma(own_shift_of(row) * own, own, objective);
    } else {
      bias[row] = own;
    }
{% endif %}
    status[4 + row] = bitcast<u32>(bitcast<f32>(status[4 + row]) + objective);
  }
}
