{%- comment -%} The next rating of the walk into {{ into }}, which stays NO_ROW behind the last one. {%- endcomment %}
    if (walk.batch < batches) {
      {{ into }} = ratings[walk.at];
      walk.at++;
      if (walk.at >= walk.end) {
        walk.batch += THREADS / LANES;
        walk = begin_batch(walk, first, count, batches);
      }
    }
