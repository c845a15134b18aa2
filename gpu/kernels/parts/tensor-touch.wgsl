{%- comment -%}
Loads one word of each 32-byte sector of the rows that the ring's slot `slot` names, so that they are near when they are gathered.
What was loaded the last time goes into `sink`, whose value decides nothing.
{%- endcomment %}
{%- for pass in touches %}
          sink ^= touched_{{ pass }};
          { let number = thread + {{ pass }}u * THREADS;
            if (number < BIN * SECTORS) { touched_{{ pass }} = fixed[ring[(slot) * BIN + number / SECTORS].x * CHUNKS + (number % SECTORS) * 2u].x; } }
{%- endfor %}
