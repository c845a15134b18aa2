// Template: loops are unrolled, so that a thread's elements of A stay in registers.
{%- comment -%}
Computes product = (A v)[row] for this thread's row, where v is in buffer `{{ from }}` of put_vector. Four
adjacent lanes hold four rows of A: each lane has a quarter of the columns of all four, and the lanes exchange
their sums.
{%- endcomment %}
      {
{%- for q in (0..3) %}
        var v{{ q }} = vec4f();
{%- endfor %}
{%- for m in tile_numbers %}
        { let part = vector_part({{ from }}, {{ m }}u * 4u + quad_lane);
{%- for q in (0..3) %} v{{ q }} = fma(use_a(a_{{ m }}_{{ q }}), part, v{{ q }});{% endfor %} }
{%- endfor %}
        let u0 = (v0.x + v0.y) + (v0.z + v0.w);
        let u1 = (v1.x + v1.y) + (v1.z + v1.w);
        let u2 = (v2.x + v2.y) + (v2.z + v2.w);
        let u3 = (v3.x + v3.y) + (v3.z + v3.w);
        let odd = (quad_lane & 1u) == 1u;
        let high = (quad_lane & 2u) == 2u;
        let low_pair = select(u0, u1, odd) + subgroupShuffleXor(select(u1, u0, odd), 1u);
        let high_pair = select(u2, u3, odd) + subgroupShuffleXor(select(u3, u2, odd), 1u);
        product = select(low_pair, high_pair, high) + subgroupShuffleXor(
          select(high_pair, low_pair, high),
          2u
        );
      }
