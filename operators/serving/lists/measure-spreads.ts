import type { ListIndex } from './list-index.ts';

/** Columns whose spreads are measured. */
const MEASURED = 65_536;

/**
 * Two rows of `rank` numbers over evenly spaced columns: for each feature the mean of |d_k| / ‖d‖, and the
 * variance of d_k / ‖d‖ if its sign is known. d is the difference of a vector and the center of its list.
 * Scores are estimated from these numbers: see cpu/assembly/list-signs.ts.
 */
export function measureSpreads({ codes, guide, rank }: Pick<ListIndex, 'codes' | 'guide' | 'rank'>) {
  const columns = guide.length / 4;
  const numbers = new Float32Array(guide.buffer, guide.byteOffset, guide.length);
  const signed = new Int8Array(codes.buffer, codes.byteOffset, codes.length);
  const width = columns > 0 ? codes.length / columns : 0;
  const step = Math.max(1, Math.floor(columns / MEASURED));
  const [sums, squares] = [new Float64Array(rank), new Float64Array(rank)];
  let count = 0;
  for (let place = 0; place < columns; place += step) {
    const scale = numbers[2 * columns + place] / numbers[place];
    if (!(scale > 0 && scale < Infinity)) continue;
    count++;
    for (let k = 0; k < rank; k++) {
      const value = signed[place * width + k] * scale;
      sums[k] += Math.abs(value);
      squares[k] += value * value;
    }
  }
  const spreads = new Float32Array(2 * rank);
  for (let k = 0; k < rank; k++) {
    spreads[k] = count > 0 ? sums[k] / count : 0;
    spreads[rank + k] = count > 0 ? Math.max(0, squares[k] / count - spreads[k] ** 2) : 0;
  }
  return spreads;
}
