// Thread 0 chooses the next stage of the solve, and the features that change sides in it: that move into or
// out of P, the set of features that may differ from 0.
    if (thread == 0) {
      let remarked = atomicExchange(&remarks, 0u);
      var count = 0u;
      var last = 0u;
      for (var word = 0u; word < WORDS; word++) {
        turning[word] = atomicExchange(&misplaced[word], 0u);
        count += countOneBits(turning[word]);
        last = select(last, word, turning[word] != 0);
      }
      steps++;
      stuck = stuck || steps > MOST_STEPS || (current == SWEEP && steps > 1 && swept_features == 0);
      stage = SWEEP;
      if (current == CORRECT || (current == SWEEP && (count == 0 || stuck))) {
        stage = VERIFY;
      } else if (current == VERIFY && (remarked & 1) == 1 && corrections < 2) {
        corrections++;
        stage = CORRECT;
      } else if (current == VERIFY && (count == 0 || stuck || verified == 4)) {
        stage = select(DONE, FAILED, (remarked & 2) == 2);
      } else if (current == VERIFY) {
        verified++;
        corrections = 0;
      }
      if (stage == SWEEP) {
        patience = select(patience - 1, PATIENCE, count < fewest);
        fewest = min(fewest, count);
        if (patience < 0) {
          for (var word = 0u; word < last; word++) {
            turning[word] = 0;
          }
          turning[last] = 1u << firstLeadingBit(turning[last]);
        }
      }
    }
