// Template: each tile or row of A in registers is a variable of its own, so loops over them must be unrolled.
//
// Computes and solves whole rows of implicit data without writing A to device memory, like update-tensor, but
// with weighted ratings. A of every row starts as the Gram matrix, to which the terms of the row's ratings
// are added. Each workgroup takes one row after the other from the list, in which the longest rows are first.
diagnostic(off, chromium.subgroup_matrix_uniformity);
diagnostic(off, subgroup_uniformity);
enable f16;
enable subgroups;
enable chromium_experimental_subgroup_matrix;

#import parts/tensor-declarations
#import parts/register-helpers

#import parts/write-objective
#import parts/finite

@compute @workgroup_size(THREADS)
fn main(
  @builtin(workgroup_id) group: vec3u,
  @builtin(num_workgroups) groups: vec3u,
  @builtin(local_invocation_index) thread: u32,
  @builtin(subgroup_id) subgroup: u32
) {
  let gather_row = thread / LANES_PER_ROW;
  let chunk = thread % LANES_PER_ROW;
  // Layout of A in the solver: four adjacent lanes share four rows of A, each lane has a quarter of their
  // columns. After a product, each lane gets the result of one of these rows, row `thread`.
  let quad_row = (thread / 4u) & 3u;
  let quad_lane = thread & 3u;
  let tile_row = min(thread / 16u, TILES - 1u);
  let own_tile = tile_row;
  let own_line = thread & 15u;
  let is_feature = thread < RANK;
  let own_feature = min(thread, PADDED - 1u);
{%- for pass in passes %}
  var next_{{ pass }} = vec4<u32>();
  var rated_{{ pass }} = 0u;
{%- endfor %}
  var coming = vec2<u32>();
  let stride = groups.x * groups.y;
  var number = group.y * groups.x + group.x;
  if (number >= params.count) {
    return;
  }
  var row = work[number];
  if (thread < BIN) {
    let end = row.y + row.z;
    ring[thread] = entry_of(rating_at(row.y + thread, end));
    ring[BIN + thread] = entry_of(rating_at(row.y + BIN + thread, end));
    coming = rating_at(row.y + 2u * BIN + thread, end);
  }
  var next_x = previous[row.x * PADDED + own_feature];
  var next_shift = shifts[row.x];
  workgroupBarrier();
  {
    let slot = 0u;
    #import parts/tensor-gather
  }
  for (; number < params.count; number += stride) {
    let following = work[min(number + stride, params.count - 1u)];
    let following_end = following.y + following.z;
    let first = row.y;
    let end = row.y + row.z;
    let shift = next_shift;
    let inverse = 1.0;
    var x = next_x;
    var b = 0.0;
    #import parts/tensor-accumulate
{%- for m in tile_numbers %}
    var a_{{ m }}_0 = {{ zero_a }};
    var a_{{ m }}_1 = {{ zero_a }};
    var a_{{ m }}_2 = {{ zero_a }};
    var a_{{ m }}_3 = {{ zero_a }};
{%- endfor %}
    #import parts/tensor-exchange
    b = b * params.unscale;
    // Starts loading the next row's initial x, shift and first ratings; they are used after this row is
    // solved.
    next_x = previous[following.x * PADDED + own_feature];
    next_shift = shifts[following.x];
    var ahead_0 = vec2<u32>();
    var ahead_1 = vec2<u32>();
    if (thread < BIN) {
      ahead_0 = rating_at(following.y + thread, following_end);
      ahead_1 = rating_at(following.y + BIN + thread, following_end);
      coming = rating_at(following.y + 2u * BIN + thread, following_end);
    }
    if (!is_feature) {
      b = 0.0;
      x = 0.0;
    }
{%- capture between %}
    if (thread < BIN) {
      ring[thread] = entry_of(ahead_0);
      ring[BIN + thread] = entry_of(ahead_1);
    }
    // Starts loading the next row's first rows of theta while this row is solved.
    workgroupBarrier();
    {
      let slot = 0u;
      #import parts/tensor-gather
    }
{%- endcapture %}
    #import parts/register-cg
    if (thread < PADDED) {
      let solved = select(0.0, x, row.z > 0u && is_feature);
      if (!is_finite(solved)) {
        atomicMin(&status[0], row.x);
      }
      factors[row.x * PADDED + thread] = solved;
      half[row.x * PADDED + thread] = f16(solved);
      if (thread == 0u) {
        write_objective(row.x, select(0.0, objective, row.z > 0u));
      }
    }
    row = following;
    workgroupBarrier();
  }
}
