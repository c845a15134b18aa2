import { describe, expect, it } from 'vitest';
import { rotation } from '../../cpu/tasks/lists/list-vectors.ts';
import { fillSignTable } from '../../cpu/tasks/lists/search-lists.ts';
import { CounterRandom } from '../../engine/random.ts';

const RANK = 34;
const COLUMNS = 3000;
const BEST = 40;
const random = new CounterRandom(5);

/** Differences whose last feature, such as a bias, is larger than the others, with some far from the rest. */
function differences(): Float32Array[] {
  return Array.from({ length: COLUMNS }, (_, column) =>
    Float32Array.from({ length: RANK }, (_one, k) => {
      const value = random.gaussian(2 * (column * RANK + k));
      return k === RANK - 1 ? 0.3 * value ** 5 : value;
    }),
  );
}

const lengthOf = (d: Float32Array) => Math.sqrt(d.reduce((sum, value) => sum + value * value, 0));

/** The mean of |d_k| / ‖d‖, and the variance of d_k / ‖d‖ if its sign is known. */
function spreadsOf(columns: readonly Float32Array[]) {
  const [means, variances] = [new Float32Array(RANK), new Float32Array(RANK)];
  for (let k = 0; k < RANK; k++) {
    const values = columns.map((d) => Math.abs(d[k]) / lengthOf(d));
    means[k] = values.reduce((sum, value) => sum + value, 0) / COLUMNS;
    variances[k] = values.reduce((sum, value) => sum + (value - means[k]) ** 2, 0) / COLUMNS;
  }
  return { means, variances };
}

/** The part of the columns of the highest scores that their signs keep, if the last of them is the worst. */
function keptOf(x: Float32Array, columns: readonly Float32Array[], margin: number) {
  const table = new Uint8Array(64 * Math.ceil(RANK / 16));
  const { shift, inverse } = fillSignTable(x, spreadsOf(columns), margin, table);
  const scores = columns.map((d) => d.reduce((sum, value, k) => sum + value * x[k], 0));
  const order = [...scores.keys()].sort((one, other) => scores[other] - scores[one]);
  const worst = scores[order[BEST - 1]];
  const isKept = (column: number) => {
    const d = columns[column];
    let sum = 0;
    for (let group = 0; 4 * group < RANK; group++) {
      let pattern = 0;
      for (let bit = 0; bit < 4; bit++) if (d[4 * group + bit] < 0) pattern |= 1 << bit;
      sum += table[16 * group + pattern];
    }
    return sum > Math.floor((worst / lengthOf(d) + shift) * inverse);
  };
  const best = order.slice(0, BEST).filter(isKept).length / BEST;
  return { best, all: order.filter(isKept).length / COLUMNS };
}

describe('the table of signs', () => {
  it('keeps the best of rotated differences, and leaves out most others', () => {
    const columns = differences();
    const x = Float32Array.from({ length: RANK }, (_, k) =>
      k === RANK - 1 ? 1 : 0.3 * random.gaussian(9e6 + 2 * k),
    );
    const unrotated = keptOf(x, columns, 1.5);
    const rotate = rotation(RANK);
    for (const one of [x, ...columns]) rotate(one);
    const kept = keptOf(x, columns, 1.5);
    expect(kept.best).toBeGreaterThan(0.9);
    expect(kept.all).toBeLessThan(0.3);
    expect(unrotated.best).toBeLessThan(0.9);
    // A larger margin keeps more.
    expect(keptOf(x, columns, 2.5).all).toBeGreaterThan(kept.all);
  });
});
