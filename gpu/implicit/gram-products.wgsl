// Template: loops are unrolled, so that a thread's 64 sums stay in registers.
// G is symmetric and stored in full. A workgroup has a tile of 64 rows and 64 columns of the product.

var<workgroup> left: array<vec4f, SLAB * 16>;
var<workgroup> right: array<vec4f, SLAB * 16>;

#import parts/main
{
  let number = group.y * groups.x + group.x;
  let first_row = number / COLUMN_TILES * 64;
  let first_quad = number % COLUMN_TILES * 16;
  if (first_row >= params.count) {
    return;
  }
{%- render 'parts/slab-sums', sums: sums %}
  // A thread loads four numbers of each of four rows of V, and stores them transposed.
  let load_rows = thread / 4;
  let load_quad = thread % 4;
{%- for i in (0..3) %}
  let row_{{ i }} = params.first + min(first_row + 4 * load_rows + {{ i }}, params.count - 1);
{%- endfor %}
  for (var slab = 0u; slab < QUADS; slab += SLAB / 4) {
{%- for i in (0..3) %}
    let v{{ i }} = vectors[row_{{ i }} * QUADS + slab + load_quad];
{%- endfor %}
{%- for j in components %}
    left[(4 * load_quad + {{ forloop.index0 }}) * 16 + load_rows] =
      vec4f(v0.{{ j }}, v1.{{ j }}, v2.{{ j }}, v3.{{ j }});
{%- endfor %}
    for (var at = thread; at < SLAB * 16; at += THREADS) {
      right[at] = gram[(4 * slab + at / 16) * QUADS + min(first_quad + at % 16, QUADS - 1)];
    }
    {% render 'parts/multiply-slabs', sums: sums %}
  }
{%- for i in sums %}
{%- for h in (0..1) %}
  {
    let row = first_row + 4 * own_row + {{ i.offset }};
    let quad = first_quad + own_column + {{ h | times: 8 }};
    if (row < params.count && quad < QUADS) {
      products[row * QUADS + quad] = sum_{{ i.name }}_{{ h }};
    }
  }
{%- endfor %}
{%- endfor %}
}
