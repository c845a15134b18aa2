#part slab-sums
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

#part multiply-slabs
// Template: loops are unrolled, so that a thread's 64 sums stay in registers.
{%- comment -%}
Adds the product of two slabs to a tile of 64 x 64 sums: sum += left^T right. The slabs are in workgroup
memory: SLAB rows of 64 numbers (16 quads) each. Each of 64 threads has two quads of rows (own_row and own_row
+ 8) and two quads of columns (own_column and own_column + 8).
{%- endcomment %}
    workgroupBarrier();
    for (var k = 0u; k < SLAB; k++) {
{%- for h in (0..1) %}
      let l{{ h }} = left[k * 16 + own_row + {{ h | times: 8 }}];
      let r{{ h }} = right[k * 16 + own_column + {{ h | times: 8 }}];
{%- endfor %}
{%- for i in sums %}
{%- for h in (0..1) %}
      sum_{{ i.name }}_{{ h }} =
        fma(vec4f(l{{ i.half }}.{{ i.component }}), r{{ h }}, sum_{{ i.name }}_{{ h }});
{%- endfor %}
{%- endfor %}
    }
    workgroupBarrier();
