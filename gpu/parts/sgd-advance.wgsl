// Template: names of variables are made from the group that is read.
{%- comment -%}
Reads the next GROUP of ratings that a team of threads steps, into {{ into }}, and moves on. `walk` is the
team's position: a batch of ratings, from `first` to `end`, in which it starts at a given place and wraps
around. After the last rating of a batch, and after the last batch, ratings are NO_RATING.
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
