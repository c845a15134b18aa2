import type { IndexKind } from '../../connectors/model/index-layout.ts';
import { unitVector } from '../../operators/serving/similar.ts';
import type { RunOptions } from '../run-session.ts';
import type { ServedModel } from './served-model.ts';

/** Queries by which searches of an index are tuned, and the length of their lists. */
const QUERIES = 256;
const BEST = 20;

/**
 * Margins of searches by signs, in standard deviations. The first is taken whose loss, in a search of all
 * lists, is at most a third of the loss that the caller allows; null: no item is left out by its signs.
 */
const MARGINS = [1, 1.5, 2, 2.5, 3.5, null];
const SHARE_OF_LOSS = 1 / 3;

/** The default number of lists is at most by this part above a number that is too small. */
const NEAR = 0.04;

/** How an index is searched by default, and the part of the best items that is then found. */
interface Tuning {
  readonly margin: number | null;
  readonly probes: number;
  readonly recall: number;
}

/**
 * Chooses the margin of searches by signs and the fewest lists in which the wanted part of the best items of
 * sampled queries is found. The index is in the request threads, and is then searched with that margin.
 */
export async function tuneIndex(
  served: ServedModel,
  kind: IndexKind,
  lists: number,
  wanted: number,
  { signal, onEvent }: RunOptions,
): Promise<Tuning> {
  const queries = sampledQueries(served, kind);
  const { searches } = served;
  const find = async (probes: number) => {
    const found = await Promise.all(
      queries.map((query) => searches.searchLists(kind, probes, { query, n: BEST }, { signal, onEvent })),
    );
    return found.map(({ positions }) => positions);
  };
  const best = (await find(lists)).map((positions) => new Set(positions));
  const total = best.reduce((sum, { size }) => sum + size, 0);
  const recallOf = async (probes: number) => {
    const hits = (await find(probes)).map((found, q) => found.filter((at) => best[q].has(at)).length);
    return total === 0 ? 1 : hits.reduce((sum, one) => sum + one, 0) / total;
  };
  const tune = (margin: number | null, wholeLists: number) =>
    searches.tuneLists(kind, { margin, wholeLists });
  const margin = await leastMargin(wanted, async (one) => {
    // Searches of all lists of an index use no signs, unless it is a part of another.
    await tune(one, lists + 1);
    return recallOf(lists);
  });
  await tune(margin, lists);
  return { margin, ...(await fewestProbes(lists, wanted, recallOf)) };
}

async function leastMargin(wanted: number, recallOf: (margin: number) => Promise<number>) {
  const enough = 1 - (1 - wanted) * SHARE_OF_LOSS;
  for (const margin of MARGINS) if (margin === null || (await recallOf(margin)) >= enough) return margin;
  return null;
}

/** Found by doubling, then by halving the range between too few lists and enough. */
async function fewestProbes(lists: number, wanted: number, recallOf: (probes: number) => Promise<number>) {
  let tooFew = 0;
  let enough = { probes: 1, recall: await recallOf(1) };
  while (enough.recall < wanted && enough.probes < lists) {
    tooFew = enough.probes;
    const probes = Math.min(lists, 2 * tooFew);
    enough = { probes, recall: await recallOf(probes) };
  }
  while (enough.probes - tooFew > Math.max(1, NEAR * enough.probes)) {
    const probes = Math.floor((tooFew + enough.probes) / 2);
    const recall = await recallOf(probes);
    if (recall >= wanted) enough = { probes, recall };
    else tooFew = probes;
  }
  return enough;
}

/** Users, or items for similar items, evenly spaced. */
function sampledQueries(served: ServedModel, kind: IndexKind): Float32Array[] {
  const { factors, rank } = served;
  const values = kind === 'recommend' ? factors.userFactors : factors.itemFactors;
  const rows = values.length / factors.rank;
  return Array.from({ length: Math.min(QUERIES, rows) }, (_, i) => {
    const at = Math.floor((i * rows) / Math.min(QUERIES, rows)) * factors.rank;
    return kind === 'recommend' ? values.slice(at, at + factors.rank) : unitVector(values, at, rank);
  });
}
