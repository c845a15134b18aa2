{%- comment -%} Reads the next rating of the walk into {{ into }}, which stays NO_ROW behind the last one. {%- endcomment %}
    if (walk.left > 0u) {
      {{ into }} = ratings[walk.at];
      walk.at++;
      if (walk.at == walk.end) { walk.at = walk.first; }
      walk.left--;
      if (walk.left == 0u) { walk = begin_batch(walk.batch + THREADS / LANES, first, count, number); }
    }
