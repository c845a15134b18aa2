{%- comment -%} Stages this thread's share of the ring's bin {{ bin }}, whose rows of theta are in next_0 to next_3. {%- endcomment %}
      if (chunk < TILES) {
{%- unless RATING_ROW %}
        // The ratings stand in the padding, as features 8 to 10 of the last tile.
        if (chunk == TILES - 1u) {
          let ratings = rated[({{ bin }} & 3u) * (BIN / 4u) + group];
{%- for r in (0..3) %}
          next_{{ r }}.z = ratings[{{ r }}];
{%- endfor %}
        }
{%- endunless %}
        // Four by four bytes change places.
        let even_low = (next_0 & BYTES) | ((next_1 & BYTES) << EIGHT);
        let odd_low = ((next_0 >> EIGHT) & BYTES) | (next_1 & ~BYTES);
        let even_high = (next_2 & BYTES) | ((next_3 & BYTES) << EIGHT);
        let odd_high = ((next_2 >> EIGHT) & BYTES) | (next_3 & ~BYTES);
        let line_0 = (even_low & WORDS) | (even_high << SIXTEEN);
        let line_1 = (odd_low & WORDS) | (odd_high << SIXTEEN);
        let line_2 = (even_low >> SIXTEEN) | (even_high & ~WORDS);
        let line_3 = (odd_low >> SIXTEEN) | (odd_high & ~WORDS);
        let place = chunk * TILE_VECTORS + group / 4u;
{%- for quad in (0..3) %}
{%- for line in (0..3) %}
        staged[place + {{ quad | times: 4 | plus: line }}u * ROW_VECTORS][group & 3u] = line_{{ line }}[{{ quad }}];
{%- endfor %}
{%- endfor %}
      }
{%- if RATING_ROW %}
      // The ratings have a tile row of their own, whose other lines may hold anything.
      if (thread < BIN / 4u) {
        let ratings = rated[({{ bin }} & 3u) * (BIN / 4u) + thread];
        let place = TILES * TILE_VECTORS + thread / 4u;
        staged[place][thread & 3u] = bytes_of(ratings, 0u);
        staged[place + ROW_VECTORS][thread & 3u] = bytes_of(ratings, 8u);
{%- if BIASES %}
        staged[place + 2u * ROW_VECTORS][thread & 3u] = bytes_of(ratings, 16u);
        t_part += sum_of(ratings);
{%- endif %}
      }
{%- endif %}
