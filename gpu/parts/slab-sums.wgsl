// Template: loops are unrolled, so that a thread's 64 sums stay in registers.
{%- comment -%}
The sums of a thread of 64, for parts/multiply-slabs.
{%- endcomment %}
  let own_row = thread / 8;
  let own_column = thread % 8;
{%- for i in sums %}
  var sum_{{ i.name }}_0 = vec4f();
  var sum_{{ i.name }}_1 = vec4f();
{%- endfor -%}
