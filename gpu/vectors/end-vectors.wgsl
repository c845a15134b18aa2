// Template: code of biases and of the half mirror is left out of variants that do not have them.
// LANES threads per row.

{% render 'parts/row-total' %}
{% render 'parts/write-objective' %}
{% render 'parts/finite' %}
{% render 'parts/write-row', half: half %}
{% render 'parts/row-shift' %}

#import parts/main-by-id
{
  {% render 'parts/vector-row', listed: listed, owned: owned %}
  let objective = gradients[base + QUADS + 1].y;
{%- if biases %}
  let rated = gradients[base + QUADS].y;
  let weight = weight_of(row, n);
{%- endif %}
{%- for i in owned %}
  var x_{{ i }} = vec4f();
  var s_{{ i }} = vec4f();
  if (quad_{{ i }} < QUADS) {
    x_{{ i }} = factors[row * QUADS + quad_{{ i }}];
{%- if biases %}
    s_{{ i }} = gradients[base + QUADS + 4 + quad_{{ i }}];
{%- endif %}
  }
{%- endfor %}
  {% render 'parts/cg-end', owned: owned, biases: biases %}
}
