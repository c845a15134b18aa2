// Template: only float16 needs it.
{%- comment -%}
The quad of two words of float16 numbers.
{%- endcomment -%}
{% if half -%}
fn unpacked(packed: vec2u) -> vec4f {
  return vec4f(unpack2x16float(packed.x), unpack2x16float(packed.y));
}

{% endif -%}
