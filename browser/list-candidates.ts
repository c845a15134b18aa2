import { type ListColumns, NO_ITEM } from './page-lists.ts';

/** A list with the product of the query and its center. */
export interface ProbedList {
  readonly base: number;
  readonly columns: ListColumns;
}

/** Items that may be among the n best of a query by their bounds, and the number of items compared. */
export interface Candidates {
  readonly items: readonly number[];
  readonly compared: number;
}

/** Bound of the rounding errors of products of `rank` float32 numbers, relative to the vectors' lengths. */
const rounding = (rank: number) => 4 * (rank + 8) * 2 ** -24;

/**
 * The items of lists, without those `left` out, whose upper bound is not below the lower bounds of n others:
 *
 *     | xᵀθ_v - (xᵀc + xᵀd̂_v) |  <=  ‖x‖ ‖d_v - d̂_v‖ + slack
 *
 * θ_v = c + d_v, d̂_v in 8 bits; cpu/assembly/lists.ts has the same bounds with a rounded query. Each of the n
 * best items of these lists is a candidate, so their exact scores give the list of Node.
 */
export function candidatesOf(
  query: ArrayLike<number>,
  lists: readonly ProbedList[],
  { n, left, longest }: { readonly n: number; readonly left: ArrayLike<number>; readonly longest: number },
): Candidates {
  const out = new Set(Array.from(left));
  const length = Math.hypot(...Array.from(query));
  const slack = rounding(query.length) * length * longest;
  const [items, uppers, lowers]: [number[], number[], number[]] = [[], [], []];
  for (const { base, columns } of lists) {
    const { items: own, remainders, scales, codes, width } = columns;
    for (let column = 0; column < own.length; column++) {
      const item = own[column];
      if (item === NO_ITEM || out.has(item)) continue;
      let product = 0;
      for (let k = 0, at = column * width; k < query.length; k++) product += query[k] * codes[at + k];
      const score = base + scales[column] * product;
      const error = length * remainders[column] + slack;
      items.push(item);
      uppers.push(score + error);
      lowers.push(score - error);
    }
  }
  const worst = Float64Array.from(lowers).sort().at(-n) ?? -Infinity;
  return { items: items.filter((_, at) => !(uppers[at] < worst)), compared: items.length };
}
