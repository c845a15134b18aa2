// Template: loops are unrolled, so that a thread's 64 scores stay in registers.
// A workgroup has ROWS rows that list columns, and processes all columns of the model, COLUMNS at a time (a
// tile). For a tile, eight features at a time of rows and columns are loaded to workgroup memory, and each
// thread computes 8 x 8 scores in registers. A score that reaches the lowest listed score of its row is
// compared with each listed score of the row.
//
// The rows' listed columns are stored consecutively. The first COUNTS of them are counted in workgroup
// memory, the others and all ties, which are few, in `counts`: two numbers (i32) for each listed column. They
// start at the values there, which may be negative. A column without a score has the threshold LOWEST and no
// ties. A listed column is no longer counted once `depth` columns are before it, and a workgroup ends when none is
// counted.

const LOWEST = -3.40282346638528859812e38f;

// Eight features of rows and columns: [feature / 4][row].
var<workgroup> row_tile: array<vec4f, 2 * ROWS>;
var<workgroup> column_tile: array<vec4f, 2 * COLUMNS>;
// For each row, the lowest threshold of its listed columns that are still counted.
var<workgroup> lows: array<f32, ROWS>;
// Start and end of each row's listed columns.
var<workgroup> starts: array<u32, ROWS>;
var<workgroup> ends: array<u32, ROWS>;
var<workgroup> own_counts: array<atomic<u32>, COUNTS>;
// Number of tiles to process. A check raises it by REFRESH if a listed column is still counted.
var<workgroup> reach: atomic<u32>;

fn bits(above: vec4<bool>) -> vec4u {
  return select(vec4u(), vec4u(1), above);
}

#import parts/main
{
  let first_row = (group.y * groups.x + group.x) * ROWS;
  if (first_row >= params.rows) {
    return;
  }
  // THREADS == ROWS: each thread has one row of its own in addition to its 8 x 8 scores.
  let has_row = first_row + thread < params.rows;
  let own_row = rows[params.from_row + min(first_row + thread, params.rows - 1)];
  let first_place = u32(offsets[rows[params.from_row + first_row]]) - params.first;
  let last_place = u32(offsets[rows[params.from_row + min(first_row + ROWS, params.rows) - 1] + 1])
    - params.first;
  let start = u32(offsets[own_row]) - params.first;
  let end = u32(offsets[own_row + 1]) - params.first;
  starts[thread] = start;
  ends[thread] = end;
  for (var k = thread; k < COUNTS; k += THREADS) {
    if (k < last_place - first_place) {
      atomicStore(&own_counts[k], atomicLoad(&counts[2 * (first_place + k)]));
    }
  }
  if (thread == 0) {
    atomicStore(&reach, 0u);
  }

  let lane_row = thread / 8;
  let lane_column = thread % 8;
  let tiles = (params.columns + COLUMNS - 1) / COLUMNS;
  for (var tile = 0u; tile < tiles; tile++) {
    if (tile % REFRESH == 0) {
      workgroupBarrier();
      var low = -LOWEST;
      for (var place = start; has_row && place < end; place++) {
        var count = 0u;
        if (place - first_place < COUNTS) {
          count = atomicLoad(&own_counts[place - first_place]);
        } else {
          count = atomicLoad(&counts[2 * place]);
        }
        if (i32(count) < params.depth) {
          low = min(low, thresholds[place]);
        }
      }
      lows[thread] = low;
      if (low < -LOWEST) {
        atomicMax(&reach, tile + REFRESH);
      }
      if (workgroupUniformLoad(&reach) <= tile) {
        break;
      }
    }
#import parts/score-tile
    let left_columns = vec4u(0, 8, 16, 24) + (first_column + lane_column);
    let right_columns = left_columns + 32;
    // One bit for each of the thread's eight rows: 1 if any of its scores reaches the row's lowest threshold.
    var reaches_low = 0u;
    {%- for i in (0..7) %}
    var left{{ i }} = vec4f(s{{ i }}0, s{{ i }}1, s{{ i }}2, s{{ i }}3);
    var right{{ i }} = vec4f(s{{ i }}4, s{{ i }}5, s{{ i }}6, s{{ i }}7);
    {%- endfor %}
    if (first_column + COLUMNS > params.columns) {
      {%- for i in (0..7) %}
      left{{ i }} = select(vec4f(LOWEST), left{{ i }}, left_columns < vec4u(params.columns));
      right{{ i }} = select(vec4f(LOWEST), right{{ i }}, right_columns < vec4u(params.columns));
      {%- endfor %}
    }
    {%- for i in (0..7) %}
    let low{{ i }} = vec4f(lows[lane_row + {{ i | times: 16 }}]);
    if (any(left{{ i }} >= low{{ i }}) || any(right{{ i }} >= low{{ i }})) {
      reaches_low |= 1u << {{ i }}u;
    }
    {%- endfor %}
    while (reaches_low != 0) {
      let i = firstTrailingBit(reaches_low);
      reaches_low &= reaches_low - 1;
      var left = left0;
      var right = right0;
      {%- for i in (1..7) %}
      if (i == {{ i }}u) {
        left = left{{ i }};
        right = right{{ i }};
      }
      {%- endfor %}
      let row = lane_row + 16 * i;
      for (var place = starts[row]; place < ends[row]; place++) {
        let threshold = thresholds[place];
        if (threshold < lows[row]) {
          continue;
        }
        let score = vec4f(threshold);
        let higher = bits(left > score) + bits(right > score);
        let equal = bits(left == score) + bits(right == score);
        let tied = (equal.x + equal.y) + (equal.z + equal.w);
        if (tied > 0 && threshold > LOWEST) {
          atomicAdd(&counts[2 * place + 1], tied);
        }
        let before = (higher.x + higher.y) + (higher.z + higher.w);
        if (before > 0) {
          let own_place = place - first_place;
          if (own_place < COUNTS) {
            atomicAdd(&own_counts[own_place], before);
          } else {
            atomicAdd(&counts[2 * place], before);
          }
        }
      }
    }
  }

  workgroupBarrier();
  for (var k = thread; k < min(COUNTS, last_place - first_place); k += THREADS) {
    atomicStore(&counts[2 * (first_place + k)], atomicLoad(&own_counts[k]));
  }
}
