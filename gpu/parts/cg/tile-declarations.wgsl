// Template: the type of the tile's elements depends on the precision.
{%- comment -%}
The workgroup memory of tile-product. For each of ROWS rows: `tile`, rows of theta of TILE ratings; `own`, the
row's vector; and `counted`, each rating's factor in the sum. The rows of theta are PITCH groups of four
features apart, an odd number, so that threads with different ratings read different banks.
{%- endcomment -%}
var<workgroup> tile: array<{{ quad_type }}, ROWS * TILE * PITCH>;
var<workgroup> own: array<vec4f, ROWS * QUADS>;
var<workgroup> counted: array<f32, ROWS * TILE>;

fn features(content: {{ quad_type }}) -> vec4f {
{% if half %}
  return vec4f(unpack2x16float(content.x), unpack2x16float(content.y));
{% else %}
  return content;
{% endif %}
}

// This thread's part of the product theta_v^T p of a rating and its row's vector: every SPLIT-th group of
// four features.
fn share_of(batch: u32, rating: u32, first: u32) -> f32 {
  var share = vec4f();
  for (var quad = first; quad < QUADS; quad += SPLIT) {
    share = fma(features(tile[rating * PITCH + quad]), own[batch * QUADS + quad], share);
  }
  return share.x + share.y + (share.z + share.w);
}
