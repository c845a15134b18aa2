/** The highest entry of a table: 16 of them fit in a byte. */
const MOST_ENTRY = 15;

/** The mean of |d_k| / ‖d‖ for each feature k, and the variance of d_k / ‖d‖ if its sign is known. */
export interface Spreads {
  readonly means: Float32Array;
  readonly variances: Float32Array;
}

/**
 * Writes sums of ±x_k m_k to `table`: for each four features the 16 sums, as whole numbers of a step from the
 * lowest sum. A bit of 1 in the pattern is a minus. A column whose score xᵀd / ‖d‖ is t has a sum of about
 * ρ² t, where ρ² is the part of the variance of scores that sums explain. Returns numbers by which t is
 * compared with sums of table entries: (t + shift) inverse is the least sum that a column needs, which is
 * `margin` standard deviations below the sum expected of a column with score t.
 */
export function fillSignTable(
  x: ArrayLike<number>,
  { means, variances }: Spreads,
  margin: number,
  table: Uint8Array,
) {
  let [range, all, known, unknown] = [0, 0, 0, 0];
  for (let k = 0; k < x.length; k += 4) {
    let sum = 0;
    for (let one = k; one < Math.min(k + 4, x.length); one++) {
      sum += Math.abs(x[one] * means[one]);
      known += (x[one] * means[one]) ** 2;
      unknown += x[one] ** 2 * variances[one];
    }
    range = Math.max(range, 2 * sum);
    all += sum;
  }
  const inverse = range > 0 ? MOST_ENTRY / range : 0;
  for (let group = 0; 16 * group < table.length; group++) fillGroup(x, means, inverse, group, table);
  // Of the sum, for a given score: its mean is ρ² t.
  const explained = known / (known + unknown);
  const deviation = Math.sqrt(known * (1 - explained));
  return { shift: (all - margin * deviation) / explained, inverse: inverse * explained };
}

const sums = new Float64Array(16);

function fillGroup(
  x: ArrayLike<number>,
  means: Float32Array,
  inverse: number,
  group: number,
  table: Uint8Array,
): void {
  sums[0] = 0;
  for (let bit = 0; bit < 4; bit++) {
    const k = 4 * group + bit;
    const value = k < x.length ? x[k] * means[k] : 0;
    // From the lowest sum: the sign that agrees with x adds 2 |x m|.
    const [plus, minus] = value > 0 ? [2 * value, 0] : [0, -2 * value];
    for (let pattern = 0; pattern < 1 << bit; pattern++) {
      sums[pattern | (1 << bit)] = sums[pattern] + minus;
      sums[pattern] += plus;
    }
  }
  for (let pattern = 0; pattern < 16; pattern++)
    table[16 * group + pattern] = Math.round(sums[pattern] * inverse);
}
