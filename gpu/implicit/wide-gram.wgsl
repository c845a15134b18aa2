// Template: loops are unrolled, so that a thread's 64 sums stay in registers.
// A workgroup has a tile of 64 x 64 elements; only tiles with elements of the lower triangle are computed. It
// takes SLAB rows of theta at a time.

var<workgroup> left: array<vec4f, SLAB * 16>;
var<workgroup> right: array<vec4f, SLAB * 16>;

#import parts/triangle

// Quad of a row of theta; zero after the last row and beyond the padded rank.
fn theta_at(row: u32, quad: u32, end: u32) -> vec4f {
  if (row >= end || quad >= QUADS) {
    return vec4f();
  }
  return fixed[row * QUADS + quad];
}

#import parts/main
{
  let number = group.y * groups.x + group.x;
  if (number >= params.count * BLOCKS) {
    return;
  }
  // Entry: 0, first row of theta, number of rows, slot.
  let part = work[number / BLOCKS];
  let place = triangle_place(number % BLOCKS);
  let end = part.y + part.z;
{%- render 'parts/slab-sums', sums: sums %}
  for (var row = part.y; row < end; row += SLAB) {
    for (var at = thread; at < SLAB * 16; at += THREADS) {
      left[at] = theta_at(row + at / 16, place.x * 16 + at % 16, end);
      right[at] = theta_at(row + at / 16, place.y * 16 + at % 16, end);
    }
    {% render 'parts/multiply-slabs', sums: sums %}
  }
  let slot = part.w * SLOT_QUADS;
{%- for i in sums %}
{%- for h in (0..1) %}
  {
    let down = place.x * 64 + 4 * own_row + {{ i.offset }};
    let across = place.y * 16 + own_column + {{ h | times: 8 }};
    let tile = down / 16;
    if (tile < TILES && across / 4 <= tile) {
      let at = (tile * (tile + 1) / 2 + across / 4) * 64 + down % 16 * 4 + across % 4;
      slots[slot + at] = sum_{{ i.name }}_{{ h }};
    }
  }
{%- endfor %}
{%- endfor %}
}
