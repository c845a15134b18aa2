// Template: loops are unrolled, so that a thread's elements stay in registers.
{%- comment -%}
Writes column k of the matrix, which is spread over the threads' registers, to workgroup memory: `column` from
`start` on.
{%- endcomment %}
{%- if unrolled %}
{%- for group in groups %}
          pass_on(group_{{ group }}, place_{{ group }}, k, start);
{%- endfor %}
{%- else %}
          for (var group = 0u; group < GROUPS; group++) {
            pass_on(kept[group], place_of(thread + group * THREADS), k, start);
          }
{%- endif %}
