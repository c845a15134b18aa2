// Template: loops are unrolled, so that the products of four pairs stay in registers.
// Four neighbouring threads handle four pairs together, so that they load adjacent factors: each thread computes
// a quarter of all four products. Then they exchange the quarters, and each thread adds one pair's product.

const PITCH = THREADS + 1;
var<workgroup> quarters: array<f32, 4 * PITCH>;

#import parts/main
{
  let number = group.y * groups.x + group.x;
  if (number * THREADS >= params.pairs) {
    return;
  }
  let pair = number * THREADS + thread;
  let lane = thread % 4;
  {%- for i in (0..3) %}
  let pair{{ i }} = min(pair - lane + {{ i }}, params.pairs - 1);
  let x{{ i }} = rows[pair{{ i }}] * QUADS + lane;
  let theta{{ i }} = columns[pair{{ i }}] * QUADS + lane;
  var product{{ i }} = vec4f();
  {%- endfor %}
  {%- for part in parts %}
  {%- for i in (0..3) %}
  product{{ i }} = fma(
    row_factors[x{{ i }} + {{ part }}],
    column_factors[theta{{ i }} + {{ part }}],
    product{{ i }}
  );
  {%- endfor %}
  {%- endfor %}
  {%- for i in (0..3) %}
  quarters[{{ i }} * PITCH + thread] = (product{{ i }}.x + product{{ i }}.y)
    + (product{{ i }}.z + product{{ i }}.w);
  {%- endfor %}
  workgroupBarrier();
  if (pair < params.pairs) {
    let mine = lane * PITCH + (thread - lane);
    predictions[pair] = (quarters[mine] + quarters[mine + 1]) + (quarters[mine + 2] + quarters[mine + 3]);
  }
}
