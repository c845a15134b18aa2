// Template: loops are unrolled, so that a thread's 64 scores stay in registers.
// A workgroup has ROWS rows and processes all columns, COLUMNS at a time (a tile). Eight features at a time
// of rows and columns are loaded to workgroup memory, and each thread computes 8 x 8 scores in registers. Few
// scores (about n ln(columns / n) a row) are better than the worst in their row's list. They are appended to
// a queue of the row, and one thread per row moves them from the queue to the list: a heap whose root is the
// worst entry.
//
//   lists   items u32[list_rows][n], then from `scores_at` on scores f32[list_rows][n]; best first at the end

const NONE = 0xffffffffu;
const NAN_BITS = 0x7fc00000u;
// The lowest score.
const LOWEST = -3.40282346638528859812e38f;

// Eight features of rows and columns: [feature / 4][row].
var<workgroup> row_tile: array<vec4f, 2 * ROWS>;
var<workgroup> column_tile: array<vec4f, 2 * COLUMNS>;
// Candidates: [place][row].
var<workgroup> queued_scores: array<f32, QUEUE * ROWS>;
var<workgroup> queued_columns: array<u32, QUEUE * ROWS>;
var<workgroup> queued: array<atomic<u32>, ROWS>;
// Score and item of the worst entry of each row's list.
var<workgroup> thresholds: array<f32, ROWS>;
var<workgroup> threshold_items: array<u32, ROWS>;
// `overflow`: the last round in which a queue was full. `reach`: number of tiles to process, raised to the
// next tile by each row whose list that tile can still improve.
var<workgroup> overflow: atomic<u32>;
var<workgroup> reach: atomic<u32>;

// Start of the list of the thread's own row, and its worst entry.
var<private> list: u32;
var<private> worst_score: f32;
var<private> worst_item: u32;

fn is_worse(score: f32, item: u32, than_score: f32, than_item: u32) -> bool {
  return score < than_score || (score == than_score && item > than_item);
}

// Replaces the worst entry of a heap of `count` entries, and moves the new entry down to its place.
fn replace_root(count: u32, score: f32, item: u32) {
  var at = 0u;
  loop {
    var child = 2 * at + 1;
    if (child >= count) {
      break;
    }
    var child_score = bitcast<f32>(lists[params.scores_at + list + child]);
    var child_item = lists[list + child];
    if (child + 1 < count) {
      let right_score = bitcast<f32>(lists[params.scores_at + list + child + 1]);
      let right_item = lists[list + child + 1];
      if (is_worse(right_score, right_item, child_score, child_item)) {
        child++;
        child_score = right_score;
        child_item = right_item;
      }
    }
    if (!is_worse(child_score, child_item, score, item)) {
      break;
    }
    lists[params.scores_at + list + at] = bitcast<u32>(child_score);
    lists[list + at] = child_item;
    at = child;
  }
  lists[params.scores_at + list + at] = bitcast<u32>(score);
  lists[list + at] = item;
}

fn is_excluded(row: u32, item: u32) -> bool {
  var low = u32(exclude_offsets[row]);
  let end = u32(exclude_offsets[row + 1]);
  var high = end;
  while (low < high) {
    let middle = (low + high) / 2;
    if (exclude_indices[middle] < item) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  if (low >= end) {
    return false;
  }
  return exclude_indices[low] == item;
}

// The item of a column: the number that is listed, and that orders equal scores.
fn item_of(column: u32) -> u32 {
  if (ORDERED) {
    return order[column];
  }
  return column;
}

// One bit for each of eight scores: 1 if the score reaches the threshold.
fn above(left: vec4f, right: vec4f, threshold: f32) -> u32 {
  let low = select(vec4<u32>(), vec4<u32>(1u, 2u, 4u, 8u), left >= vec4f(threshold));
  let high = select(vec4<u32>(), vec4<u32>(16u, 32u, 64u, 128u), right >= vec4f(threshold));
  let both = low | high;
  return both.x | both.y | both.z | both.w;
}

// True when the row's queue had room.
fn enqueue(row: u32, column: u32, score: f32, round: u32) -> bool {
  let place = atomicAdd(&queued[row], 1u);
  if (place >= QUEUE) {
    atomicMax(&overflow, round);
    return false;
  }
  queued_scores[place * ROWS + row] = score;
  queued_columns[place * ROWS + row] = column;
  return true;
}

#import parts/main
{
  let first_row = (group.y * groups.x + group.x) * ROWS;
  if (first_row >= params.rows) {
    return;
  }
  // THREADS == ROWS: each thread has one row of its own in addition to its 8 x 8 scores.
  let has_row = first_row + thread < params.rows;
  let own_row = params.from_row + min(first_row + thread, params.rows - 1);
  let first_entry = (params.list_row + first_row) * params.n;
  list = first_entry + thread * params.n;
  worst_score = LOWEST;
  worst_item = NONE;
  for (var k = thread; k < min(ROWS, params.rows - first_row) * params.n; k += THREADS) {
    lists[first_entry + k] = NONE;
    lists[params.scores_at + first_entry + k] = bitcast<u32>(LOWEST);
  }
  var squares = 0.0;
  for (var k = 0u; k < params.quads; k++) {
    let x = row_factors[own_row * params.quads + k];
    squares += dot(x, x);
  }
  let own_norm = sqrt(squares);
  thresholds[thread] = select(-LOWEST, LOWEST, has_row);
  threshold_items[thread] = select(0u, NONE, has_row);
  atomicStore(&queued[thread], 0u);
  if (thread == 0) {
    atomicStore(&overflow, 0u);
    atomicStore(&reach, 0u);
  }
  storageBarrier();
  workgroupBarrier();

  let lane_row = thread / 8;
  let lane_column = thread % 8;
  let tiles = (params.columns + COLUMNS - 1) / COLUMNS;
  var round = 0u;
  for (var tile = 0u; tile < tiles; tile++) {
    if (BOUNDED) {
      if (has_row && own_norm * bounds[tile * COLUMNS / 8] >= worst_score) {
        atomicMax(&reach, tile + 1);
      }
      if (workgroupUniformLoad(&reach) <= tile) {
        break;
      }
    }
#import parts/score-tile
    {%- for i in (0..7) %}
    let threshold{{ i }} = thresholds[lane_row + {{ i | times: 16 }}];
    {%- endfor %}
    // One bit for each of the thread's 64 scores: 1 if it is a candidate. Rows i = 0 to 3 are in x, rows 4
    // to 7 in y.
    var candidates = vec2<u32>();
    {%- for i in (0..7) %}
    {%- assign word = "x" %}{% assign shift = i | times: 8 %}
    {%- if i > 3 %}{% assign word = "y" %}{% assign shift = i | minus: 4 | times: 8 %}{% endif %}
    let left{{ i }} = vec4f(s{{ i }}0, s{{ i }}1, s{{ i }}2, s{{ i }}3);
    let right{{ i }} = vec4f(s{{ i }}4, s{{ i }}5, s{{ i }}6, s{{ i }}7);
    if (any(left{{ i }} >= vec4f(threshold{{ i }})) || any(right{{ i }} >= vec4f(threshold{{ i }}))) {
      candidates.{{ word }} |= above(left{{ i }}, right{{ i }}, threshold{{ i }}) << {{ shift }}u;
    }
    {%- endfor %}
    // Columns after the last are not candidates.
    let own_columns = select(
      (params.columns - first_column - lane_column + 7) / 8,
      0u,
      first_column + lane_column >= params.columns
    );
    candidates &= vec2<u32>(0x01010101u * ((1u << min(own_columns, 8u)) - 1u));
    loop {
      round++;
      while (any(candidates != vec2<u32>())) {
        let bit = select(
          32u + firstTrailingBit(candidates.y),
          firstTrailingBit(candidates.x),
          candidates.x != 0u
        );
        let i = bit / 8u;
        let j = bit % 8u;
        var four = select(right0, left0, j < 4u);
        {%- for i in (1..7) %}
        if (i == {{ i }}u) { four = select(right{{ i }}, left{{ i }}, j < 4u); }
        {%- endfor %}
        let two = select(four.zw, four.xy, (j & 2u) == 0u);
        let row = lane_row + 16u * i;
        let column = first_column + lane_column + 8u * j;
        let score = select(two.y, two.x, (j & 1u) == 0u);
        // `candidates` was made from scores alone, and before the lists changed in earlier rounds. So score
        // and item are compared again; otherwise scores that equal the worst would fill the queue again and
        // again.
        if (is_worse(thresholds[row], threshold_items[row], score, item_of(column)) && !enqueue(row, column, score, round)) {
          break;
        }
        candidates.x &= candidates.x - select(0u, 1u, bit < 32u);
        candidates.y &= candidates.y - select(1u, 0u, bit < 32u);
      }
      let again = workgroupUniformLoad(&overflow) == round;
      let waiting = min(atomicLoad(&queued[thread]), QUEUE);
      if (waiting > 0) {
        for (var place = 0u; has_row && place < waiting; place++) {
          let score = queued_scores[place * ROWS + thread];
          let column = queued_columns[place * ROWS + thread];
          let item = item_of(column);
          if (is_worse(worst_score, worst_item, score, item) && !(EXCLUDING && is_excluded(params.exclude_row + own_row, item))) {
            replace_root(params.n, score, item);
            worst_score = bitcast<f32>(lists[params.scores_at + list]);
            worst_item = lists[list];
            thresholds[thread] = worst_score;
            threshold_items[thread] = worst_item;
          }
        }
        atomicStore(&queued[thread], 0u);
      }
      if (!again) {
        break;
      }
      workgroupBarrier();
    }
  }

  if (has_row) {
    for (var last = params.n - 1; last > 0; last--) {
      let score = bitcast<f32>(lists[params.scores_at + list + last]);
      let item = lists[list + last];
      let root_score = lists[params.scores_at + list];
      let root_item = lists[list];
      replace_root(last, score, item);
      lists[params.scores_at + list + last] = root_score;
      lists[list + last] = root_item;
    }
    for (var k = 0u; k < params.n; k++) {
      if (lists[list + k] == NONE) {
        lists[params.scores_at + list + k] = NAN_BITS;
      }
    }
  }
}
