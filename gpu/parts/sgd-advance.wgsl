// Template: the including shader names the variables to fill.
{%- comment -%}
Reads the next GROUP ratings of a team of threads, into {{ into }}, and moves the team's position `walk` on. A
team takes one batch of ratings after the other. In a batch it starts at some rating, continues from the end
to the beginning, and stops after `left` ratings. Entries after the last rating of a batch, and after the last
batch, are NO_RATING.
{%- endcomment %}
{%- for slot in slots %}
    {{ into }}_{{ slot }} = NO_RATING;
{%- endfor %}
    if (walk.left > 0u) {
{%- for slot in slots %}
      {
        let place = {% if SPREAD %}lane % 4u{% else %}{{ slot }}u{% endif %};
        var index = walk.at + place;
        if (index >= walk.end) { index -= walk.end - walk.first; }
        if (place < walk.left) { {{ into }}_{{ slot }} = ratings[index]; }
      }
{%- endfor %}
      if (walk.left > GROUP) {
        walk.left -= GROUP;
        walk.at += GROUP;
        if (walk.at >= walk.end) { walk.at -= walk.end - walk.first; }
      } else {
        walk = begin_batch(walk.batch + THREADS / LANES, first, count, number);
      }
    }
