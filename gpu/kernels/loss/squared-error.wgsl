// Sums e^2 and |e| over the ratings [first, last), e = r - x.theta, one pair of sums for each workgroup; the host adds them
// up in double precision. A team of four threads takes STEPS * 4 consecutive ratings, of one row or several: of four
// ratings at a time each thread forms a quarter of the products, the quarters are exchanged through workgroup memory, and each
// thread gets one rating's error.
struct Params {
  from_row: u32,
  to_row: u32,
  first: u32,
  last: u32,
  // `first` rounded down to a multiple of 4, and with biases the mean.
  origin: u32,
  base: f32,
}

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> row_pointers: array<i32>;
@group(0) @binding(2) var<storage, read> indices: array<vec4u>;
@group(0) @binding(3) var<storage, read> values: array<f32>;
@group(0) @binding(4) var<storage, read> row_factors: array<vec4f>;
@group(0) @binding(5) var<storage, read> column_factors: array<vec4f>;
@group(0) @binding(6) var<storage, read> row_bias: array<f32>;
@group(0) @binding(7) var<storage, read> column_bias: array<f32>;
@group(0) @binding(8) var<storage, read_write> sums: array<vec2f>;

// Two buffers in turn, so that one barrier a step suffices; rows of THREADS + 1 keep both directions free of conflicts.
const PITCH = THREADS + 1;
var<workgroup> quarters: array<f32, 2 * 4 * PITCH>;

// The row of [from_row, to_row) that a rating belongs to.
fn row_of(rating: u32) -> u32 {
  var low = params.from_row;
  var high = params.to_row - 1;
  while (low < high) {
    let middle = (low + high) / 2;
    if (u32(row_pointers[middle + 1]) <= rating) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u, @builtin(local_invocation_index) thread: u32) {
  let number = group.y * groups.x + group.x;
  if (number * THREADS * STEPS >= params.last - params.origin) {
    return;
  }
  let lane = thread % 4;
  var rating = params.origin + (number * THREADS + thread - lane) * STEPS;
  var row = row_of(clamp(rating, params.first, params.last - 1));
  var row_end = u32(row_pointers[row + 1]);
  var squared = 0.0;
  var absolute = 0.0;
  for (var step = 0u; step < STEPS; step++) {
    // Threads without ratings work on the last one and leave its error out.
    let four = indices[min(rating, params.last - 1) / 4];
    {%- for i in (0..3) %}
    let rating{{ i }} = clamp(rating + {{ i }}, params.first, params.last - 1);
    while (rating{{ i }} >= row_end) {
      row++;
      row_end = u32(row_pointers[row + 1]);
    }
    let row{{ i }} = row;
    let column{{ i }} = select(0u, four[{{ i }}], rating{{ i }} == rating + {{ i }});
    let x{{ i }} = row{{ i }} * QUADS + lane;
    let theta{{ i }} = column{{ i }} * QUADS + lane;
    var product{{ i }} = vec4f();
    {%- endfor %}
    {%- for part in parts %}
    {%- for i in (0..3) %}
    product{{ i }} = fma(row_factors[x{{ i }} + {{ part }}], column_factors[theta{{ i }} + {{ part }}], product{{ i }});
    {%- endfor %}
    {%- endfor %}
    let at = (step % 2) * 4 * PITCH;
    {%- for i in (0..3) %}
    quarters[at + {{ i }} * PITCH + thread] = (product{{ i }}.x + product{{ i }}.y) + (product{{ i }}.z + product{{ i }}.w);
    {%- endfor %}
    workgroupBarrier();
    let own = rating + lane;
    if (own >= params.first && own < params.last) {
      let mine = at + lane * PITCH + (thread - lane);
      var predicted = (quarters[mine] + quarters[mine + 1]) + (quarters[mine + 2] + quarters[mine + 3]);
      if (BIASED) {
        let own_row = select(select(row0, row1, lane == 1), select(row2, row3, lane == 3), lane >= 2);
        predicted += params.base + row_bias[own_row] + column_bias[four[lane]];
      }
      let error = values[own] - predicted;
      squared = fma(error, error, squared);
      absolute += abs(error);
    }
    rating += 4;
  }
  workgroupBarrier();
  quarters[thread] = squared;
  quarters[THREADS + thread] = absolute;
  for (var half = THREADS / 2; half > 0; half /= 2) {
    workgroupBarrier();
    if (thread < half) {
      quarters[thread] += quarters[thread + half];
      quarters[THREADS + thread] += quarters[THREADS + thread + half];
    }
  }
  if (thread == 0) {
    sums[number] = vec2f(quarters[0], quarters[THREADS]);
  }
}
